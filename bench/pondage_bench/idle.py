"""Thousands of logged-in clients that do nothing: what one costs a gateway."""

from __future__ import annotations

import resource
import time
from contextlib import ExitStack

from . import proc
from .loads import Context, Load
from .pgwire import Client, PgError
from .processes import BenchError
from .results import LoadInfo, Metric
from .sides import Gateway, Side

# Files this process has open besides the sockets of idle clients.
OTHER_FILES = 200

PER_CLIENT = Metric("bytes_per_client", "per idle client", "B", 0)
PER_CLIENT_AFTER = Metric("bytes_after_query", "per client after a query", "B", 0)
BASE = Metric("base_mib", "base RSS", "MiB", 1)
TOTAL = Metric("rss_mib", "RSS with all", "MiB", 1)
LOGIN_CPU = Metric("login_cpu_us", "gateway CPU", "us/login", 1)


def allow_open_files() -> int:
    """Raises this process's limit of open files, which children inherit, as far as allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return int(hard)


class IdleLoad(Load):
    """Growth of the gateway's resident memory per client that has logged in, and per client
    that has then run one query and gone idle again. Socket buffers in the kernel are not in it.
    """

    def __init__(self, clients: int, scale: int) -> None:
        self.clients = min(clients, allow_open_files() - OTHER_FILES)
        self.database = f"scale{scale}"
        self.info = LoadInfo(
            key="idle",
            title=f"{self.clients:,} idle clients",
            command="log in, wait for ReadyForQuery, stay; then one `select 1` each, stay",
            primary=PER_CLIENT,
            metrics=(PER_CLIENT, PER_CLIENT_AFTER, BASE, TOTAL, LOGIN_CPU),
        )

    def refusal(self, side: Side) -> str | None:
        if not isinstance(side, Gateway):
            return "only a gateway holds idle clients on few connections"
        return None

    def run(self, context: Context, side: Side) -> dict[str, float]:
        with context.running(side, self.database), ExitStack() as connections:
            root = side.pid
            if root is None:
                raise BenchError(f"{side.name} has no process of its own")
            base, cpu = resident(root), proc.tree_cpu_seconds(root)
            began = time.monotonic()
            clients: list[Client] = []
            try:
                for _ in range(self.clients):
                    clients.append(connections.enter_context(Client(side.endpoint)))
                elapsed = time.monotonic() - began
                login_cpu = proc.tree_cpu_seconds(root) - cpu
                logged_in = resident(root)
                for client in clients:
                    client.query("select 1")
            except (OSError, PgError) as error:
                raise BenchError(f"with {len(clients)} idle clients: {error}") from error
            after = resident(root)
        return {
            "bytes_per_client": (logged_in - base) / self.clients,
            "bytes_after_query": (after - base) / self.clients,
            "base_mib": base / 2**20,
            "rss_mib": after / 2**20,
            "login_cpu_us": login_cpu * 1e6 / self.clients,
            "logins_per_second": self.clients / elapsed,
        }


def resident(root: int) -> int:
    return proc.memory_of(proc.tree_pids(root)).rss
