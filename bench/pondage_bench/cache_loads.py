"""What is done to sides that may keep answers: sysbench, and what a cache costs others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from . import pgbench, proc, sysbench
from .delay import delayed
from .loads import (
    CPU_DATABASE,
    CPU_GATEWAY,
    CPU_LOAD,
    GRACE_SECONDS,
    LATENCY,
    OTHERS,
    P99,
    PEAK,
    PSS,
    Context,
    Load,
    memory_metrics,
)
from .measure import Cpu, Measured, run_load
from .pgbench import Amount, Profile
from .pgwire import Client
from .processes import BenchError
from .results import LoadInfo, Metric
from .rounds import say
from .scripts import CHANGES, CHANGES_ROWS
from .sides import Pondage, Side
from .stats import percentile
from .sysbench import DATABASE, Shape, Summary

QUERIES = Metric("qps", "queries/s", "", 0, True)
HIT_PERCENT = Metric("hit_percent", "hits", "%", 1, None)
MIRRORED_PERCENT = Metric("mirrored_percent", "answered by mirrors", "%", 1, None)
HITS = Metric("hits", "hits", "", 0, None)
MISSES = Metric("misses", "misses", "", 0, None)
FILLS = Metric("fills", "kept", "", 0, None)
WAITS = Metric("waits", "waits for the stream", "", 0, None)
UNSETTLED = Metric("unsettled", "not kept, as a change was under way", "", 0, None)
TOO_OLD = Metric("too_old", "given up waiting", "", 0, None)
EVICTED = Metric("evicted", "dropped for room", "", 0, None)
WRITES = Metric("qps", "updates/s", "", 0, True)
READS = Metric("reads", "reads/s beside", "", 0, None)
READS_P99 = Metric("reads_p99_ms", "p99 of reads", "ms", 3)
KEPT_PEAK = Metric("peak_mib", "gateway peak RSS", "MiB", 1)
LAG_P50 = Metric("lag_p50_ms", "commit to new value, p50", "ms", 3)
LAG_P99 = Metric("lag_p99_ms", "p99", "ms", 3)
LAG_MAX = Metric("lag_max_ms", "longest", "ms", 3)
OLD_PERCENT = Metric("old_percent", "first read was old", "%", 1, None)
CHANGED = Metric("changed", "row changes/s beside", "", 0, None)

# Counters `pondage_cache_..._total` of the metrics page.
COUNTED = (
    "hits", "misses", "fills", "waits", "too_old", "unsettled", "unserved", "evicted", "mirrored",
)  # fmt: skip
TINY_EVENTS = 200
FILL_SECONDS = 1800.0
# Enough for each statement of an event to be looked at, few enough to keep next to nothing.
FIRST_EVENTS = 200
MOVES = 3
MOVE_SECONDS = 0.3
# Where there are far more keys than fit in a cache, and how long they are read: long enough that
# it has to drop what it has kept.
KEYS_DATABASE = "sysbench_keys"
MEMORY_SECONDS = 60
READS_A_SECOND = 2000
READERS = 2
CHANGES_A_SECOND = 5000
CHANGERS = 4
# Between two looks for the new value.
LOOK_SECONDS = 0.0001
# Between two changes, so that the old value is kept before the next one.
PAUSE_SECONDS = 0.02
# Reads after each change, so that the value is kept.
READS_TO_KEEP = 3
LOST_SECONDS = 10.0
TINY_CHANGES = 20


@dataclass(frozen=True)
class Counted:
    """What a cache has told until now, by name; nothing where there is none."""

    figures: Mapping[str, float]

    @classmethod
    def of(cls, side: Side) -> Counted:
        if not isinstance(side, Pondage) or not side.caches:
            return cls({})
        told = side.figures()
        totals = {name: f"pondage_cache_{name}_total" for name in COUNTED}
        return cls({name: told[total] for name, total in totals.items() if total in told})

    def since(self, before: Counted) -> dict[str, float]:
        metrics = {
            name: figure - before.figures.get(name, 0.0) for name, figure in self.figures.items()
        }
        looks = metrics.get("hits", 0.0) + metrics.get("misses", 0.0)
        if looks:
            metrics["hit_percent"] = 100.0 * metrics.get("hits", 0.0) / looks
            if "mirrored" in metrics:
                metrics["mirrored_percent"] = 100.0 * metrics["mirrored"] / looks
        return metrics


def events_of(context: Context) -> int | None:
    return TINY_EVENTS if context.tiny else None


def run_sysbench(context: Context, side: Side, shape: Shape, seconds: int) -> Measured:
    return run_load(
        sysbench.command(shape, side.endpoint, seconds, events_of(context)),
        gateway=side.pid,
        database=context.cluster.pid,
        timeout=seconds + GRACE_SECONDS,
        directory=context.scratch,
    )


def run_fill(context: Context, side: Side, shape: Shape) -> None:
    run_load(
        sysbench.fill_command(shape, side.endpoint),
        gateway=side.pid,
        database=context.cluster.pid,
        timeout=FILL_SECONDS,
        directory=context.scratch,
    )


def cpu_metrics(cpu: Cpu, operations: float) -> dict[str, float]:
    micros = 1e6 / max(operations, 1.0)
    metrics = {
        "operations": operations,
        "cpu_load_us": cpu.load * micros,
        "cpu_database_us": cpu.database * micros,
        "others_cores": cpu.others,
    }
    if cpu.gateway is not None:
        metrics["cpu_gateway_us"] = cpu.gateway * micros
    return metrics


def make_known(context: Context, side: Side, shape: Shape) -> None:
    """A cache learns what the statements depend on, and begins to watch it: it does that when the
    database's log moves, for which an idle database may need seconds.
    """
    if not isinstance(side, Pondage) or not side.caches:
        return
    side.wait_for_stream()
    run_load(
        sysbench.command(shape, side.endpoint, 0, FIRST_EVENTS),
        gateway=side.pid,
        database=context.cluster.pid,
        timeout=GRACE_SECONDS,
        directory=context.scratch,
    )
    for _ in range(MOVES):
        time.sleep(MOVE_SECONDS)
        with context.cluster.client(side.endpoint.database) as client:
            client.query("UPDATE sbtest1 SET id = id WHERE id = 1")
    time.sleep(MOVE_SECONDS)


class CacheLoad(Load):
    """`only` names the sides that can take part, where not all can."""

    only: frozenset[str] = frozenset()
    prepared = False
    writes = False

    def refusal(self, side: Side) -> str | None:
        if self.only and side.name not in self.only:
            return f"it is for {', '.join(sorted(self.only))}"
        if self.writes and not side.stores:
            return "it stores nothing"
        if self.prepared and side.refuses_prepared():
            return side.refuses_prepared()
        return super().refusal(side)


class SysbenchLoad(CacheLoad):
    """sysbench with one shape. Before it, every side gets the same load for `warm_up` seconds; a
    cache is given every row first if `fill` says so. `reported` is what the report's cache has to
    its database.
    """

    before = "the same"

    def __init__(
        self,
        key: str,
        title: str,
        shape: Shape,
        *,
        warm_up: int,
        fill: bool = False,
        delay_us: int = 0,
        only: frozenset[str] = frozenset(),
        reported: str = "",
    ) -> None:
        self.shape = shape
        self.only = only
        self.prepared = shape.ps_mode != "disable"
        self.warm_up = warm_up
        self.fill = fill
        self.delay_us = delay_us
        before = f"; before it: {self.before} for {warm_up} s"
        before += ", caches are asked for every row" if fill else ""
        self.info = LoadInfo(
            key=key,
            title=title,
            command=shape.shown() + before,
            primary=QUERIES,
            metrics=(
                QUERIES, LATENCY, P99, HIT_PERCENT, MIRRORED_PERCENT, HITS, MISSES, FILLS,
                CPU_GATEWAY, CPU_DATABASE, CPU_LOAD, PEAK, PSS, OTHERS,
            ),
            reported=reported,
        )  # fmt: skip

    @contextmanager
    def _running(self, context: Context, side: Side) -> Iterator[None]:
        if not self.delay_us:
            with context.running(side, DATABASE):
                yield
            return
        upstream = context.cluster.upstream(DATABASE)
        with delayed(context.supervisor, upstream, self.delay_us) as away:
            side.start(context.supervisor, away)
            try:
                yield
            finally:
                side.stop()

    def run(self, context: Context, side: Side) -> dict[str, float]:
        with self._running(context, side):
            make_known(context, side, self.shape)
            if self.fill and isinstance(side, Pondage) and side.caches:
                run_fill(context, side, self.shape)
            self.warm(context, side)
            before = Counted.of(side)
            measured = run_sysbench(context, side, self.shape, context.amount.seconds)
            metrics = Counted.of(side).since(before)
            summary = sysbench.parse(measured.output)
            metrics |= self._metrics(summary, measured)
            if side.pid is not None:
                metrics |= memory_metrics(side.pid)
        return metrics

    def warm(self, context: Context, side: Side) -> None:
        run_sysbench(context, side, self.shape, self.warm_up)

    def _metrics(self, summary: Summary, measured: Measured) -> dict[str, float]:
        return {
            "qps": summary.per_second,
            "latency_ms": summary.average_ms,
            "p99_ms": summary.percentile_ms,
            **cpu_metrics(measured.cpu, summary.queries),
        }


class WritersLoad(CacheLoad):
    """Updates through the side, alone or while others read at a rate that is the same for all:
    faster answers must not turn into more readers for the writers to wait for.
    """

    writes = True

    def __init__(
        self,
        key: str,
        title: str,
        shape: Shape,
        *,
        warm_up: int,
        reads: bool,
        only: frozenset[str] = frozenset(),
    ) -> None:
        self.shape = shape
        self.only = only
        self.warm_up = warm_up
        self.readers = (
            replace(shape, script="oltp_point_select", threads=READERS, rate=READS_A_SECOND)
            if reads
            else None
        )
        beside = f"; beside it: {self.readers.shown()}" if self.readers else ""
        metrics = [WRITES, LATENCY, P99]
        if reads:
            metrics += [READS, READS_P99, HIT_PERCENT, MISSES, WAITS, TOO_OLD, UNSETTLED]
        metrics += [CPU_GATEWAY, CPU_DATABASE, CPU_LOAD, PEAK, OTHERS]
        self.info = LoadInfo(
            key=key,
            title=title,
            command=shape.shown() + beside,
            primary=WRITES,
            metrics=tuple(metrics),
        )

    def standing(self, context: Context, side: Side) -> AbstractContextManager[object]:
        """The side in front of the database, with all that has to be there before."""
        return context.running(side, DATABASE)

    def run(self, context: Context, side: Side) -> dict[str, float]:
        # The same start for every side: no dead rows, no checkpoint due.
        with context.cluster.client(DATABASE) as client:
            client.query("VACUUM sbtest1")
            client.query("CHECKPOINT")
        seconds = context.amount.seconds
        with self.standing(context, side), ThreadPoolExecutor(1) as background:
            if self.readers is not None:
                # As many as there can be, so that what is read often is kept.
                readers = replace(self.readers, rate=0)
                make_known(context, side, readers)
                run_sysbench(context, side, readers, self.warm_up)
            run_sysbench(context, side, self.shape, 1)
            before = Counted.of(side)
            reading = None
            if self.readers is not None:
                reading = background.submit(run_sysbench, context, side, self.readers, seconds)
            measured = run_sysbench(context, side, self.shape, seconds)
            read = sysbench.parse(reading.result().output) if reading else None
            metrics = Counted.of(side).since(before)
            summary = sysbench.parse(measured.output)
            if side.pid is not None:
                metrics |= memory_metrics(side.pid)
        operations = summary.queries + (read.queries if read else 0)
        metrics |= cpu_metrics(measured.cpu, operations)
        metrics |= {
            "qps": summary.per_second,
            "latency_ms": summary.average_ms,
            "p99_ms": summary.percentile_ms,
        }
        if read is not None:
            metrics |= {"reads": read.per_second, "reads_p99_ms": read.percentile_ms}
        return metrics


class MemoryLoad(CacheLoad):
    """Keys at random out of many, each so often that it is kept, with little memory for them."""

    def __init__(self, keys: int, only: frozenset[str]) -> None:
        self.shape = Shape(str(sysbench.FILL), sysbench.FILL_THREADS, keys, distribution="uniform")
        self.only = only
        self._filled = False
        self.info = LoadInfo(
            key="memory",
            title=f"Memory: {keys:,} keys at random",
            command=f"{self.shape.shown()}, {MEMORY_SECONDS} s",
            primary=KEPT_PEAK,
            metrics=(KEPT_PEAK, PSS, QUERIES, HIT_PERCENT, FILLS, EVICTED, CPU_GATEWAY, OTHERS),
        )

    def run(self, context: Context, side: Side) -> dict[str, float]:
        if not self._filled:
            self._create(context)
        with context.running(side, KEYS_DATABASE):
            make_known(context, side, Shape("oltp_point_select", 1, self.shape.rows))
            before = Counted.of(side)
            # Not by events: even a tiny run asks for a block of keys in each.
            command = sysbench.command(
                self.shape, side.endpoint, 1 if context.tiny else MEMORY_SECONDS, None
            )
            measured = run_load(
                command,
                gateway=side.pid,
                database=context.cluster.pid,
                timeout=MEMORY_SECONDS + GRACE_SECONDS,
                directory=context.scratch,
            )
            summary = sysbench.parse(measured.output)
            metrics = Counted.of(side).since(before)
            metrics |= {"qps": summary.per_second, **cpu_metrics(measured.cpu, summary.queries)}
            if side.pid is None:
                raise BenchError(f"{side.name} has no process of its own")
            metrics |= memory_metrics(side.pid)
        return metrics

    def _create(self, context: Context) -> None:
        """Only where the load is chosen: it is large."""
        say(f"filling {self.shape.rows:,} keys")
        context.cluster.create_database(KEYS_DATABASE)
        with context.cluster.client(KEYS_DATABASE) as client:
            client.query("CREATE TABLE sbtest1 (id int PRIMARY KEY, c text NOT NULL)")
            client.query(
                "INSERT INTO sbtest1 SELECT n, md5(n::text)"
                f" FROM generate_series(1, {self.shape.rows}) n"
            )
            client.query("VACUUM ANALYZE sbtest1")
        self._filled = True


READ_PROBE = "SELECT v FROM probe WHERE id = 1"


@dataclass(frozen=True)
class Lag:
    """From the answer to a commit to the answer with its value, the first or a later one."""

    milliseconds: float
    looks: int


class LagLoad(CacheLoad):
    """How long after a commit its value is read through the side, while rows change beside it. The
    changes do not pass through the side, so the stream alone tells it of them.
    """

    writes = True
    key = "lag"
    title = f"Lag: {CHANGES_A_SECOND:,} row changes a second beside the gateway"
    #: How it was answered.
    told: tuple[Metric, ...] = (HIT_PERCENT,)

    def __init__(self, rows: int, only: frozenset[str]) -> None:
        self.only = only
        self.profile = Profile(
            CHANGES, "prepared", CHANGERS, scale=max(1, rows // CHANGES_ROWS),
            rate=CHANGES_A_SECOND // CHANGES_ROWS,
        )  # fmt: skip
        self.info = LoadInfo(
            key=self.key,
            title=self.title,
            command=f"one row updated by a connection to PostgreSQL and read through the side; "
            f"beside it: {self.profile.shown()}",
            primary=LAG_P99,
            metrics=(
                LAG_P99, LAG_P50, LAG_MAX, OLD_PERCENT, CHANGED, *self.told, WAITS,
                CPU_GATEWAY, PEAK, OTHERS,
            ),
        )  # fmt: skip

    def standing(self, context: Context, side: Side) -> AbstractContextManager[object]:
        return context.running(side, DATABASE)

    def look(self, reader: Client) -> str | None:
        """The value as the side gives it."""
        rows = reader.query(READ_PROBE)
        return rows[0][0] if rows else None

    def run(self, context: Context, side: Side) -> dict[str, float]:
        cluster = context.cluster
        with cluster.client(DATABASE) as client:
            client.query("CREATE TABLE IF NOT EXISTS probe (id int PRIMARY KEY, v bigint NOT NULL)")
            client.query("INSERT INTO probe VALUES (1, 0) ON CONFLICT DO NOTHING")
            client.query("VACUUM sbtest1, probe")
            client.query("CHECKPOINT")
        with self.standing(context, side), ThreadPoolExecutor(1) as background:
            if isinstance(side, Pondage) and side.caches:
                side.wait_for_stream()
            before = Counted.of(side)
            changing = background.submit(self._change, context, side)
            lags = self._probe(context, side)
            measured = changing.result()
            metrics = Counted.of(side).since(before)
            if side.pid is not None:
                metrics |= memory_metrics(side.pid)
        summary = pgbench.parse_summary(measured.output)
        times = sorted(lag.milliseconds for lag in lags)
        metrics |= cpu_metrics(measured.cpu, summary.transactions * CHANGES_ROWS)
        return metrics | {
            "lag_p50_ms": percentile(times, 50),
            "lag_p99_ms": percentile(times, 99),
            "lag_max_ms": times[-1],
            "old_percent": 100.0 * sum(lag.looks > 1 for lag in lags) / len(lags),
            "changed": summary.tps * CHANGES_ROWS,
        }

    def _change(self, context: Context, side: Side) -> Measured:
        cluster = context.cluster
        amount = Amount(1, transactions=100) if context.tiny else context.amount
        return run_load(
            self.profile.command(
                cluster.bindir / "pgbench",
                cluster.upstream(DATABASE).endpoint(),
                amount,
                scripts=context.scratch,
            ),
            gateway=side.pid,
            database=cluster.pid,
            timeout=context.amount.seconds + GRACE_SECONDS,
            directory=context.scratch,
        )

    def _probe(self, context: Context, side: Side) -> list[Lag]:
        lags: list[Lag] = []
        ends = time.monotonic() + context.amount.seconds
        with context.cluster.client(DATABASE) as writer, Client(side.endpoint) as reader:
            (value,) = (int(row[0] or 0) for row in writer.query("SELECT v FROM probe"))
            while time.monotonic() < ends or not lags:
                for _ in range(READS_TO_KEEP):
                    self.look(reader)
                    time.sleep(PAUSE_SECONDS / READS_TO_KEEP)
                value += 1
                lags.append(self._until_read(writer, reader, value))
                if context.tiny and len(lags) >= TINY_CHANGES:
                    break
        return lags

    def _until_read(self, writer: Client, reader: Client, value: int) -> Lag:
        writer.query(f"UPDATE probe SET v = {value} WHERE id = 1")
        committed = time.monotonic()
        looks = 0
        while True:
            looks += 1
            read = self.look(reader)
            took = time.monotonic() - committed
            if read == str(value):
                return Lag(took * 1e3, looks)
            if took > LOST_SECONDS:
                raise BenchError(f"{read} is read {took:.0f} s after {value} was committed")
            time.sleep(LOOK_SECONDS)
