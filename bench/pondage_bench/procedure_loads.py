"""TPC-C's payment and new-order, as calls of procedures or statement by statement."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from . import proc
from .loads import (
    CPU_DATABASE,
    CPU_GATEWAY,
    CPU_LOAD,
    GRACE_SECONDS,
    OTHERS,
    P50,
    P99,
    PEAK,
    PSS,
    TPS,
    WAL,
    WAL_SYNCS,
    Context,
    Load,
    cpu_metrics,
    wal_metrics,
)
from .measure import Measured, run_load
from .pgwire import Client
from .processes import BenchError
from .results import LoadInfo, Metric
from .sides import Pondage, Side, StatementByStatement
from .tpcc import database
from .tpcc.consistency import violations
from .tpcc.draws import PAYMENT
from .tpcc.driver import BEGUN, LAST_ANSWER_SECONDS, Outcome, Task
from .tpcc.requests import CALL, STATEMENTS
from .tpcc.size import Size

TAIL = Metric("p99_of_p50", "p99 / p50", "", 1)
TRAIN = Metric("train_length", "calls a train", "", 1, None)
DEADLOCKS = Metric("deadlocks", "deadlocks", "", 0)
RETRIED = Metric("retried", "tried again by clients", "", 0)
REFUSED = Metric("refused_percent", "rolled back", "%", 2, None)
#: What is copied for each run, and the copy that it works on.
LOADED, WORKED = "tpcc{}", "tpcc_run"
#: Above `pondage_bench`, for `python3 -m`.
BENCH = Path(__file__).parents[1]
# The first round's; each has its own, all sides and both ways have the same.
SEED = 5110
TRIPS, TRAINED = "pondage_coalesce_trips_total", "pondage_coalesce_trained_total"


def loaded(size: Size) -> str:
    """The database that holds TPC-C's tables of that many warehouses as they were loaded."""
    return LOADED.format(size.warehouses)


class ProcedureLoad(Load):
    """One of the transactions, with so many clients, each run on a fresh copy of the database.

    The first `warm_up` seconds are not measured. Afterwards the database must be consistent and
    hold exactly what was acknowledged, else the run failed.
    """

    def __init__(
        self, transaction: str, size: Size, clients: int, warm_up: int, pool_size: int
    ) -> None:
        self.transaction = transaction
        self.size = size
        self.warm_up = warm_up
        self.pool_size = pool_size
        many = "one client" if clients == 1 else f"{clients:,} clients"
        self._clients = clients
        self.info = LoadInfo(
            key=f"{transaction}@{size.warehouses}-{clients}",
            title=f"{transaction}, {size.warehouses} warehouses, {many}",
            command=f"python3 -m pondage_bench.tpcc.driver --transaction={transaction}"
            f" --clients={clients}, --way={CALL} or --way={STATEMENTS}",
            primary=TPS,
            metrics=(
                TPS, P50, P99, TAIL, TRAIN, DEADLOCKS, RETRIED,
                *([REFUSED] if self._orders else []), CPU_GATEWAY, CPU_DATABASE, CPU_LOAD, WAL, WAL_SYNCS, PEAK, PSS, OTHERS,
            ),
            curve=f"{transaction}, {size.warehouses} warehouses",
            clients=clients,
        )  # fmt: skip

    @property
    def _orders(self) -> bool:
        return self.transaction != PAYMENT

    def refusal(self, side: Side) -> str | None:
        return super().refusal(side) if side.stores else "it stores nothing"

    def task(self, context: Context, side: Side) -> Task:
        """Of a side that has been started."""
        to, amount = side.endpoint, context.amount
        processors = os.cpu_count() or 1
        return Task(
            to.host, to.port, to.user, to.database,
            transaction=self.transaction,
            way=STATEMENTS if isinstance(side, StatementByStatement) else CALL,
            warehouses=self.size.warehouses,
            customers=self.size.customers,
            clients=self._clients,
            seed=SEED + context.round,
            seconds=amount.seconds,
            warm_up=0 if amount.transactions else self.warm_up,
            transactions=amount.transactions or 0,
            # One keeps up with what two processors do beside it.
            processes=min(self._clients, max(processors // 2, 1)),
        )  # fmt: skip

    def run(self, context: Context, side: Side) -> dict[str, float]:
        cluster = context.cluster
        database.copy(cluster, loaded(self.size), WORKED)
        try:
            before = cluster.wal()
            with context.running(side, WORKED, self.pool_size):
                measured = self._drive(context, side)
                outcome = Outcome.read(measured.output)
                metrics = self._told(outcome) | cpu_metrics(measured.cpu, outcome.ended, side)
                metrics |= train_metrics(side)
            proc.settle(cluster.pid)
            done = outcome.committed + outcome.refused
            metrics |= wal_metrics(before, cluster.wal(), done)
            metrics["deadlocks"] = float(
                cluster.scalar(f"SELECT deadlocks FROM pg_stat_database WHERE datname = '{WORKED}'")
            )
            with cluster.client(WORKED) as client:
                self.verify(client, outcome)
            return metrics
        finally:
            database.drop(cluster, WORKED)

    def _drive(self, context: Context, side: Side) -> Measured:
        task = self.task(context, side)
        return run_load(
            [sys.executable, "-m", "pondage_bench.tpcc.driver", *task.arguments()],
            gateway=side.pid,
            database=context.cluster.pid,
            timeout=task.seconds + task.warm_up + LAST_ANSWER_SECONDS + GRACE_SECONDS,
            directory=BENCH,
            begun=BEGUN,
        )

    def _told(self, outcome: Outcome) -> dict[str, float]:
        """BenchError where there is nothing to tell."""
        if not outcome.in_time:
            raise BenchError(f"no transaction ended in {outcome.seconds} s")
        done = outcome.committed + outcome.refused
        return {
            "tps": outcome.in_time / outcome.seconds,
            "operations": float(outcome.ended),
            "p50_ms": outcome.p50_ms,
            "p99_ms": outcome.p99_ms,
            "p99_of_p50": outcome.p99_ms / outcome.p50_ms,
            "retried": float(sum(outcome.errors.values())),
            "refused_percent": 100.0 * outcome.refused / done,
            **{f"errors_{code}": float(count) for code, count in outcome.errors.items()},
        }

    def verify(self, client: Client, outcome: Outcome) -> None:
        """BenchError where the database contradicts itself or what clients were told."""
        wrong = [f"inconsistent: {violation}" for violation in violations(client)]
        ((count,),) = client.query(
            "SELECT count(*) FROM " + ("orders" if self._orders else "history")
        )
        added = int(count or 0) - (self.size.orders if self._orders else self.size.payments)
        if added != outcome.committed:
            wrong.append(
                f"{outcome.committed} transactions were acknowledged, and {added} are in the"
                " database"
            )
        if outcome.failed:
            told = ", ".join(f"{code} {count} times" for code, count in outcome.failed.items())
            wrong.append(f"transactions failed for good: {told}")
        if wrong:
            raise BenchError("; ".join(wrong))


def train_metrics(side: Side) -> dict[str, float]:
    """Of a gateway that serves metrics and has made trains, since it was started."""
    if not isinstance(side, Pondage) or not side.serves_metrics:
        return {}
    figures = side.figures()
    trips, trained = figures.get(TRIPS, 0.0), figures.get(TRAINED, 0.0)
    return {"train_length": trained / trips} if trips and trained else {}
