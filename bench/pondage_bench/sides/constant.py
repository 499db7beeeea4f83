"""The limit of a load: a server that answers at once."""

from __future__ import annotations

import sys

from .. import constant_server
from ..pgwire import Client, Endpoint, PgError
from ..postgres import Upstream
from ..processes import BenchError, Process, Supervisor, free_port, wait_until
from .base import ANSWER_SECONDS, Side


class Constant(Side):
    """Answers pgbench's select with a constant row. What a side reaches of this, pgbench and the
    kernel allow at the most, on the processors this server leaves them.
    """

    kind = "constant"
    description = "a server that answers selects with a constant: the limit of the load"
    stores = False
    configuration = ""

    def __init__(self, name: str = "constant") -> None:
        self.name = name
        self._supervisor: Supervisor | None = None
        self._process: Process | None = None
        self._upstream: Upstream | None = None

    def version(self) -> str:
        return ""

    def start(self, supervisor: Supervisor, upstream: Upstream) -> None:
        port = free_port()
        self._supervisor = supervisor
        directory = supervisor.directory / self.name
        directory.mkdir(exist_ok=True)
        self._upstream = Upstream("127.0.0.1", port, directory, upstream.user, upstream.database)
        served = [constant_server.socket_file(directory, port), port]
        behind = [
            constant_server.socket_file(upstream.socket_directory, upstream.port),
            upstream.user,
            upstream.database,
        ]
        # Not as the service user, who may not be allowed to run this very Python.
        self._process = supervisor.start(
            self.name,
            [sys.executable, constant_server.__file__, *map(str, (*served, *behind))],
            log=directory / "log",
            as_service=False,
        )
        try:
            wait_until(f"{self.name} answered", ANSWER_SECONDS, self._complaint, self._process)
        except BaseException:
            self.stop()
            raise

    def _complaint(self) -> str | None:
        try:
            with Client(self.endpoint) as client:
                client.query("select 1")
        except (OSError, PgError) as error:
            return str(error)
        return None

    def stop(self) -> None:
        if self._process is not None and self._supervisor is not None:
            self._supervisor.stop(self._process)
        self._process = None

    def as_upstream(self) -> Upstream:
        """For a gateway to stand in front of. Valid between `start` and `stop`."""
        if self._upstream is None:
            raise BenchError(f"{self.name} is not started")
        return self._upstream

    @property
    def endpoint(self) -> Endpoint:
        return self.as_upstream().endpoint()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid
