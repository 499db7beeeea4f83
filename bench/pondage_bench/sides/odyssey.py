"""Odyssey, 1.4 and later.

Source: Odyssey documentation, "Configuration".
"""

from __future__ import annotations

import os
from pathlib import Path

from ..postgres import Upstream
from .base import MAX_CLIENTS, Gateway, Ready, Transport


class Odyssey(Gateway):
    """With a worker per processor; it has one by default."""

    kind = "odyssey"

    def prepare(self, directory: Path, port: int, upstream: Upstream) -> Ready:
        unix = self.transport is Transport.UNIX
        # Without a host a storage is reached in unix_socket_dir.
        sockets = (
            f'unix_socket_dir "{upstream.socket_directory}"\nunix_socket_mode "0600"\n'
            if unix
            else ""
        )
        host = "" if unix else f'    host "{upstream.host}"\n'
        text = f"""\
daemonize no
pid_file "{directory}/odyssey.pid"
locks_dir "{directory}"
{sockets}log_format "%p %t %l [%i %s] (%c) %m\\n"
log_to_stdout yes
log_session no
log_query no
log_stats no
workers {os.cpu_count() or 1}
enable_online_restart no

listen {{
    host "127.0.0.1"
    port {port}
}}

storage "postgres" {{
    type "remote"
{host}    port {upstream.port}
}}

database "{upstream.database}" {{
    user "{upstream.user}" {{
        authentication "none"
        storage "postgres"
        storage_db "{upstream.database}"
        storage_user "{upstream.user}"
        pool "transaction"
        pool_size {upstream.pool_size}
        pool_discard no
        pool_reserve_prepared_statement yes
        reserve_session_server_connection no
        client_max {MAX_CLIENTS}
    }}
}}
"""
        path = directory / "odyssey.conf"
        path.write_text(text)
        return Ready([self.program, path], text)
