"""What is done to sides that may hold tables in memory: reads whose parameters never come again,
copies of a table, how late a mirror is, and what it costs those who write.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from .cache_loads import (
    CHANGES_A_SECOND,
    HIT_PERCENT,
    MIRRORED_PERCENT,
    CacheLoad,
    LagLoad,
    SysbenchLoad,
    WritersLoad,
    run_sysbench,
)
from .loads import PEAK, PSS, Context, memory_metrics
from .pgwire import Client
from .processes import BenchError
from .results import LoadInfo, Metric
from .sides import Mirror, Pondage, Side
from .sysbench import DATABASE, Shape

COPY_RATE = Metric("rows_per_second", "copied", "rows/s", 0, True)
COPY_SECONDS = Metric("seconds", "until it answers", "s", 2)
ROW_BYTES = Metric("row_bytes", "memory", "B/row", 1)
HEAP_RATIO = Metric("heap_ratio", "memory per heap byte", "", 3)
MIRROR_READY = "ready"
# Of a copy: some seconds for any table, and a rate far below what is hoped for.
COPY_GRACE_SECONDS = 60.0
SLOW_ROWS_A_SECOND = 20_000
LOOK_SECONDS = 0.01
# A mirror that gets more columns is made anew beside the one that answers, so it has to be the
# same after several seconds of the load.
STEADY_LOOKS = 2


def copy_seconds(rows: int) -> float:
    return COPY_GRACE_SECONDS + rows / SLOW_ROWS_A_SECOND


def wait_for_mirror(side: Pondage, table: str, rows: int) -> Mirror:
    """The mirror of `table`, once it answers; BenchError with what it waits for if it is late."""
    deadline = time.monotonic() + copy_seconds(rows)
    while True:
        found = [mirror for mirror in side.mirrors() if mirror.table.endswith(table)]
        if len(found) == 1 and found[0].state == MIRROR_READY:
            return found[0]
        if time.monotonic() > deadline:
            raise BenchError(f"{side.name} has no mirror of {table} in time: {found}")
        time.sleep(LOOK_SECONDS)


def warm_until_mirrored(context: Context, side: Side, shape: Shape) -> None:
    """The load itself asks for its mirrors, a second at a time, until they stay as they are."""
    if not isinstance(side, Pondage) or not side.mirrors_tables or context.tiny:
        return
    deadline = time.monotonic() + copy_seconds(shape.rows)
    before: list[tuple[str, str]] = []
    steady = 0
    while steady < STEADY_LOOKS:
        run_sysbench(context, side, shape, 1)
        mirrors = side.mirrors()
        ready = bool(mirrors) and all(mirror.state == MIRROR_READY for mirror in mirrors)
        columns = [(mirror.table, mirror.columns) for mirror in mirrors]
        steady = steady + 1 if ready and columns == before else 0
        before = columns
        if time.monotonic() > deadline:
            raise BenchError(f"{side.name} has no mirrors in time: {mirrors}")


class MirroredLoad(SysbenchLoad):
    """sysbench with keys that hardly ever come again, measured when the mirrors stand."""

    before = "until mirrors answer, then the same"

    def warm(self, context: Context, side: Side) -> None:
        warm_until_mirrored(context, side, self.shape)
        super().warm(context, side)


class SnapshotLoad(CacheLoad):
    """A copy of the whole table, from the wish for it until the mirror answers."""

    def __init__(self, key: str, title: str, columns: str, rows: int, only: frozenset[str]) -> None:
        self.columns = columns
        self.rows = rows
        self.only = only
        self.wish = f"MIRROR TABLE sbtest1{columns} IN DATABASE {DATABASE}"
        self.info = LoadInfo(
            key=key,
            title=title,
            command=f"{self.wish}, {rows:,} rows",
            primary=COPY_RATE,
            metrics=(COPY_RATE, COPY_SECONDS, ROW_BYTES, HEAP_RATIO, PEAK, PSS),
        )

    def run(self, context: Context, side: Side) -> dict[str, float]:
        if not isinstance(side, Pondage):
            raise BenchError(f"{side.name} has no mirrors")
        heap = float(context.cluster.scalar("SELECT pg_relation_size('sbtest1')", DATABASE))
        with context.running(side, DATABASE):
            side.wait_for_stream()
            begun = time.monotonic()
            side.command(self.wish)
            mirror = wait_for_mirror(side, "sbtest1", self.rows)
            seconds = time.monotonic() - begun
            metrics = memory_metrics(side.pid) if side.pid is not None else {}
        if not mirror.rows:
            raise BenchError(f"{side.name} copied no rows: {mirror}")
        return metrics | {
            "rows_per_second": mirror.rows / seconds,
            "seconds": seconds,
            "row_bytes": mirror.bytes / mirror.rows,
            "heap_ratio": mirror.bytes / heap,
        }


@contextmanager
def _standing(context: Context, side: Side, wishes: Mapping[str, int]) -> Iterator[None]:
    """With mirrors of (id, k) or of what else the wishes name, by how many rows each has."""
    with context.running(side, DATABASE):
        if isinstance(side, Pondage) and side.mirrors_tables:
            side.wait_for_stream()
            for table, rows in wishes.items():
                side.command(f"MIRROR TABLE {table} IN DATABASE {DATABASE}")
                wait_for_mirror(side, table.split()[0], rows)
        yield


CHANGED_COLUMNS = "sbtest1 COLUMNS (id, k)"


class MirrorLagLoad(LagLoad):
    """As LagLoad, with mirrors of both tables and reads that are never asked twice, so that no
    kept result can answer them.
    """

    key = "mirror-lag"
    title = f"Lag of a mirror: {CHANGES_A_SECOND:,} row changes a second beside the gateway"
    told = (HIT_PERCENT, MIRRORED_PERCENT)

    def __init__(self, rows: int, only: frozenset[str]) -> None:
        super().__init__(rows, only)
        self.rows = rows
        self._asked = 0

    def standing(self, context: Context, side: Side) -> AbstractContextManager[object]:
        return _standing(context, side, {CHANGED_COLUMNS: self.rows, "probe": 1})

    def look(self, reader: Client) -> str | None:
        self._asked += 1
        rows = reader.query(f"SELECT v FROM probe WHERE id = 1 AND v >= -{self._asked}")
        return rows[0][0] if rows else None


class MirrorWritersLoad(WritersLoad):
    """Updates through the side while a mirror of what they change stands."""

    def standing(self, context: Context, side: Side) -> AbstractContextManager[object]:
        return _standing(context, side, {CHANGED_COLUMNS: self.shape.rows})
