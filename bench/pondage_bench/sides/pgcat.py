"""PgCat.

Source: PgCat's CONFIG.md. It has no Unix sockets to PostgreSQL.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..postgres import Upstream
from .base import PREPARED_STATEMENTS, Gateway, Ready, Transport


class PgCat(Gateway):
    """With a worker per processor. Its query parser stays off, as no side here routes queries."""

    kind = "pgcat"
    transports = (Transport.TCP,)

    def prepare(self, directory: Path, port: int, upstream: Upstream) -> Ready:
        text = f"""\
[general]
host = "127.0.0.1"
port = {port}
worker_threads = {os.cpu_count() or 1}
admin_username = "admin"
admin_password = "admin"

[pools.{upstream.database}]
pool_mode = "transaction"
query_parser_enabled = false
prepared_statements_cache_size = {PREPARED_STATEMENTS}

[pools.{upstream.database}.users.0]
username = "{upstream.user}"
password = ""
auth_type = "trust"
pool_size = {upstream.pool_size}

[pools.{upstream.database}.shards.0]
servers = [["{upstream.host}", {upstream.port}, "primary"]]
database = "{upstream.database}"
"""
        path = directory / "pgcat.toml"
        path.write_text(text)
        return Ready([self.program, path], text)
