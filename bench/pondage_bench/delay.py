"""Starting `delay_server.py` in front of PostgreSQL."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from . import constant_server, delay_server
from .pgwire import Client, PgError
from .postgres import Upstream
from .processes import Supervisor, free_port, wait_until

ANSWER_SECONDS = 15.0
NAME = "delay"


@contextmanager
def delayed(supervisor: Supervisor, upstream: Upstream, micros: int) -> Iterator[Upstream]:
    """The same PostgreSQL, with `micros` more to every round trip."""
    directory = supervisor.directory / NAME
    if not directory.exists():
        supervisor.subdirectory(NAME)
    port = free_port()
    away = Upstream("127.0.0.1", port, directory, upstream.user, upstream.database)
    served = constant_server.socket_file(directory, port)
    behind = constant_server.socket_file(upstream.socket_directory, upstream.port)
    # Not as the service user, who may not be allowed to run this very Python.
    process = supervisor.start(
        NAME,
        [sys.executable, delay_server.__file__, served, str(port), behind, str(micros)],
        log=directory / "log",
        as_service=False,
    )

    def complaint() -> str | None:
        try:
            with Client(away.endpoint()) as client:
                client.query("select 1")
        except (OSError, PgError) as error:
            return str(error)
        return None

    try:
        wait_until(f"{NAME} answered", ANSWER_SECONDS, complaint, process)
        yield away
    finally:
        supervisor.stop(process)
