"""TPC-C's payment and new-order: called as procedures, and run statement by statement.

The bar is a report on stored procedures in a database's proxy, with 1 to 200 clients on 10 and 60
warehouses, and on how little is left of the throughput of others with 1,000.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..loads import Load
from ..pgbench import Amount
from ..pgwire import PgError
from ..postgres import DISK_RESERVE_BYTES, Cluster
from ..procedure_loads import ProcedureLoad, loaded
from ..processes import BenchError
from ..rounds import say
from ..sides import Peer, Side, StatementByStatement, all_sides
from ..tpcc import database, scripts
from ..tpcc.size import Size
from .base import Options, Workload

LEFT_OUT = ("pondage-tcp",)
CALLERS_MAX = 1000


class Procedure(Workload):
    name = "procedure"
    title = "Procedures that fight for the same rows"

    def settings(self) -> dict[str, str]:
        # A connection for each client of PostgreSQL itself. Statements are planned once: pgbench
        # prepares many more than an application would, and each would be planned five times more.
        return {
            "max_connections": str(CALLERS_MAX + 50),
            "plan_cache_mode": "force_generic_plan",
        }

    def sides(self, pondage: Path, peers: Sequence[Peer]) -> list[Side]:
        """Statement by statement, then the same once more with calls."""
        callers = [
            side
            for side in all_sides(pondage, peers)
            if side.stores and side.name not in LEFT_OUT
        ]
        return [*map(StatementByStatement, callers), *callers]

    def shown(self, options: Options, amount: Amount) -> dict[str, str]:
        each = f"{amount.transactions} transactions a client"
        return {
            "each run": each
            if amount.transactions
            else f"{amount.seconds} s, after {options.warm_up} s that are not measured",
            "warehouses": ", ".join(map(str, options.warehouses)),
            "customers of a district": f"{options.customers:,}",
            "clients": ", ".join(map(str, options.callers)),
            "keys of procedures": "declared" if options.declared else "not declared",
            "after each run": "TPC-C's consistency conditions 1 to 10 and 12 hold",
        }

    def prepare(self, cluster: Cluster, options: Options) -> Sequence[str]:
        if max(options.callers) > CALLERS_MAX:
            raise BenchError(f"--callers: at most {CALLERS_MAX}")
        sizes = _sizes(options)
        _need_room(cluster, sizes)
        for size in sizes:
            say(f"loading {size.warehouses} warehouses")
            database.create(cluster, loaded(size), size, declared=options.declared)
        try:
            for size in sizes:
                with cluster.client(loaded(size)) as client:
                    client.query("CREATE EXTENSION pg_prewarm")
        except PgError as error:
            return [f"The tables are not read into memory before a run: {error}"]
        return []

    def loads(self, options: Options) -> Sequence[Load]:
        return [
            ProcedureLoad(transaction, size, clients, options.warm_up)
            for transaction in scripts.TRANSACTIONS
            for size in _sizes(options)
            for clients in options.callers
        ]


def _sizes(options: Options) -> list[Size]:
    return [Size(warehouses, options.customers) for warehouses in options.warehouses]


def _need_room(cluster: Cluster, sizes: Sequence[Size]) -> None:
    """All of them as loaded, the largest once more to work on, and as much for what that writes."""
    disk = os.statvfs(cluster.supervisor.directory)
    needed = sum(size.bytes for size in sizes) + 2 * max(size.bytes for size in sizes)
    if disk.f_bavail * disk.f_frsize < needed + DISK_RESERVE_BYTES:
        raise BenchError(
            f"no room for {needed / 2**30:.0f} GiB in {cluster.directory};"
            " give fewer --warehouses, or another --work-dir"
        )
