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
from ..sides import Peer, Pondage, Side, StatementByStatement, Variant, all_sides
from ..tpcc import database, draws
from ..tpcc.size import Size
from .base import Options, Workload

LEFT_OUT = ("pondage-tcp",)
CALLERS_MAX = 1000
# All in one database, so what is said of procedures is said in the gateway's configuration.
POOLED = Variant("", {"procedures": '"off"'})
_DECLARED = {"procedures": '"declared"'}
PAYMENT, NEW_ORDER = "public.payment", "public.neworder"


def _trains(suffix: str, payment: dict[str, str], order: dict[str, str], **more: bool) -> Variant:
    return Variant(suffix, _DECLARED, procedures={PAYMENT: payment, NEW_ORDER: order}, **more)


# By the warehouse: payments fight for its row. Orders fight for a district's, ten of each
# warehouse, but two of one warehouse that update the same rows of stock in another order deadlock
# unless they travel in one lane; and there are more warehouses than servers anyway.
_BY_WAREHOUSE = {"key": '["p_w"]'}
TRAINS = (
    _trains("trains", _BY_WAREHOUSE, _BY_WAREHOUSE),
    _trains(
        "trains-also", {**_BY_WAREHOUSE, "also": '["p_cw"]'}, _BY_WAREHOUSE, by_default=False
    ),
    _trains(
        "trains-district", _BY_WAREHOUSE, {"key": '["p_w", "p_d"]'}, by_default=False
    ),
    _trains(
        "trains-each",
        {**_BY_WAREHOUSE, "durable_ack": '"each"'}, {**_BY_WAREHOUSE, "durable_ack": '"each"'},
        by_default=False,
    ),
    _trains(
        "lanes",
        {**_BY_WAREHOUSE, "mode": '"lane"'}, {**_BY_WAREHOUSE, "mode": '"lane"'},
        by_default=False,
    ),
    Variant("trains-auto", {"procedures": '"auto"'}, by_default=False),
)  # fmt: skip


class Procedure(Workload):
    name = "procedure"
    title = "Procedures that fight for the same rows"
    warm_up = 3

    def settings(self) -> dict[str, str]:
        # A connection for each client of PostgreSQL itself.
        return {"max_connections": str(CALLERS_MAX + 50)}

    def sides(self, pondage: Path, peers: Sequence[Peer]) -> list[Side]:
        """The five columns, then rivals in both ways, then other ways to say what conflicts."""
        usual = [
            side
            for side in all_sides(pondage, peers)
            if side.stores and side.name not in LEFT_OUT
        ]
        rivals = [side for side in usual if side.kind not in ("direct", "pondage")]
        callers = [side for side in usual if side.kind == "direct"]
        trains: list[Side] = []
        if pondage.is_file():
            callers.append(Pondage("pondage", pondage, variant=POOLED))
            trains = [Pondage("pondage", pondage, variant=variant) for variant in TRAINS]
        return [
            *map(StatementByStatement, callers), *callers, *trains[:1],
            *map(StatementByStatement, rivals), *rivals, *trains[1:],
        ]  # fmt: skip

    def shown(self, options: Options, amount: Amount) -> dict[str, str]:
        each = f"{amount.transactions} transactions a client"
        return {
            "each run": each
            if amount.transactions
            else f"{amount.seconds} s, after {options.warm_up} s that are not measured",
            "warehouses": ", ".join(map(str, options.warehouses)),
            "customers of a district": f"{options.customers:,}",
            "clients": ", ".join(map(str, options.callers)),
            "connections of each gateway": str(options.pool_size),
            "after each run": "TPC-C's consistency conditions 1 to 10 and 12 hold",
        }

    def prepare(self, cluster: Cluster, options: Options) -> Sequence[str]:
        if max(options.callers) > CALLERS_MAX:
            raise BenchError(f"--clients: at most {CALLERS_MAX}")
        sizes = _sizes(options)
        _need_room(cluster, sizes)
        for size in sizes:
            say(f"loading {size.warehouses} warehouses")
            database.create(cluster, loaded(size), size)
        try:
            for size in sizes:
                with cluster.client(loaded(size)) as client:
                    client.query("CREATE EXTENSION pg_prewarm")
        except PgError as error:
            return [f"The tables are not read into memory before a run: {error}"]
        return []

    def loads(self, options: Options) -> Sequence[Load]:
        return [
            ProcedureLoad(transaction, size, clients, options.warm_up, options.pool_size)
            for transaction in draws.TRANSACTIONS
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
