"""Pondage itself."""

from __future__ import annotations

from pathlib import Path

from ..postgres import Upstream
from .base import MAX_CLIENTS, POOL_SIZE, Gateway, Ready, Transport


class Pondage(Gateway):
    """Reaches a server on its own machine through the Unix socket, as it does by default."""

    kind = "pondage"
    default_transport = Transport.UNIX

    def prepare(self, directory: Path, port: int, upstream: Upstream) -> Ready:
        text = f"""\
[listen]
postgres = ["127.0.0.1:{port}"]
http = "off"

[runtime]
max_clients = {MAX_CLIENTS}

[auth]
method = "trust"

[databases.{upstream.database}]
host = "{self.upstream_host(upstream)}"
port = {upstream.port}
dbname = "{upstream.database}"
user = "{upstream.user}"
pool_size = {POOL_SIZE}
mode = "transaction"
"""
        path = directory / "pondage.toml"
        path.write_text(text)
        return Ready([self.program, "serve", "-c", path], text)
