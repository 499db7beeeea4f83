"""Reads that come again: sysbench's, with and without a cache, and what the cache costs others.

The bar is a report on caches in front of PostgreSQL, which ran sysbench's selects with 1, 4 and 8
threads. Beside the sides stands a server that answers with a constant: what sysbench itself allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import sysbench
from ..cache_loads import LagLoad, MemoryLoad, SysbenchLoad, WritersLoad
from ..loads import Load
from ..measure import run_load
from ..mirror_loads import MirroredLoad, MirrorLagLoad, MirrorWritersLoad, SnapshotLoad
from ..pgbench import Amount
from ..pgwire import PgError
from ..postgres import Cluster
from ..rounds import say
from ..scripts import write_scripts
from ..sides import NO_MEMORY, Peer, Pondage, Side, Variant, all_sides
from ..sysbench import DATABASE, Shape
from .base import Options, Workload

LEFT_OUT = ("pondage-tcp",)
SMALL, BOUNDED = "cache-1mib", "cache-64mib"
MISSING = ("misses-point-select", "misses-random-points")
AUTO = {"mode": '"auto"'}
WITHOUT_MIRRORS = {**AUTO, "mirror_memory": NO_MEMORY}
# Room for ten million rows, also while a mirror with more columns is made beside the one that
# answers; at most seven eighths of all memory may be for mirrors.
ROOMY = {**AUTO, "memory": '"6GiB"', "mirror_memory": '"5GiB"'}
VARIANTS = (
    Variant("cache", cache=ROOMY),
    Variant(SMALL, cache={**WITHOUT_MIRRORS, "memory": '"1MiB"'}, made_for=frozenset(MISSING)),
    Variant(
        BOUNDED,
        cache={**WITHOUT_MIRRORS, "memory": '"64MiB"'},
        made_for=frozenset({"memory"}),
    ),
)
# Whom tables in memory are held against; the rivals have none.
MIRRORING = frozenset({"direct", "pondage", "pondage-cache", "constant"})
PS_MODES = ("disable", "auto")
DISTRIBUTIONS = ("special", "uniform")
# Key, title, script, options.
READS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("point-select", "Point selects", "oltp_point_select", ()),
    ("read-only", "Reads in transactions", "oltp_read_only", ()),
    ("read-only-bare", "The same without transactions", "oltp_read_only", ("--skip-trx=on",)),
    ("random-points", "Ten random points", "select_random_points", ()),
    ("random-ranges", "Ten random ranges", "select_random_ranges", ()),
)
# Of the report on caches: the least and the most that its cache has to its database.
REPORTED = {
    "point-select": "2.95x - 3.5x",
    "read-only": "0.29x - 0.39x",
    "random-points": "0.2x - 3.4x",
    "random-ranges": "0.18x - 8.3x",
}
DELAY_US = 500
# So many keys for each row of the ordinary table.
KEYS_PER_ROW = 10
PREPARE_SECONDS = 600.0


class Cache(Workload):
    name = "cache"
    title = "Reads that come again, with and without a cache"

    def missing(self) -> str | None:
        return sysbench.missing()

    def settings(self) -> dict[str, str]:
        return {"wal_level": "logical"}

    def sides(self, pondage: Path, peers: Sequence[Peer]) -> list[Side]:
        sides = [side for side in all_sides(pondage, peers) if side.name not in LEFT_OUT]
        if pondage.is_file():
            after = 1 + next(at for at, side in enumerate(sides) if side.name == "pondage")
            sides[after:after] = [Pondage("pondage", pondage, variant=v) for v in VARIANTS]
        return sides

    def shown(self, options: Options, amount: Amount) -> dict[str, str]:
        return {
            "each run": f"{amount.seconds} s",
            "before each run": f"{options.warm_up} s of the same",
            "rows": f"{options.rows:,}",
            "round trip of `delay`": f"{DELAY_US} us more, by a relay of the runner's",
        }

    def prepare(self, cluster: Cluster, options: Options) -> Sequence[str]:
        write_scripts(cluster.supervisor)
        cluster.create_database(DATABASE)
        say(f"filling {options.rows:,} rows")
        run_load(
            sysbench.prepare_command(options.rows, cluster.upstream(DATABASE).endpoint()),
            gateway=None,
            database=cluster.pid,
            timeout=PREPARE_SECONDS + options.rows / 1000,
            directory=cluster.supervisor.directory,
        )
        with cluster.client(DATABASE) as client:
            client.query("VACUUM ANALYZE sbtest1")
            client.query("CHECKPOINT")
        try:
            cluster.fill_buffers(DATABASE, "sbtest%")
        except PgError as error:
            return [f"The table was not read into memory first: {error}"]
        return []

    def loads(self, options: Options) -> Sequence[Load]:
        return [
            *_mirrored(options),
            # Before anything that writes: dead rows would make the heap larger than its rows.
            *_copies(options),
            *_reads(options),
            *_misses(options),
            *_delayed(options),
            *_writers(options),
            *_of_mirrors(options),
            LagLoad(options.rows, frozenset({"direct", "pondage", "pondage-cache"})),
            MemoryLoad(
                options.rows * KEYS_PER_ROW, frozenset({"pondage", f"pondage-{BOUNDED}"})
            ),
        ]  # fmt: skip


def _how(threads: int, ps_mode: str, distribution: str) -> str:
    statements = "literals" if ps_mode == "disable" else "prepared"
    return f"{threads} thread{'s' if threads > 1 else ''}, {statements}, {distribution}"


def _reads(options: Options) -> list[Load]:
    """Only where an answer belongs to one row can a cache be given all there are."""
    return [
        SysbenchLoad(
            f"{key}@{threads}-{ps_mode}-{distribution}",
            f"{title}, {_how(threads, ps_mode, distribution)}",
            Shape(script, threads, options.rows, ps_mode, distribution, more),
            warm_up=options.warm_up,
            fill=key == "point-select",
        )
        for key, title, script, more in READS
        for distribution in DISTRIBUTIONS
        for ps_mode in PS_MODES
        for threads in options.threads
    ]


def _mirrored(options: Options) -> list[Load]:
    """The report's table, with keys that hardly ever come again."""
    return [
        MirroredLoad(
            f"mirror-{key}@{threads}-{ps_mode}",
            f"With mirrors: {script}, {_how(threads, ps_mode, 'uniform')}",
            Shape(script, threads, options.rows, ps_mode, "uniform", more),
            warm_up=options.warm_up,
            only=MIRRORING,
            reported=REPORTED[key],
        )
        for key, _, script, more in READS
        if key in REPORTED
        for ps_mode in PS_MODES
        for threads in options.threads
    ]


def _copies(options: Options) -> list[Load]:
    copies = (("id-k", "(id, k)", " COLUMNS (id, k)"), ("rows", "whole rows", ""))
    return [
        SnapshotLoad(
            f"snapshot@{key}", f"Copy of {what}, {options.rows:,} rows", columns,
            options.rows, frozenset({"pondage-cache"}),
        )
        for key, what, columns in copies
    ]  # fmt: skip


def _of_mirrors(options: Options) -> list[Load]:
    """How late mirrors are, and what they cost those who write."""
    threads = _middle(options.threads)
    return [
        MirrorLagLoad(options.rows, MIRRORING - {"constant"}),
        MirrorWritersLoad(
            f"mirror-writers@{threads}", f"Updates by {threads} threads of a table with a mirror",
            Shape("oltp_update_index", threads, options.rows),
            warm_up=options.warm_up, reads=False, only=MIRRORING - {"constant"},
        ),
    ]  # fmt: skip


def _misses(options: Options) -> list[Load]:
    """Keys that are not kept: a cache that has seen nothing, and one without room."""
    threads = _middle(options.threads)
    scripts = ("oltp_point_select", "select_random_points")
    return [
        SysbenchLoad(
            f"{key}@{threads}-{ps_mode}",
            f"Misses: {script}, {_how(threads, ps_mode, 'uniform')}",
            Shape(script, threads, options.rows, ps_mode, "uniform"),
            warm_up=1,
        )
        for key, script in zip(MISSING, scripts, strict=True)
        for ps_mode in PS_MODES
    ]


def _delayed(options: Options) -> list[Load]:
    shapes = (
        ("point-select", "oltp_point_select", "disable"),
        ("point-select", "oltp_point_select", "auto"),
        ("read-only", "oltp_read_only", "disable"),
    )
    return [
        SysbenchLoad(
            f"delay-{key}@{threads}-{ps_mode}",
            f"{DELAY_US} us to PostgreSQL: {script}, {_how(threads, ps_mode, 'special')}",
            Shape(script, threads, options.rows, ps_mode),
            warm_up=options.warm_up,
            delay_us=DELAY_US,
        )
        for key, script, ps_mode in shapes
        for threads in options.threads
    ]


def _writers(options: Options) -> list[Load]:
    threads = _middle(options.threads)
    updates = Shape("oltp_update_index", threads, options.rows)
    return [
        WritersLoad(
            f"{key}@{threads}", f"Updates by {threads} threads, {beside}", updates,
            warm_up=options.warm_up, reads=reads,
        )
        for key, beside, reads in (
            ("writers", "others read the same rows", True),
            ("writers-alone", "nobody reads", False),
        )
    ]  # fmt: skip


def _middle(threads: Sequence[int]) -> int:
    return sorted(threads)[len(threads) // 2]
