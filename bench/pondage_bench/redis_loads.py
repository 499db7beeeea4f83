"""What is done to sides of Redis's protocol."""

from __future__ import annotations

import time

from . import memtier, pgbench, proc
from .loads import (
    CPU_DATABASE,
    CPU_GATEWAY,
    CPU_LOAD,
    GRACE_SECONDS,
    OTHERS,
    P50,
    P99,
    PEAK,
    WAL,
    WAL_SYNCS,
    Context,
    Load,
    memory_metrics,
)
from .measure import Measured, run_load
from .memtier import Shape
from .pgbench import Amount, Profile
from .processes import BenchError
from .results import LoadInfo, Metric
from .sides import Side
from .sides.redis import PondageRedis, Upserts

OPERATIONS = Metric("ops", "operations/s", "", 0, True)
# With the time until all that was acknowledged is in the tables, where that comes later.
SUSTAINED = Metric("sustained", "operations/s until in rows", "", 0, True)
DATABASE = "redis"
TINY_REQUESTS = 2_000
FILL_SECONDS = 300.0


class RedisLoad(Load):
    """memtier_benchmark with one shape. Sides that read find every key there."""

    def __init__(self, key: str, title: str, shape: Shape, upsert: str | None = None) -> None:
        self.shape = shape
        #: The script with which PostgreSQL does the same, if it can.
        self.upsert = upsert
        writes = shape.sets > 0 or shape.counter
        metrics = [OPERATIONS, P50, P99, CPU_GATEWAY, CPU_DATABASE, CPU_LOAD]
        if writes:
            metrics += [SUSTAINED, WAL, WAL_SYNCS]
        words = "INCR counter" if shape.counter else f"ratio {shape.sets}:{shape.gets}"
        self.info = LoadInfo(
            key=key,
            title=title,
            command=f"memtier_benchmark, {words}, {shape.clients} clients, {shape.bytes} B, "
            f"{shape.keys} keys, pipeline {shape.pipeline}",
            primary=OPERATIONS,
            metrics=(*metrics, PEAK, OTHERS),
        )

    def refusal(self, side: Side) -> str | None:
        if isinstance(side, Upserts) and self.upsert is None:
            return "it is compared in writing one by one only"
        return super().refusal(side)

    def run(self, context: Context, side: Side) -> dict[str, float]:
        cluster = context.cluster
        # The same start for every side: empty tables, no dead rows, no checkpoint due.
        with cluster.client(DATABASE) as client:
            client.query("DROP SCHEMA IF EXISTS redis CASCADE")
            client.query("VACUUM upserts")
            client.query("CHECKPOINT")
        with context.running(side, DATABASE):
            if isinstance(side, Upserts):
                return self._upserts(context, side)
            self._fill(context, side)
            self._sync(context, side)
            proc.settle(cluster.pid)
            before = cluster.wal()
            measured = self._memtier(context, side)
            seconds = float(context.amount.seconds)
            elapsed = measured.elapsed if context.tiny else seconds
            summary = memtier.parse(measured.output, elapsed)
            behind = self._sync(context, side)
            metrics = self._metrics(measured, summary.operations)
            metrics |= {
                "ops": summary.per_second,
                "p50_ms": summary.p50_ms,
                "p99_ms": summary.p99_ms,
            }
            if behind is not None and SUSTAINED in self.info.metrics:
                metrics["sustained"] = summary.operations / (elapsed + behind)
            if side.pid is not None:
                metrics |= memory_metrics(side.pid)
        proc.settle(cluster.pid)
        after = cluster.wal()
        metrics["wal_bytes"] = (after.written - before.written) / summary.operations
        if after.syncs is not None and before.syncs is not None:
            metrics["wal_syncs"] = (after.syncs - before.syncs) / summary.operations
        return metrics

    def _fill(self, context: Context, side: Side) -> None:
        if self.shape.counter or context.tiny:
            return
        command = memtier.fill_command(self.shape, side.endpoint)
        if command is not None:
            run_load(
                command,
                gateway=side.pid,
                database=context.cluster.pid,
                timeout=FILL_SECONDS,
                directory=context.scratch,
            )

    def _sync(self, context: Context, side: Side) -> float | None:
        """Waits until what is in the journal is in the tables: so many seconds."""
        if not isinstance(side, PondageRedis) or not side.journal:
            return None
        began = time.monotonic()
        with context.cluster.client(DATABASE) as client:
            client.query("SELECT redis.sync('5 min')")
        return time.monotonic() - began

    def _memtier(self, context: Context, side: Side) -> Measured:
        requests = TINY_REQUESTS if context.tiny else None
        return run_load(
            memtier.command(self.shape, side.endpoint, context.amount.seconds, requests),
            gateway=side.pid,
            database=context.cluster.pid,
            timeout=context.amount.seconds + GRACE_SECONDS,
            directory=context.scratch,
        )

    def _upserts(self, context: Context, side: Side) -> dict[str, float]:
        profile = Profile(self.upsert or "", "prepared", self.shape.clients)
        amount = Amount(1, transactions=10) if context.tiny else context.amount
        measured = run_load(
            profile.command(
                context.cluster.bindir / "pgbench", side.endpoint, amount, scripts=context.scratch
            ),
            gateway=None,
            database=context.cluster.pid,
            timeout=context.amount.seconds + GRACE_SECONDS,
            directory=context.scratch,
        )
        summary = pgbench.parse_summary(measured.output)
        if not summary.transactions:
            raise BenchError(f"nothing was written:\n{measured.output[-800:]}")
        operations = float(summary.transactions)
        return self._metrics(measured, operations) | {"ops": summary.tps}

    def _metrics(self, measured: Measured, operations: float) -> dict[str, float]:
        micros = 1e6 / max(operations, 1.0)
        cpu = measured.cpu
        metrics = {
            "operations": operations,
            "cpu_load_us": cpu.load * micros,
            "cpu_database_us": cpu.database * micros,
            "others_cores": cpu.others,
        }
        if cpu.gateway is not None:
            metrics["cpu_gateway_us"] = cpu.gateway * micros
        return metrics
