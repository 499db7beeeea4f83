"""Pondage itself, and variants of it that differ by a few options."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .. import prometheus
from ..pgwire import Client, Endpoint, Row
from ..postgres import Upstream
from ..processes import BenchError, Supervisor, environment, free_port
from .base import MAX_CLIENTS, VERSION_SECONDS, Gateway, Ready, Transport
from .constant import Constant

CONFIGURATION = "pondage.toml"
CONSOLE = "pondage"
# As TOML.
NO_MEMORY = '"0B"'
# Until the stream of changes is followed, without which nothing is kept.
STREAM_SECONDS = 30.0
STREAM_STEP_SECONDS = 0.05


@dataclass(frozen=True)
class Variant:
    """Options of `[pool]`, `[cache]` and of procedures by name that differ from the defaults, as
    TOML values, and for which loads. With a cache, or where something is said of procedures,
    metrics are served as well.
    """

    #: Empty: it is called as the plain side is.
    suffix: str
    pool: Mapping[str, str] = field(default_factory=dict)
    made_for: frozenset[str] = field(default_factory=frozenset)
    cache: Mapping[str, str] = field(default_factory=dict)
    procedures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    by_default: bool = True

    @property
    def serves_metrics(self) -> bool:
        return bool(self.cache or "procedures" in self.pool)


@dataclass(frozen=True)
class Mirror:
    """A row of SHOW MIRRORS: `table` with its schema, where that is known."""

    table: str
    columns: str
    state: str
    why: str
    rows: int
    bytes: int

    @classmethod
    def of(cls, row: Row) -> Mirror:
        _, table, columns, state, why, _, rows, held, *_ = (text or "" for text in row)
        return cls(table, columns, state, why, int(rows), int(held))


class Pondage(Gateway):
    """Reaches a server on its own machine through the Unix socket, as it does by default."""

    kind = "pondage"
    has_door = True
    default_transport = Transport.UNIX

    def __init__(
        self,
        name: str,
        binary: Path,
        transport: Transport = Transport.UNIX,
        variant: Variant | None = None,
    ) -> None:
        super().__init__(name, binary, transport)
        self._variant = variant or Variant("")
        self._http: str | None = None
        if self._variant.suffix:
            self.name += f"-{self._variant.suffix}"
        self.made_for = self._variant.made_for
        self.by_default = self._variant.by_default

    @property
    def description(self) -> str:
        given = self._variant
        options = [f"{name} = {value}" for name, value in given.pool.items()]
        options += [f"cache.{name} = {value}" for name, value in given.cache.items()]
        for procedure, values in given.procedures.items():
            options += [f"{procedure}: {name} = {value}" for name, value in values.items()]
        return ", ".join([super().description, *options])

    @property
    def caches(self) -> bool:
        return bool(self._variant.cache)

    @property
    def mirrors_tables(self) -> bool:
        """Only where room is given for it: a small cache is for what is about small caches."""
        return self._variant.cache.get("mirror_memory", NO_MEMORY) != NO_MEMORY

    @property
    def serves_metrics(self) -> bool:
        return self._variant.serves_metrics

    def figures(self) -> dict[str, float]:
        """Of its metrics page. Only while it runs, and only where it serves metrics."""
        if self._http is None:
            raise BenchError(f"{self.name} serves no metrics")
        return prometheus.fetch(self._http)

    def _console(self) -> Client:
        here = self.endpoint
        return Client(Endpoint(here.host, here.port, here.user, CONSOLE))

    def command(self, text: str) -> list[Row]:
        """Of the console; PgError when it refuses."""
        with self._console() as client:
            return client.query(text)

    def mirrors(self) -> list[Mirror]:
        return [Mirror.of(row) for row in self.command("SHOW MIRRORS")]

    def wait_for_stream(self) -> None:
        """BenchError with what it says is missing, if it does not follow in time."""
        deadline = time.monotonic() + STREAM_SECONDS
        with self._console() as client:
            while True:
                rows = client.query("SHOW STREAMS")
                if rows and all("following" in row for row in rows):
                    return
                if time.monotonic() > deadline:
                    raise BenchError(f"{self.name} follows no stream of changes: {rows}")
                time.sleep(STREAM_STEP_SECONDS)

    def unavailable(self) -> str | None:
        """An older build does not know the options of newer variants."""
        if self._variant == Variant(""):
            return None
        with tempfile.TemporaryDirectory() as directory:
            upstream = Upstream("127.0.0.1", 5432, Path(directory), "postgres", "postgres")
            path = Path(directory)
            self.prepare(path, 6432, upstream)
            try:
                told = subprocess.run(
                    [self.binary, "check", "-c", path / CONFIGURATION],
                    capture_output=True,
                    text=True,
                    timeout=VERSION_SECONDS,
                    check=False,
                    env=environment(),
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise BenchError(f"{self.binary} check: {error}") from error
        if told.returncode == 0:
            return None
        lines = told.stderr.strip().splitlines()
        return f"this build of it refuses the configuration: {lines[0] if lines else 'silently'}"

    def prepare(self, directory: Path, port: int, upstream: Upstream) -> Ready:
        given = self._variant
        sections = _section("pool", given.pool) + _section("cache", given.cache)
        door = upstream.door
        if door.certificate:
            files = {"cert": door.certificate.path, "key": door.certificate.key}
            quoted = {name: f'"{path}"' for name, path in files.items()}
            sections += _section("listen.tls", {"mode": '"prefer"', **quoted})
        if door.password:
            sections += _section(f"users.{upstream.user}", {"password": f'"{door.secret()}"'})
        for procedure, options in given.procedures.items():
            sections += _section(f'procedures."{procedure}"', options)
        # The console tells of the stream; a free port only where one is needed.
        self._http = f"127.0.0.1:{free_port()}" if given.serves_metrics else None
        admin = f'admin_users = ["{upstream.user}"]\n' if given.cache else ""
        text = f"""\
[listen]
postgres = ["127.0.0.1:{port}"]
http = "{self._http or 'off'}"

[runtime]
max_clients = {MAX_CLIENTS}

[auth]
method = "{"scram" if door.password else "trust"}"
{admin}
{sections}[databases.{upstream.database}]
host = "{self.upstream_host(upstream)}"
port = {upstream.port}
dbname = "{upstream.database}"
user = "{upstream.user}"
pool_size = {upstream.pool_size}
mode = "transaction"
"""
        path = directory / CONFIGURATION
        path.write_text(text)
        return Ready([self.program, "serve", "-c", path], text)


def _section(name: str, options: Mapping[str, str]) -> str:
    lines = "".join(f"{option} = {value}\n" for option, value in options.items())
    return f"[{name}]\n{lines}\n" if lines else ""


class PondageOnConstant(Pondage):
    """What the gateway alone can do, with a server behind it that costs next to nothing."""

    kind = "constant"
    stores = False

    def __init__(self, name: str, binary: Path) -> None:
        super().__init__(name, binary)
        self.name += "-constant"
        self._constant = Constant(f"{self.name}-behind")

    @property
    def description(self) -> str:
        return "pondage, in front of a server that answers a constant: the limit of the gateway"

    def start(self, supervisor: Supervisor, upstream: Upstream) -> None:
        self._constant.start(supervisor, upstream)
        try:
            super().start(supervisor, self._constant.as_upstream())
        except BaseException:
            self._constant.stop()
            raise

    def stop(self) -> None:
        super().stop()
        self._constant.stop()

    @property
    def database_pid(self) -> int | None:
        return self._constant.pid
