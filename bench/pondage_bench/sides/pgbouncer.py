"""PgBouncer, 1.18 and later.

Source: PgBouncer documentation, "config".
"""

from __future__ import annotations

import signal
from pathlib import Path

from ..postgres import Upstream
from .base import MAX_CLIENTS, PREPARED_STATEMENTS, Gateway, Ready

# The first release that keeps prepared statements in transaction pooling.
FIRST_WITH_PREPARED = (1, 21)


class PgBouncer(Gateway):
    kind = "pgbouncer"
    has_door = True

    def refuses_prepared(self) -> str | None:
        if self.version_number() < FIRST_WITH_PREPARED:
            return f"{self.version()} has no prepared statements in transaction pooling"
        return None

    def stop_signals(self) -> tuple[signal.Signals, ...]:
        # From 1.23 TERM waits for clients to leave; QUIT, and TERM before that, is at once.
        return (signal.SIGQUIT, signal.SIGTERM)

    def prepare(self, directory: Path, port: int, upstream: Upstream) -> Ready:
        users = directory / "userlist.txt"
        door = upstream.door
        secret = door.secret() or ""
        users.write_text(f'"{upstream.user}" "{secret}"\n')
        tls = (
            "client_tls_sslmode = prefer\n"
            f"client_tls_cert_file = {door.certificate.path}\n"
            f"client_tls_key_file = {door.certificate.key}\n"
            if door.certificate
            else ""
        )
        prepared = (
            "" if self.refuses_prepared() else f"max_prepared_statements = {PREPARED_STATEMENTS}\n"
        )
        text = f"""\
[databases]
{upstream.database} = host={self.upstream_host(upstream)} port={upstream.port} \
dbname={upstream.database} user={upstream.user}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = {"scram-sha-256" if door.password else "trust"}
auth_file = {users}
pool_mode = transaction
default_pool_size = {upstream.pool_size}
max_client_conn = {MAX_CLIENTS}
{prepared}{tls}ignore_startup_parameters = extra_float_digits
log_connections = 0
log_disconnections = 0
"""
        path = directory / "pgbouncer.ini"
        path.write_text(text)
        return Ready([self.program, path], text)
