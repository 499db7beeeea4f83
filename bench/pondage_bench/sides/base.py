"""A side: something a client of PostgreSQL can connect to.

Driven in this order, as often as wanted: `start`, then `endpoint` and `pid`, then `stop`.
"""

from __future__ import annotations

import re
import signal
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar

from ..pgwire import Client, Endpoint, PgError
from ..postgres import Upstream
from ..processes import BenchError, Process, Supervisor, free_port, stage, wait_until

ANSWER_SECONDS = 15.0
VERSION_SECONDS = 10.0

# Equal terms for every gateway.
MAX_CLIENTS = 20_000
PREPARED_STATEMENTS = 200


class Transport(Enum):
    """How a gateway reaches PostgreSQL."""

    TCP = "TCP"
    UNIX = "Unix socket"


class Side(ABC):
    """One column of a comparison."""

    name: str
    kind: str
    #: Whether what is written can be read again.
    stores: bool = True
    #: Keys of the only loads where it differs from the others, without `@`; empty: of all loads.
    made_for: frozenset[str] = frozenset()
    #: Whether it takes part where no sides are named.
    by_default: bool = True

    @property
    @abstractmethod
    def description(self) -> str:
        """For the report: what it is and how it reaches PostgreSQL."""

    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def start(self, supervisor: Supervisor, upstream: Upstream) -> None:
        """Returns when a query is answered; BenchError when that takes over ANSWER_SECONDS."""

    @abstractmethod
    def stop(self) -> None: ...

    @property
    @abstractmethod
    def endpoint(self) -> Endpoint:
        """Where clients connect. Valid between `start` and `stop`."""

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """Root of the processes in front of PostgreSQL; None when there are none."""

    @property
    @abstractmethod
    def configuration(self) -> str:
        """The text of its configuration as last started; empty when it has none."""

    @property
    def database_pid(self) -> int | None:
        """Root of what stands in PostgreSQL's place; None where it is PostgreSQL."""
        return None

    def refuses_prepared(self) -> str | None:
        """Why prepared statements can't work here with transaction pooling, or None."""
        return None

    def unavailable(self) -> str | None:
        """Why it can't be started at all on this machine, or None. Asked once, before all loads."""
        return None


class Direct(Side):
    """PostgreSQL with nothing in front of it."""

    name = "direct"
    kind = "direct"
    description = "PostgreSQL itself, TCP"

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

    @property
    def configuration(self) -> str:
        return ""


@dataclass(frozen=True)
class Ready:
    """A configuration written to disk and the command that serves it."""

    argv: list[str | Path]
    configuration: str


class Gateway(Side):
    """A pooler with a binary, a configuration and a port. One subclass per program."""

    #: Transport of the side that carries the plain name; the other one gets a suffix.
    default_transport: ClassVar[Transport] = Transport.TCP
    transports: ClassVar[tuple[Transport, ...]] = (Transport.TCP, Transport.UNIX)

    #: Whether `prepare` heeds what its clients are to bring.
    has_door: ClassVar[bool] = False

    def __init__(self, name: str, binary: Path, transport: Transport) -> None:
        suffix = "" if transport is self.default_transport else (
            "-unix" if transport is Transport.UNIX else "-tcp"
        )  # fmt: skip
        self.name = name + suffix
        self.binary = binary
        self.transport = transport
        self._process: Process | None = None
        self._supervisor: Supervisor | None = None
        self._endpoint: Endpoint | None = None
        self._configuration = ""
        self._version: str | None = None
        self._staged: Path | None = None

    @abstractmethod
    def prepare(self, directory: Path, port: int, upstream: Upstream) -> Ready:
        """Writes the configuration into `directory`; the binary is `self.program`."""

    @property
    def program(self) -> Path:
        """The binary to run: a copy once started."""
        return self._staged or self.binary

    @property
    def description(self) -> str:
        return f"{self.kind}, {self.transport.value} to PostgreSQL"

    def version(self) -> str:
        if self._version is None:
            try:
                told = subprocess.run(
                    [self.binary, "--version"],
                    capture_output=True,
                    text=True,
                    timeout=VERSION_SECONDS,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise BenchError(f"{self.binary} --version: {error}") from error
            lines = (told.stdout or told.stderr).strip().splitlines()
            self._version = lines[0] if lines else "unknown version"
        return self._version

    def version_number(self) -> tuple[int, ...]:
        """(1, 25, 2) of `PgBouncer 1.25.2`; empty when there is no number."""
        found = re.search(r"\d+(?:\.\d+)+", self.version())
        return tuple(int(part) for part in found.group().split(".")) if found else ()

    def upstream_host(self, upstream: Upstream) -> str:
        if self.transport is Transport.UNIX:
            return str(upstream.socket_directory)
        return upstream.host

    def start(self, supervisor: Supervisor, upstream: Upstream) -> None:
        directory = supervisor.directory / self.name
        if not directory.exists():
            supervisor.subdirectory(self.name)
            self._staged = stage(self.binary, directory)
        port = free_port()
        ready = self.prepare(directory, port, upstream)
        self._configuration = ready.configuration
        self._endpoint = Endpoint(
            "127.0.0.1", port, upstream.user, upstream.database, upstream.door.password
        )
        self._supervisor = supervisor
        log = directory / "log"
        log.unlink(missing_ok=True)
        self._process = supervisor.start(
            self.name, ready.argv, log=log, stop_signals=self.stop_signals()
        )
        try:
            wait_until(f"{self.name} answered", ANSWER_SECONDS, self._complaint, self._process)
        except BaseException:
            self.stop()
            raise

    def stop_signals(self) -> tuple[signal.Signals, ...]:
        """First the polite one; all of them end a gateway whose clients have left."""
        return (signal.SIGTERM, signal.SIGQUIT)

    def _complaint(self) -> str | None:
        try:
            with Client(self.endpoint) as client:
                rows = client.query("select 1")
        except (OSError, PgError) as error:
            return str(error)
        return None if rows == [["1"]] else f"`select 1` gave {rows}"

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

    @property
    def configuration(self) -> str:
        return self._configuration
