"""PgDog.

Source: PgDog documentation, "Configuration". It has no Unix sockets to PostgreSQL.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..postgres import Upstream
from .base import PREPARED_STATEMENTS, Gateway, Ready, Transport


class PgDog(Gateway):
    """With a worker per processor."""

    kind = "pgdog"
    transports = (Transport.TCP,)

    def prepare(self, directory: Path, port: int, upstream: Upstream) -> Ready:
        settings = f"""\
[general]
host = "127.0.0.1"
port = {port}
workers = {os.cpu_count() or 1}
default_pool_size = {upstream.pool_size}
pooler_mode = "transaction"
auth_type = "trust"
prepared_statements_limit = {PREPARED_STATEMENTS}

[[databases]]
name = "{upstream.database}"
host = "{upstream.host}"
port = {upstream.port}
"""
        users = f"""\
[[users]]
name = "{upstream.user}"
database = "{upstream.database}"
password = "unused"
"""
        configuration, users_file = directory / "pgdog.toml", directory / "users.toml"
        configuration.write_text(settings)
        users_file.write_text(users)
        argv: list[str | Path] = [self.program, "--config", configuration, "--users", users_file]
        return Ready(argv, settings + "\n" + users)
