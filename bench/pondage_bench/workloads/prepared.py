"""Prepared statements of many connections through the Java driver: the second report's task.

One thread and one text; sixty threads with the same text; sixty threads with a text each.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import pgjdbc
from ..loads import Load
from ..pgbench import Amount
from ..postgres import Cluster
from ..rounds import say
from ..sides import Peer, Side, all_sides
from .base import Options, Workload

# Threads and texts.
SIZES = ((1, 1), (60, 1), (60, 60))
# The driver asks for more than a constant; the other way of Pondage to a local server is not its
# default.
LEFT_OUT = ("pondage-tcp", "constant")


class Prepared(Workload):
    name = "prepared"
    title = "Prepared statements through pgjdbc"

    def missing(self) -> str | None:
        return pgjdbc.missing_tools()

    def sides(self, pondage: Path, peers: Sequence[Peer]) -> list[Side]:
        return [side for side in all_sides(pondage, peers) if side.name not in LEFT_OUT]

    def shown(self, options: Options, amount: Amount) -> dict[str, str]:
        return {"each thread": f"{options.statements:,} statements"}

    def prepare(self, cluster: Cluster, options: Options) -> Sequence[str]:
        say("building the Java program")
        pgjdbc.build(cluster.supervisor.directory / pgjdbc.BUILT)
        cluster.create_database(pgjdbc.DATABASE)
        with cluster.client(pgjdbc.DATABASE) as client:
            client.query("create table test (id int primary key)")
            client.query(f"insert into test select generate_series(1, {pgjdbc.ROWS})")
            client.query("vacuum analyze test")
        return []

    def loads(self, options: Options) -> Sequence[Load]:
        return [pgjdbc.PgjdbcLoad(threads, texts, options.statements) for threads, texts in SIZES]
