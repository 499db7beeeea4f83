"""The limit of a load: a server that does nothing."""

from __future__ import annotations

import sys

from .. import constant_server
from ..pgwire import Client, Endpoint, PgError
from ..postgres import Upstream
from ..processes import BenchError, Process, Supervisor, free_port, wait_until
from .base import ANSWER_SECONDS, Side


class Constant(Side):
    """Answers every statement with the same row. What a side reaches of this, pgbench and the
    kernel allow at the most, on the processors this server leaves them.
    """

    name = "constant"
    kind = "constant"
    description = "a server that answers a constant, without PostgreSQL: the limit of the load"
    stores = False
    configuration = ""

    def __init__(self) -> None:
        self._supervisor: Supervisor | None = None
        self._process: Process | None = None
        self._endpoint: Endpoint | None = None

    def version(self) -> str:
        return ""

    def start(self, supervisor: Supervisor, upstream: Upstream) -> None:
        port = free_port()
        self._supervisor = supervisor
        self._endpoint = Endpoint("127.0.0.1", port, upstream.user, upstream.database)
        # Not as the service user, who may not be allowed to run this very Python.
        self._process = supervisor.start(
            self.name,
            [sys.executable, constant_server.__file__, str(port)],
            log=supervisor.directory / "constant.log",
            as_service=False,
        )
        wait_until("constant answered", ANSWER_SECONDS, self._complaint, self._process)

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

    @property
    def endpoint(self) -> Endpoint:
        if self._endpoint is None:
            raise BenchError("constant is not started")
        return self._endpoint

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid
