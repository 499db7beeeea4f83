"""The private PostgreSQL that every side stands in front of."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .door import OPEN, Door
from .pgwire import Client, Endpoint, PgError
from .proc import parse_kib_fields
from .processes import BenchError, Process, Supervisor, free_port, wait_until

START_SECONDS = 60.0
INIT_SECONDS = 120.0
# Room a pgbench scale unit needs on disk with indexes, its WAL and what updates add.
SCALE_BYTES = 24 * 1024 * 1024
DISK_RESERVE_BYTES = 2 * 1024**3
# Major versions that count WAL syncs, and where.
WAL_IN_STAT_WAL = 14
WAL_IN_STAT_IO = 18
SHARED_BUFFERS_MAX = 2 * 1024**3
POOL_SIZE = 20


def find_bindir() -> Path:
    """Where initdb stands: PATH, `pg_config --bindir`, then the newest Debian directory."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    pg_config = shutil.which("pg_config")
    if pg_config:
        told = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        bindir = Path(told.stdout.strip())
        if (bindir / "initdb").exists():
            return bindir
    debian = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if debian:
        return max(debian, key=lambda path: int(re.sub(r"\D", "", path.parent.name) or 0))
    raise BenchError("no initdb found: install PostgreSQL, on Debian: apt install postgresql")


def default_settings() -> dict[str, str]:
    """What differs from PostgreSQL's defaults; printed in every report."""
    total = parse_kib_fields(Path("/proc/meminfo").read_text())["MemTotal"]
    buffers = min(total // 4, SHARED_BUFFERS_MAX) // 1024**2
    return {
        "listen_addresses": "127.0.0.1",
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_connections": "300",
        "shared_buffers": f"{buffers}MB",
        "max_wal_size": "8GB",
        "checkpoint_timeout": "30min",
        "log_min_messages": "warning",
        "log_checkpoints": "off",
    }


@dataclass(frozen=True)
class Upstream:
    """One database of the private PostgreSQL, as a gateway is told of it."""

    host: str
    port: int
    socket_directory: Path
    user: str
    database: str
    #: How many connections a gateway may hold to it: equal terms for all.
    pool_size: int = POOL_SIZE
    #: What the gateway asks of its clients; PostgreSQL itself trusts everybody.
    door: Door = OPEN

    def endpoint(self) -> Endpoint:
        return Endpoint(self.host, self.port, self.user, self.database)


@dataclass(frozen=True)
class Wal:
    """WAL since the cluster was made: bytes, and syncs to disk where the server counts them."""

    written: int
    syncs: int | None


@dataclass
class Cluster:
    """A fresh cluster with trust authentication, on a Unix socket of its own and, unless a port is
    given, a free one."""

    supervisor: Supervisor
    settings: dict[str, str] = field(default_factory=default_settings)
    user: str = "postgres"
    bindir: Path = field(default_factory=find_bindir)
    port: int = 0
    _process: Process | None = None

    @property
    def directory(self) -> Path:
        return self.supervisor.directory / "postgres"

    @property
    def pid(self) -> int:
        """The postmaster's."""
        if self._process is None:
            raise BenchError("PostgreSQL is not started")
        return self._process.pid

    def start(self) -> None:
        directory = self.supervisor.subdirectory("postgres")
        data = directory / "data"
        self.supervisor.run(
            [self.bindir / "initdb", "-D", data, "-U", self.user, "-A", "trust",
             "-E", "UTF8", "--no-locale", "--no-instructions"],
            timeout=INIT_SECONDS,
        )  # fmt: skip
        self.port = self.port or free_port()
        options = {
            **self.settings,
            "port": str(self.port),
            "unix_socket_directories": str(directory),
        }
        with (data / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in options.items())
        self._process = self.supervisor.start(
            "postgres",
            [self.bindir / "postgres", "-D", data],
            log=directory / "log",
            # INT is a fast shutdown: connections are ended; QUIT is an immediate one.
            stop_signals=(signal.SIGINT, signal.SIGQUIT),
        )
        wait_until("PostgreSQL answered", START_SECONDS, self._complaint, self._process)

    def _complaint(self) -> str | None:
        try:
            self.version()
        except (OSError, PgError) as error:
            return str(error)
        return None

    def upstream(
        self, database: str, pool_size: int = POOL_SIZE, door: Door = OPEN
    ) -> Upstream:
        return Upstream(
            "127.0.0.1", self.port, self.directory, self.user, database, pool_size, door
        )

    def client(self, database: str = "postgres") -> Client:
        return Client(self.upstream(database).endpoint(), timeout=600.0)

    def scalar(self, sql: str, database: str = "postgres") -> str:
        """The one value of a query; BenchError when it is null or there is no row."""
        with self.client(database) as client:
            rows = client.query(sql)
        if not rows or rows[0][0] is None:
            raise BenchError(f"no value from: {sql}")
        return rows[0][0]

    def version(self) -> str:
        return self.scalar("show server_version")

    def changed_settings(self) -> dict[str, str]:
        """Every setting that is not PostgreSQL's default, as the server itself tells."""
        with self.client() as client:
            rows = client.query(
                "select name, current_setting(name) from pg_settings"
                " where source not in ('default', 'override', 'client')"
                " or name in ('fsync', 'synchronous_commit') order by name"
            )
        return {name or "": value or "" for name, value in rows}

    def wal(self) -> Wal:
        """What the cluster has written until now. Backends that live on may hold back up to a
        second of their syncs, those that ended hold back none.
        """
        written = self.scalar("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")
        major = int(self.scalar("show server_version_num")) // 10000
        if major >= WAL_IN_STAT_IO:
            syncs = self.scalar("select sum(fsyncs) from pg_stat_io where object = 'wal'")
        elif major >= WAL_IN_STAT_WAL:
            syncs = self.scalar("select wal_sync from pg_stat_wal")
        else:
            return Wal(int(written), None)
        return Wal(int(written), int(syncs))

    def room_for_scale(self, scale: int) -> bool:
        free = os.statvfs(self.supervisor.directory)
        return free.f_bavail * free.f_frsize > scale * SCALE_BYTES + DISK_RESERVE_BYTES

    def create_database(self, name: str) -> None:
        with self.client() as client:
            client.query(f"create database {name}")

    def create_pgbench_database(self, scale: int) -> str:
        """A database with pgbench's tables; its name."""
        name = f"scale{scale}"
        self.create_database(name)
        self.supervisor.run(
            [self.bindir / "pgbench", "-i", "-q", "-s", str(scale), "-h", "127.0.0.1",
             "-p", str(self.port), "-U", self.user, name],
            timeout=60.0 + 10.0 * scale,
        )  # fmt: skip
        return name

    def fill_buffers(self, database: str, tables: str = "pgbench_%") -> None:
        """So that no side finds colder tables than the next. PgError without pg_prewarm."""
        with self.client(database) as client:
            client.query("create extension if not exists pg_prewarm")
            client.query(
                "select sum(pg_prewarm(oid)) from pg_class"
                f" where relkind in ('r', 'i') and (relname like '{tables}' or oid in (select"
                f" indexrelid from pg_index where indrelid::regclass::text like '{tables}'))"
            )

    def tidy_before_writing(self, database: str) -> None:
        """The same start for every side: no history, no dead rows, no checkpoint due."""
        with self.client(database) as client:
            client.query("truncate pgbench_history")
            client.query("vacuum pgbench_branches")
            client.query("vacuum pgbench_tellers")
            client.query("checkpoint")
