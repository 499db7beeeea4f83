"""What a workload is to the runner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..loads import Load
from ..pgbench import Amount
from ..postgres import Cluster
from ..processes import BenchError
from ..rounds import say
from ..scripts import write_scripts
from ..sides import Peer, Side, all_sides


@dataclass(frozen=True)
class Options:
    """Sizes given on the command line; a workload takes those that concern it."""

    scales: tuple[int, ...]
    clients: int
    idle_clients: int
    statements: int
    #: Clients that are logged in, and how many of them are active.
    crowd: int = 10_000
    active: int = 200
    #: Of sysbench: rows of its table, and how many threads there are.
    rows: int = 1_000_000
    threads: tuple[int, ...] = (1, 4, 8)
    #: Seconds before each measurement of sysbench and of TPC-C.
    warm_up: int = 10
    #: Of TPC-C: warehouses, customers of each district, and clients that call.
    warehouses: tuple[int, ...] = (10, 60)
    customers: int = 3000
    callers: tuple[int, ...] = (1, 2, 10, 50, 100, 200, 500, 1000)
    #: Connections to PostgreSQL of each gateway in front of TPC-C.
    pool_size: int = 8


class Workload(ABC):
    name: str
    title: str
    #: pgbench's scales unless given on the command line; empty where there is none.
    scales: tuple[int, ...] = ()
    #: Seconds before what is measured, unless given on the command line.
    warm_up: int = 10

    def settings(self) -> dict[str, str]:
        """PostgreSQL settings beyond those every workload gets."""
        return {}

    def missing(self) -> str | None:
        """What this machine lacks to run it at all, or None."""
        return None

    def sides(self, pondage: Path, peers: Sequence[Peer]) -> list[Side]:
        """Those that can take part, in the order of the report."""
        return all_sides(pondage, peers)

    def shown(self, options: Options, amount: Amount) -> dict[str, str]:
        """Its sizes, for the report."""
        each = f"{amount.transactions} transactions a client"
        return {
            "each run": each if amount.transactions else f"{amount.seconds} s",
            "clients": str(options.clients),
            "scales": ", ".join(map(str, options.scales)),
        }

    @abstractmethod
    def prepare(self, cluster: Cluster, options: Options) -> Sequence[str]:
        """Fills the freshly started cluster; notes for the report, such as what had no room."""

    @abstractmethod
    def loads(self, options: Options) -> Sequence[Load]:
        """In the order of the report."""


def fill_pgbench(cluster: Cluster, scales: Sequence[int]) -> None:
    """A database per scale, and the scripts pgbench runs besides its own."""
    write_scripts(cluster.supervisor)
    for scale in scales:
        if not cluster.room_for_scale(scale):
            raise BenchError(
                f"no room for scale {scale} in {cluster.directory};"
                " give smaller --scales, or another --work-dir"
            )
        say(f"filling scale {scale}")
        cluster.create_pgbench_database(scale)
