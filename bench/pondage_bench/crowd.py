"""Clients that log in with a password or by TLS for every transaction, and crowds of clients of
which few are active.
"""

from __future__ import annotations

from contextlib import ExitStack

from . import door
from .door import Door
from .idle import OTHER_FILES, allow_open_files
from .loads import WARM_UP, Context, PgbenchLoad
from .pgbench import Profile
from .pgwire import Client, PgError
from .processes import BenchError
from .sides import Gateway, Side

PASSWORD = "correct-horse"


class LoginLoad(PgbenchLoad):
    """A connection per transaction where the gateway asks for more than a name."""

    def __init__(
        self, key: str, title: str, profile: Profile, scale: int, *, password: bool, tls: bool
    ) -> None:
        super().__init__(key, title, profile, scale)
        self._password = PASSWORD if password else None
        self._tls = tls

    def refusal(self, side: Side) -> str | None:
        if not isinstance(side, Gateway) or not side.has_door:
            return "its log-in is not set up here"
        if self._tls and (missing := door.lacks_openssl()):
            return missing
        return super().refusal(side)

    def run(self, context: Context, side: Side) -> dict[str, float]:
        certificate = door.certificate(context.supervisor) if self._tls else None
        asked = Door(self._password, certificate)
        database = asked.conninfo(self.database)
        with context.running(side, self.database, door=asked):
            self._pgbench(context, side, WARM_UP, database=database)
            return self._measure(context, side, database)


class CrowdLoad(PgbenchLoad):
    """pgbench beside clients that have logged in, asked once, and do nothing any more."""

    def __init__(self, key: str, title: str, profile: Profile, scale: int, idle: int) -> None:
        super().__init__(key, title, profile, scale)
        self._idle = min(idle, allow_open_files() - OTHER_FILES)

    def refusal(self, side: Side) -> str | None:
        if not isinstance(side, Gateway):
            return "only a gateway holds idle clients on few connections"
        return super().refusal(side)

    def run(self, context: Context, side: Side) -> dict[str, float]:
        with context.running(side, self.database), ExitStack() as connections:
            try:
                for _ in range(self._idle):
                    client = connections.enter_context(Client(side.endpoint))
                    client.query("select 1")
            except (OSError, PgError) as error:
                raise BenchError(f"with a crowd of {self._idle:,}: {error}") from error
            self._pgbench(context, side, WARM_UP)
            return self._measure(context, side)
