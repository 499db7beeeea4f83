"""pgbench with and without reconnecting per transaction, by passwords and TLS as well, and
thousands of idle clients.

The bar is Odyssey's report: 56 clients reconnecting for every transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..crowd import CrowdLoad, LoginLoad
from ..idle import IdleLoad
from ..loads import Load, PgbenchLoad
from ..pgbench import Amount, Profile
from ..postgres import Cluster
from ..scripts import PIPELINE_DEPTH, PIPELINED
from .base import Options, Workload, fill_pgbench


# Selects a second, of all active clients together.
PACED = 8_000


class Connect(Workload):
    name = "connect"
    title = "Connecting, pooling and idling"
    scales = (10, 100)

    def shown(self, options: Options, amount: Amount) -> dict[str, str]:
        crowd = f"{options.crowd}, {options.active} active"
        idle = str(options.idle_clients)
        return {**super().shown(options, amount), "idle clients": idle, "crowd": crowd}

    def prepare(self, cluster: Cluster, options: Options) -> Sequence[str]:
        fill_pgbench(cluster, options.scales)
        return []

    def loads(self, options: Options) -> Sequence[Load]:
        loads: list[Load] = []
        for scale in options.scales:
            loads += _pgbench_loads(scale, options.clients)
        smallest = min(options.scales)
        one = Profile("select-only", "prepared", 1, log=True)
        loads.append(PgbenchLoad("one-client", "One client, prepared selects", one, smallest))
        loads += _login_loads(smallest, options.clients)
        loads.append(IdleLoad(options.idle_clients, smallest))
        loads += _crowd_loads(smallest, options)
        return loads


def _login_loads(scale: int, clients: int) -> list[Load]:
    """A SCRAM log-in costs its client 8,192 HMACs, and a handshake hardly less than its server:
    what the gateway pays is in its CPU.
    """
    profile = Profile("select-only", "simple", clients, reconnect=True)
    title = f"Selects, {clients} clients, a connection per transaction"
    kinds = (
        ("scram", "SCRAM-SHA-256", True, False),
        ("tls", "TLS", False, True),
        ("scram-tls", "SCRAM-SHA-256 within TLS", True, True),
    )
    return [
        LoginLoad(f"login-{key}", f"{title} by {by}", profile, scale, password=password, tls=tls)
        for key, by, password, tls in kinds
    ]


def _crowd_loads(scale: int, options: Options) -> list[Load]:
    """As fast as they can, and at a rate that leaves the processors time; then latencies count
    from when a transaction was due.
    """
    idle = options.crowd - options.active
    title = f"{options.crowd:,} clients, {options.active} of them active"
    paces = (("crowd", "as fast as they can", 0), ("crowd-paced", f"{PACED:,} selects/s", PACED))
    return [
        CrowdLoad(
            key, f"{title}, {pace}",
            Profile("select-only", "simple", options.active, log=True, rate=rate), scale, idle,
        )
        for key, pace, rate in paces
    ]  # fmt: skip


def _pgbench_loads(scale: int, clients: int) -> list[Load]:
    """System calls are counted where one transaction is one query."""
    many = f"{clients} clients"
    return [
        PgbenchLoad(
            "select-connect", f"Selects, {many}, a connection per transaction",
            Profile("select-only", "simple", clients, reconnect=True), scale, count_calls=True,
        ),
        PgbenchLoad(
            "tpcb-connect", f"TPC-B, {many}, a connection per transaction",
            Profile("tpcb-like", "simple", clients, reconnect=True), scale,
        ),
        PgbenchLoad(
            "select-simple", f"Selects, {many}, connections kept",
            Profile("select-only", "simple", clients), scale, count_calls=True,
        ),
        PgbenchLoad(
            "select-prepared", f"Prepared selects, {many}, connections kept",
            Profile("select-only", "prepared", clients), scale, count_calls=True,
        ),
        PgbenchLoad(
            "tpcb-simple", f"TPC-B, {many}, connections kept",
            Profile("tpcb-like", "simple", clients), scale,
        ),
        PgbenchLoad(
            "select-pipelined", f"Prepared selects, {many}, {PIPELINE_DEPTH} in a pipeline",
            Profile(PIPELINED, "prepared", clients, scale=scale), scale, count_calls=True,
        ),
    ]  # fmt: skip
