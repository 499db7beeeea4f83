"""A side whose clients run a transaction statement by statement instead of calling a procedure."""

from __future__ import annotations

from ..pgwire import Endpoint
from ..postgres import Upstream
from ..processes import Supervisor
from .base import Side


class StatementByStatement(Side):
    """The column beside `inner`, which is the same program: only one of them runs at a time."""

    def __init__(self, inner: Side) -> None:
        self._inner = inner
        self.name = f"{inner.name}-statements"
        self.kind = inner.kind
        self.stores = inner.stores
        self.made_for = inner.made_for

    @property
    def description(self) -> str:
        return f"{self._inner.description}, statement by statement"

    def version(self) -> str:
        return self._inner.version()

    def start(self, supervisor: Supervisor, upstream: Upstream) -> None:
        self._inner.start(supervisor, upstream)

    def stop(self) -> None:
        self._inner.stop()

    @property
    def endpoint(self) -> Endpoint:
        return self._inner.endpoint

    @property
    def pid(self) -> int | None:
        return self._inner.pid

    @property
    def configuration(self) -> str:
        return self._inner.configuration

    @property
    def database_pid(self) -> int | None:
        return self._inner.database_pid

    def refuses_prepared(self) -> str | None:
        return self._inner.refuses_prepared()

    def unavailable(self) -> str | None:
        return self._inner.unavailable()
