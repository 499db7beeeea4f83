"""A load: one thing done to every side in every round. Workloads are lists of loads."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import pgbench, proc, syscalls
from .door import OPEN, Door
from .measure import Cpu, Measured, run_load
from .pgbench import Amount, Profile
from .postgres import POOL_SIZE, Cluster, Wal
from .processes import BenchError, Supervisor
from .results import LoadInfo, Metric, SystemCalls
from .sides import Gateway, Limit, Side

# Before the measured run: opens the pool and fills caches.
WARM_UP = Amount(seconds=0, transactions=10)
STRACED = Amount(seconds=2)
# Seconds a run may take over what it was asked for.
GRACE_SECONDS = 60.0

TPS = Metric("tps", "transactions/s", "", 0, True)
STATEMENTS = Metric("tps", "statements/s", "", 0, True)
LATENCY = Metric("latency_ms", "average", "ms", 3)
P50 = Metric("p50_ms", "p50", "ms", 3)
P99 = Metric("p99_ms", "p99", "ms", 3)
CPU_GATEWAY = Metric("cpu_gateway_us", "gateway CPU", "us/op", 1)
CPU_DATABASE = Metric("cpu_database_us", "database CPU", "us/op", 1)
CPU_LOAD = Metric("cpu_load_us", "load CPU", "us/op", 1)
WAL = Metric("wal_bytes", "WAL", "B/op", 0, None)
WAL_SYNCS = Metric("wal_syncs", "WAL syncs", "per op", 3, None)
PEAK = Metric("peak_mib", "gateway peak RSS", "MiB", 1)
PSS = Metric("pss_mib", "gateway PSS", "MiB", 1)
OTHERS = Metric("others_cores", "others' CPU", "cores", 2, None)


@dataclass(frozen=True)
class Context:
    """What loads run with. `tiny` asks for the least that still exercises everything."""

    supervisor: Supervisor
    cluster: Cluster
    amount: Amount
    tiny: bool
    #: The present one, from 1: what is drawn at random is drawn anew in each, alike for all sides.
    round: int = 1

    @property
    def scratch(self) -> Path:
        return self.supervisor.directory

    @contextmanager
    def running(
        self, side: Side, database: str, pool_size: int = POOL_SIZE, door: Door = OPEN
    ) -> Iterator[Side]:
        """`side`, freshly started in front of `database`, stopped again afterwards."""
        side.start(self.supervisor, self.cluster.upstream(database, pool_size, door))
        try:
            yield side
        finally:
            side.stop()


class Load(ABC):
    """Subclasses say what they do, and do it to one side at a time."""

    info: LoadInfo

    def refusal(self, side: Side) -> str | None:
        """Why `side` takes no part, or None."""
        if side.made_for and self.info.key.partition("@")[0] not in side.made_for:
            return f"it differs from the others only under {', '.join(sorted(side.made_for))}"
        return None

    @abstractmethod
    def run(self, context: Context, side: Side) -> dict[str, float]:
        """Starts `side`, measures it, stops it; metrics by key. BenchError when it failed."""

    def count_system_calls(self, context: Context, side: Side) -> SystemCalls | None:
        """In a run of its own; None where that makes no sense."""
        return None


class PgbenchLoad(Load):
    """pgbench with one profile on the database of one scale.

    `limit` is the profile that gets the most out of PostgreSQL for the same work; the side of that
    name runs it instead.
    """

    def __init__(
        self,
        key: str,
        title: str,
        profile: Profile,
        scale: int,
        *,
        limit: Profile | None = None,
        count_calls: bool = False,
    ) -> None:
        self.profile = profile
        self.limit = limit
        self.database = f"scale{scale}"
        self._count_calls = count_calls
        one_each = all(known.statements == 1 for known in (profile, limit) if known)
        primary = TPS if one_each else STATEMENTS
        timing = [P50, P99] if profile.log else [LATENCY]
        metrics = [primary, *timing, CPU_GATEWAY, CPU_DATABASE, CPU_LOAD]
        if profile.writes:
            metrics += [WAL, WAL_SYNCS]
        metrics += [PEAK, PSS, OTHERS]
        self.info = LoadInfo(
            key=f"{key}@{scale}",
            title=f"{title}, scale {scale}",
            command=profile.shown() + (f"; limit: {limit.shown()}" if limit else ""),
            primary=primary,
            metrics=tuple(metrics),
        )

    def refusal(self, side: Side) -> str | None:
        if isinstance(side, Limit) and self.limit is None:
            return "no faster way to ask for the same is known"
        if self.profile.writes and not side.stores:
            return "it stores nothing"
        if self.profile.protocol == "prepared" and side.refuses_prepared():
            return side.refuses_prepared()
        return super().refusal(side)

    def _profile_for(self, side: Side) -> Profile:
        limit = self.limit if isinstance(side, Limit) else None
        return limit or self.profile

    def run(self, context: Context, side: Side) -> dict[str, float]:
        if not self.profile.writes:
            with context.running(side, self.database):
                self._pgbench(context, side, WARM_UP)
                return self._measure(context, side)
        context.cluster.tidy_before_writing(self.database)
        return self._measure_writing(context, side)

    def _measure_writing(self, context: Context, side: Side) -> dict[str, float]:
        """Also what is written to the WAL, in which the warm-up counts: pooled backends tell some
        of its syncs only when they end.
        """
        cluster = context.cluster
        before = cluster.wal()
        with context.running(side, self.database):
            summary = pgbench.parse_summary(self._pgbench(context, side, WARM_UP).output)
            metrics = self._measure(context, side)
        proc.settle(cluster.pid)
        warm_ups = summary.transactions * self._profile_for(side).statements
        operations = metrics["operations"] + warm_ups
        return metrics | wal_metrics(before, cluster.wal(), operations)

    def _pgbench(
        self,
        context: Context,
        side: Side,
        amount: Amount,
        log_prefix: Path | None = None,
        database: str | None = None,
    ) -> Measured:
        command = self._profile_for(side).command(
            context.cluster.bindir / "pgbench",
            side.endpoint,
            amount,
            scripts=context.scratch,
            log_prefix=log_prefix,
            database=database,
        )
        return run_load(
            command,
            gateway=side.pid,
            database=side.database_pid or context.cluster.pid,
            timeout=amount.seconds + GRACE_SECONDS,
            directory=context.scratch,
        )

    def _measure(
        self, context: Context, side: Side, database: str | None = None
    ) -> dict[str, float]:
        profile = self._profile_for(side)
        with tempfile.TemporaryDirectory(dir=context.scratch) as logs:
            prefix = Path(logs) / "transactions" if profile.log else None
            measured = self._pgbench(context, side, context.amount, prefix, database)
            latencies = pgbench.read_logs(prefix) if prefix else None
        summary = pgbench.parse_summary(measured.output)
        if summary.failed or not summary.transactions:
            raise BenchError(
                f"{summary.failed} of {summary.transactions} transactions failed:\n"
                + measured.output[-800:]
            )
        operations = summary.transactions * profile.statements
        metrics = {
            "tps": summary.tps * profile.statements,
            "latency_ms": summary.latency_ms,
            "operations": float(operations),
        }
        if latencies is not None:
            metrics |= {"p50_ms": latencies.p50, "p99_ms": latencies.p99}
        return metrics | cpu_metrics(measured.cpu, operations, side)

    def count_system_calls(self, context: Context, side: Side) -> SystemCalls | None:
        if not self._count_calls or not isinstance(side, Gateway) or self.refusal(side):
            return None
        amount = context.amount if context.tiny else STRACED
        with context.running(side, self.database):
            self._pgbench(context, side, WARM_UP)
            counter = syscalls.Counter.attach(context.supervisor, side.pid)
            measured = self._pgbench(context, side, amount)
            counts = counter.stop()
        transactions = pgbench.parse_summary(measured.output).transactions
        operations = transactions * self.profile.statements
        if not operations or not counts:
            raise BenchError("strace counted nothing")
        per_operation = {name: calls / operations for name, calls in counts.items()}
        return SystemCalls(self.info.key, side.name, operations, per_operation)


def cpu_metrics(cpu: Cpu, operations: float, side: Side) -> dict[str, float]:
    """CPU time of each operation, and the memory of a gateway, which still runs."""
    micros = 1e6 / operations
    metrics = {
        "cpu_load_us": cpu.load * micros,
        "cpu_database_us": cpu.database * micros,
        "others_cores": cpu.others,
    }
    if side.pid is not None and cpu.gateway is not None:
        metrics["cpu_gateway_us"] = cpu.gateway * micros
        metrics |= memory_metrics(side.pid)
    return metrics


def wal_metrics(before: Wal, after: Wal, operations: float) -> dict[str, float]:
    metrics = {"wal_bytes": (after.written - before.written) / operations}
    if after.syncs is not None and before.syncs is not None:
        metrics["wal_syncs"] = (after.syncs - before.syncs) / operations
    return metrics


def memory_metrics(root: int) -> dict[str, float]:
    """Of the gateway's process tree, in MiB."""
    memory = proc.memory_of(proc.tree_pids(root))
    metrics = {"rss_mib": memory.rss / 2**20, "peak_mib": memory.peak_rss / 2**20}
    if memory.pss is not None:
        metrics["pss_mib"] = memory.pss / 2**20
    return metrics
