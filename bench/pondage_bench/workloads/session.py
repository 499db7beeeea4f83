"""What sessions keep in transaction mode: LISTEN, PREPARE, and what pins a client to its server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..loads import Load
from ..pgbench import Amount
from ..postgres import Cluster
from ..session_loads import DATABASE, ListenersLoad, NotifyLoad, SessionLoad
from ..sides import Peer, Side, all_sides
from .base import Options, Workload

SELECT = "select 1"
PINS = "create temp table t ()"
LISTENS = "listen a"
PREPARES = "prepare q(int) as select $1"
LISTENERS = 1_000


class Session(Workload):
    name = "session"
    title = "What sessions keep"

    def sides(self, pondage: Path, peers: Sequence[Peer]) -> list[Side]:
        """The others lose in transaction mode what is measured here, or fail."""
        wanted = ("direct", "pondage")
        return [side for side in all_sides(pondage, peers) if side.name in wanted]

    def shown(self, options: Options, amount: Amount) -> dict[str, str]:
        return {"each run": f"{amount.seconds} s", "idle listeners": f"{_listeners(options):,}"}

    def prepare(self, cluster: Cluster, options: Options) -> Sequence[str]:
        cluster.create_database(DATABASE)
        return []

    def loads(self, options: Options) -> Sequence[Load]:
        return [
            ListenersLoad(_listeners(options)),
            NotifyLoad(),
            SessionLoad("select", "A select", [], [SELECT]),
            SessionLoad("transaction", "A transaction", [], ["begin", SELECT, "commit"]),
            SessionLoad("pinned", "A select of a pinned client", [PINS], [SELECT]),
            SessionLoad("listening", "A select of a client that listens", [LISTENS], [SELECT]),
            SessionLoad(
                "pinned-listening", "A select of one that is pinned and listens",
                [PINS, LISTENS], [SELECT],
            ),
            SessionLoad("execute", "EXECUTE of a select", [PREPARES], ["execute q(1)"]),
            SessionLoad(
                "prepare", "PREPARE, EXECUTE and DEALLOCATE",
                [], [PREPARES, "execute q(1)", "deallocate q"],
            ),
            SessionLoad("temporary", "A temporary table comes and goes", [], [PINS, "drop table t"]),
        ]


def _listeners(options: Options) -> int:
    return min(LISTENERS, options.idle_clients)
