"""pgbench with and without reconnecting per transaction, and thousands of idle clients.

The bar is Odyssey's report: 56 clients reconnecting for every transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..idle import IdleLoad
from ..loads import Load, PgbenchLoad
from ..pgbench import Amount, Profile
from ..postgres import Cluster
from ..scripts import PIPELINE_DEPTH, PIPELINED
from .base import Options, Workload, fill_pgbench


class Connect(Workload):
    name = "connect"
    title = "Connecting, pooling and idling"
    scales = (10, 100)

    def shown(self, options: Options, amount: Amount) -> dict[str, str]:
        return {**super().shown(options, amount), "idle clients": str(options.idle_clients)}

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
        loads.append(IdleLoad(options.idle_clients, smallest))
        return loads


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
