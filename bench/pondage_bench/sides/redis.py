"""Those that speak Redis's protocol: redis-server in its three kinds of persistence, Pondage's
Redis door, and PostgreSQL's own upserts for comparison.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

from ..pgwire import Endpoint
from ..postgres import Upstream
from ..processes import BenchError, Process, Supervisor, free_port, stage, wait_until
from .base import ANSWER_SECONDS, MAX_CLIENTS, VERSION_SECONDS, Ready, Side, Transport
from .pondage import CONFIGURATION, Pondage

PERSISTENCE = {
    "always": ["--appendonly", "yes", "--appendfsync", "always"],
    "everysec": ["--appendonly", "yes", "--appendfsync", "everysec"],
    "off": ["--appendonly", "no"],
}
# A rewrite in the middle of a run would be measured with it.
COMMON = ["--save", "", "--auto-aof-rewrite-percentage", "0", "--loglevel", "warning"]


def ping(host: str, port: int) -> str | None:
    """What is wrong with a server of Redis's protocol, or None."""
    try:
        with socket.create_connection((host, port), timeout=1) as connection:
            connection.settimeout(1)
            connection.sendall(b"*2\r\n$3\r\nGET\r\n$5\r\nready\r\n")
            answer = connection.recv(64)
    except OSError as error:
        return str(error)
    return None if answer == b"$-1\r\n" else f"GET gave {answer!r}"


class RedisServer(Side):
    """redis-server on the same file system as PostgreSQL; its data are removed with the run's."""

    kind = "redis"

    def __init__(self, binary: Path, persistence: str) -> None:
        self.name = f"redis-{persistence}"
        self.binary = binary
        self._arguments = PERSISTENCE[persistence]
        self._process: Process | None = None
        self._supervisor: Supervisor | None = None
        self._endpoint: Endpoint | None = None

    @property
    def description(self) -> str:
        return f"redis-server {' '.join(self._arguments)}"

    @property
    def configuration(self) -> str:
        return " ".join(word or "''" for word in [*COMMON, *self._arguments])

    def version(self) -> str:
        told = subprocess.run(
            [self.binary, "--version"],
            capture_output=True, text=True, timeout=VERSION_SECONDS, check=False,
        )  # fmt: skip
        return " ".join(told.stdout.split()[:3])

    def start(self, supervisor: Supervisor, upstream: Upstream) -> None:
        directory = supervisor.directory / self.name
        if directory.exists():
            # Every run begins with an empty server, as Pondage's does with empty tables.
            shutil.rmtree(directory)
        supervisor.subdirectory(self.name)
        program = stage(self.binary, directory)
        port = free_port()
        self._supervisor = supervisor
        self._endpoint = Endpoint("127.0.0.1", port, upstream.user, upstream.database)
        where = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory)]
        limits = ["--maxclients", str(MAX_CLIENTS)]
        self._process = supervisor.start(
            self.name,
            [program, *where, *limits, *COMMON, *self._arguments],
            log=directory / "log",
        )
        try:
            wait_until(
                f"{self.name} answered",
                ANSWER_SECONDS,
                lambda: ping("127.0.0.1", port),
                self._process,
            )
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._process is not None and self._supervisor is not None:
            self._supervisor.stop(self._process)
        self._process = None

    @property
    def endpoint(self) -> Endpoint:
        if self._endpoint is None:
            raise BenchError(f"{self.name} is not started")
        return self._endpoint

    @property
    def pid(self) -> int:
        if self._process is None:
            raise BenchError(f"{self.name} is not started")
        self._process.ensure_alive()
        return self._process.pid


class PondageRedis(Pondage):
    """Pondage's Redis door, on tables of a database of its own."""

    kind = "pondage"

    def __init__(self, name: str, binary: Path, *, journal: bool = False, workers: int = 1) -> None:
        super().__init__(name, binary, Transport.UNIX)
        self.journal = journal
        self.workers = workers
        if journal:
            self.name += "-journal"
        if workers > 1:
            self.name += f"-{workers}-workers"

    @property
    def description(self) -> str:
        how = "through its journal" if self.journal else "into rows"
        return f"pondage's Redis door, {how}, {self.workers} worker(s)"

    def unavailable(self) -> str | None:
        return None

    def _complaint(self) -> str | None:
        return ping(self.endpoint.host, self.endpoint.port)

    def prepare(self, directory: Path, port: int, upstream: Upstream) -> Ready:
        journal = "journal_databases = [0]\n" if self.journal else ""
        text = f"""\
[listen]
postgres = ["unix:{directory}"]
redis = "127.0.0.1:{port}"
http = "off"

[runtime]
workers = {self.workers}

[auth]
method = "trust"

[redis]
memory = "2GiB"
max_clients = {MAX_CLIENTS}
{journal}
[databases.{upstream.database}]
host = "{self.upstream_host(upstream)}"
port = {upstream.port}
dbname = "{upstream.database}"
user = "{upstream.user}"
"""
        path = directory / CONFIGURATION
        path.write_text(text)
        return Ready([self.program, "serve", "-c", path], text)


class Upserts(Side):
    """PostgreSQL itself, with a prepared upsert for each SET and a connection for each client."""

    name = "direct"
    kind = "direct"
    description = "PostgreSQL itself, a prepared upsert of one row for each SET"
    configuration = ""

    def __init__(self) -> None:
        self._upstream: Upstream | None = None

    def version(self) -> str:
        return ""

    def start(self, supervisor: Supervisor, upstream: Upstream) -> None:
        self._upstream = upstream

    def stop(self) -> None:
        self._upstream = None

    @property
    def endpoint(self) -> Endpoint:
        if self._upstream is None:
            raise BenchError("direct is not started")
        return self._upstream.endpoint()

    @property
    def pid(self) -> int | None:
        return None
