"""Statements of different clients that share trips to PostgreSQL, and what bounds that.

Beside the sides stand three limits, in the same rounds: PostgreSQL asked as it answers fastest
(`limit`), the load against a server that costs next to nothing (`constant`), and Pondage in front
of such a server (`pondage-constant`), which is what the gateway itself can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..loads import Load, PgbenchLoad
from ..pgbench import Profile
from ..pgwire import PgError
from ..postgres import Cluster
from ..scripts import DEEP_PIPELINE_DEPTH, DEEPLY_PIPELINED, SINGLE_ROW_WRITES
from ..sides import Limit, Peer, Pondage, PondageOnConstant, Side, Variant, all_sides
from .base import Options, Workload, fill_pgbench

# By default all steps are on that are safe.
VARIANTS = (
    Variant("off", {"coalesce": '"off"'}),
    Variant("pipeline", {"coalesce": '"pipeline"', "prepare_simple": "false"}),
    Variant("trains", {"coalesce_writes": "true"}, made_for=frozenset({"writes"})),
)
# The same ways to PostgreSQL for all: a Unix socket for Pondage, the rivals' both.
LEFT_OUT = ("pondage-tcp",)
# Few enough connections to keep PostgreSQL busy without switching between them.
LIMIT_CONNECTIONS = 2
LIMIT_WRITERS = 8


class Coalesce(Workload):
    name = "coalesce"
    title = "Statements of many clients that share trips"
    scales = (100,)

    def sides(self, pondage: Path, peers: Sequence[Peer]) -> list[Side]:
        sides = [side for side in all_sides(pondage, peers) if side.name not in LEFT_OUT]
        if pondage.is_file():
            after = 1 + next(at for at, side in enumerate(sides) if side.name == "pondage")
            sides[after:after] = [Pondage("pondage", pondage, variant=v) for v in VARIANTS]
            sides.append(PondageOnConstant("pondage", pondage))
        return [*sides, Limit()]

    def prepare(self, cluster: Cluster, options: Options) -> Sequence[str]:
        fill_pgbench(cluster, options.scales)
        try:
            for scale in options.scales:
                cluster.fill_buffers(f"scale{scale}")
        except PgError as error:
            return [f"The tables were not read into memory first: {error}"]
        return []

    def loads(self, options: Options) -> Sequence[Load]:
        loads: list[Load] = []
        for scale in options.scales:
            loads += _selects(scale, options.clients)
            loads += _alone(scale)
            # Last, as they change the tables.
            loads += _writes(scale, options.clients)
        return loads


def _selects(scale: int, clients: int) -> list[Load]:
    limit = Profile(DEEPLY_PIPELINED, "prepared", LIMIT_CONNECTIONS, scale=scale)
    kinds = (
        ("prepared", f"Prepared selects, {clients} clients"),
        ("simple", f"Selects in the simple protocol, {clients} clients"),
        ("extended", f"Selects parsed every time, {clients} clients"),
    )
    return [
        PgbenchLoad(
            f"select-{protocol}",
            f"{title} (limit: pipelines of {DEEP_PIPELINE_DEPTH} prepared selects)",
            Profile("select-only", protocol, clients), scale, limit=limit, count_calls=True,
        )
        for protocol, title in kinds
    ]  # fmt: skip


def _alone(scale: int) -> list[Load]:
    return [
        PgbenchLoad(
            f"one-{protocol}", f"One client, {protocol} selects",
            Profile("select-only", protocol, 1, log=True), scale, count_calls=True,
        )
        for protocol in ("prepared", "simple")
    ]  # fmt: skip


def _writes(scale: int, clients: int) -> list[Load]:
    fewer = min(LIMIT_WRITERS, clients)
    return [
        PgbenchLoad(
            "tpcb", f"TPC-B, {clients} clients (limit: {fewer} clients)",
            Profile("tpcb-like", "simple", clients), scale,
            limit=Profile("tpcb-like", "simple", fewer),
        ),
        PgbenchLoad(
            "writes", f"Single-row writes, each its own transaction, {clients} clients",
            Profile(SINGLE_ROW_WRITES, "simple", clients, scale=scale), scale,
        ),
    ]  # fmt: skip
