"""A load: one thing done to every side in every round. Workloads are lists of loads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import pgbench, proc, syscalls
from .measure import run_load
from .pgbench import Amount, Profile
from .postgres import Cluster
from .processes import BenchError, Supervisor
from .results import LoadInfo, Metric, SystemCalls
from .sides import Side

# Transactions per client before the measured run: they open the pool and fill caches.
WARM_UP_TRANSACTIONS = 10
# Seconds a run may take over what it was asked for.
GRACE_SECONDS = 60.0
STRACE_SECONDS = 2

TPS = Metric("tps", "transactions/s", "", 0, True)
LATENCY = Metric("latency_ms", "average", "ms", 3)
P50 = Metric("p50_ms", "p50", "ms", 3)
P99 = Metric("p99_ms", "p99", "ms", 3)
CPU_GATEWAY = Metric("cpu_gateway_us", "gateway CPU", "us/op", 1)
CPU_DATABASE = Metric("cpu_database_us", "database CPU", "us/op", 1)
CPU_LOAD = Metric("cpu_load_us", "load CPU", "us/op", 1)
WAL = Metric("wal_bytes", "WAL", "B/op", 0, None)
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

    @property
    def scratch(self) -> Path:
        return self.supervisor.directory

    @contextmanager
    def running(self, side: Side, database: str) -> Iterator[Side]:
        """`side`, freshly started in front of `database`, stopped again afterwards."""
        side.start(self.supervisor, self.cluster.upstream(database))
        try:
            yield side
        finally:
            side.stop()


class Load(ABC):
    """Subclasses say what they do, and do it to one side at a time."""

    info: LoadInfo

    def refusal(self, side: Side) -> str | None:
        """Why `side` takes no part, or None."""
        return None

    @abstractmethod
    def run(self, context: Context, side: Side) -> dict[str, float]:
        """Starts `side`, measures it, stops it; metrics by key. BenchError when it failed."""

    def count_system_calls(self, context: Context, side: Side) -> SystemCalls | None:
        """In a run of its own; None where that makes no sense."""
        return None


class PgbenchLoad(Load):
    """pgbench with one profile on the database of one scale."""

    def __init__(
        self, key: str, title: str, profile: Profile, scale: int, *, count_calls: bool = False
    ) -> None:
        self.profile = profile
        self.database = f"scale{scale}"
        self._count_calls = count_calls
        metrics = [TPS, LATENCY, CPU_GATEWAY, CPU_DATABASE, CPU_LOAD]
        if profile.log:
            metrics = [TPS, P50, P99, *metrics[2:]]
        if profile.writes:
            metrics.append(WAL)
        metrics += [PEAK, PSS, OTHERS]
        self.info = LoadInfo(
            key=f"{key}@{scale}",
            title=f"{title}, scale {scale}",
            command=profile.shown(),
            primary=TPS,
            metrics=tuple(metrics),
        )

    def refusal(self, side: Side) -> str | None:
        return side.refuses_prepared() if self.profile.protocol == "prepared" else None

    def run(self, context: Context, side: Side) -> dict[str, float]:
        with context.running(side, self.database):
            self._warm_up(context, side)
            if self.profile.writes:
                context.cluster.tidy_before_writing(self.database)
            return self._measure(context, side)

    def _command(self, context: Context, side: Side, amount: Amount, log: Path | None) -> list[str]:
        program = context.cluster.bindir / "pgbench"
        return self.profile.command(program, side.endpoint, amount, log)

    def _warm_up(self, context: Context, side: Side) -> None:
        run_load(
            self._command(context, side, Amount(0, WARM_UP_TRANSACTIONS), None),
            gateway=side.pid,
            database=context.cluster.pid,
            timeout=GRACE_SECONDS,
            directory=context.scratch,
        )

    def _measure(self, context: Context, side: Side) -> dict[str, float]:
        log = context.scratch / "transactions" if self.profile.log else None
        wal_before = context.cluster.wal_bytes()
        measured = run_load(
            self._command(context, side, context.amount, log),
            gateway=side.pid,
            database=context.cluster.pid,
            timeout=context.amount.seconds + GRACE_SECONDS,
            directory=context.scratch,
        )
        summary = pgbench.parse_summary(measured.output)
        if summary.failed or not summary.transactions:
            raise BenchError(
                f"{summary.failed} of {summary.transactions} transactions failed:\n"
                + measured.output[-800:]
            )
        micros = 1e6 / summary.transactions
        cpu = measured.cpu
        metrics = {
            "tps": summary.tps,
            "latency_ms": summary.latency_ms,
            "operations": float(summary.transactions),
            "cpu_load_us": cpu.load * micros,
            "cpu_database_us": cpu.database * micros,
            "others_cores": cpu.others,
        }
        if self.profile.writes:
            written = context.cluster.wal_bytes() - wal_before
            metrics["wal_bytes"] = written / summary.transactions
        if log is not None:
            latencies = pgbench.read_and_remove_logs(log)
            metrics |= {"p50_ms": latencies.p50, "p99_ms": latencies.p99}
        if side.pid is not None and cpu.gateway is not None:
            metrics["cpu_gateway_us"] = cpu.gateway * micros
            metrics |= memory_metrics(side.pid)
        return metrics

    def count_system_calls(self, context: Context, side: Side) -> SystemCalls | None:
        if not self._count_calls or side.kind == "direct" or self.refusal(side):
            return None
        amount = context.amount if context.tiny else Amount(STRACE_SECONDS)
        with context.running(side, self.database):
            self._warm_up(context, side)
            root = side.pid
            if root is None:
                return None
            counter = syscalls.Counter.attach(context.supervisor, root)
            measured = run_load(
                self._command(context, side, amount, None),
                gateway=root,
                database=context.cluster.pid,
                timeout=amount.seconds + GRACE_SECONDS,
                directory=context.scratch,
            )
            counts = counter.stop()
        operations = pgbench.parse_summary(measured.output).transactions
        if not operations or not counts:
            raise BenchError("strace counted nothing")
        per_operation = {name: calls / operations for name, calls in counts.items()}
        return SystemCalls(self.info.key, side.name, operations, per_operation)


def memory_metrics(root: int) -> dict[str, float]:
    """Of the gateway's process tree, in MiB."""
    memory = proc.memory_of(proc.tree_pids(root))
    metrics = {"rss_mib": memory.rss / 2**20, "peak_mib": memory.peak_rss / 2**20}
    if memory.pss is not None:
        metrics["pss_mib"] = memory.pss / 2**20
    return metrics
