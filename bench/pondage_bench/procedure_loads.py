"""TPC-C's payment and new-order, as calls of procedures or statement by statement."""

from __future__ import annotations

from .loads import (
    CPU_DATABASE,
    CPU_GATEWAY,
    CPU_LOAD,
    OTHERS,
    P50,
    P99,
    PEAK,
    PSS,
    TPS,
    WAL,
    WAL_SYNCS,
    Context,
    PgbenchLoad,
)
from .pgbench import Profile
from .pgwire import Client
from .processes import BenchError, Supervisor
from .results import LoadInfo, Metric
from .sides import Side, StatementByStatement
from .tpcc import database, scripts
from .tpcc.consistency import violations
from .tpcc.size import Size

TAIL = Metric("p99_of_p50", "p99 / p50", "", 1)
RETRIED = Metric("retried_percent", "deadlocked and tried again", "%", 2)
REFUSED = Metric("refused_percent", "rolled back", "%", 2, None)
# pgbench alone tells of transactions that failed for good; so many tries leave none.
TRIES = 20
#: What is copied for each run, and the copy that it works on.
LOADED, WORKED = "tpcc{}", "tpcc_run"


def loaded(size: Size) -> str:
    """The database that holds TPC-C's tables of that many warehouses as they were loaded."""
    return LOADED.format(size.warehouses)


class ProcedureLoad(PgbenchLoad):
    """One of the transactions, with so many clients, each run on a fresh copy of the database.

    The first `warm_up` seconds are not measured: clients connect, and prepare what they need with
    locks held. Afterwards the database must be consistent and hold what was acknowledged, else the
    run failed.
    """

    def __init__(self, transaction: str, size: Size, clients: int, warm_up: int) -> None:
        self.transaction = transaction
        self.size = size
        self.warm_up = warm_up
        self._profiles = {
            way: Profile(
                _script_name(transaction, way, size), "prepared", clients, log=True, tries=TRIES,
                scale=size.warehouses, thread_each=True,
            )
            for way in (scripts.CALL, scripts.STATEMENTS)
        }  # fmt: skip
        called = self._profiles[scripts.CALL]
        super().__init__(f"{transaction}-{clients}", transaction, called, size.warehouses)
        self.database = WORKED
        many = "one client" if clients == 1 else f"{clients:,} clients"
        self.info = LoadInfo(
            key=f"{transaction}@{size.warehouses}-{clients}",
            title=f"{transaction}, {size.warehouses} warehouses, {many}",
            command=f"{called.shown()}; statement by statement: "
            + self._profiles[scripts.STATEMENTS].shown(),
            primary=TPS,
            metrics=(
                TPS, P50, P99, TAIL, RETRIED, *([REFUSED] if self._orders else []),
                CPU_GATEWAY, CPU_DATABASE, CPU_LOAD, WAL, WAL_SYNCS, PEAK, PSS, OTHERS,
            ),
            curve=f"{transaction}, {size.warehouses} warehouses",
            clients=clients,
        )  # fmt: skip

    @property
    def _orders(self) -> bool:
        return self.transaction != scripts.PAYMENT

    def refusal(self, side: Side) -> str | None:
        return super().refusal(side) if side.stores else "it stores nothing"

    def _profile_for(self, side: Side) -> Profile:
        by_statement = isinstance(side, StatementByStatement)
        return self._profiles[scripts.STATEMENTS if by_statement else scripts.CALL]

    def write_scripts(self, supervisor: Supervisor) -> None:
        """Puts them where `Profile.command` finds them."""
        for way, profile in self._profiles.items():
            text = scripts.script(self.transaction, way, self.size)
            supervisor.write(supervisor.directory / f"{profile.script}.sql", text)

    def run(self, context: Context, side: Side) -> dict[str, float]:
        cluster = context.cluster
        self.write_scripts(context.supervisor)
        database.copy(cluster, loaded(self.size), WORKED)
        try:
            skip = 0 if context.amount.transactions else self.warm_up
            metrics = self._measure_writing(context, side, None, skip)
            with cluster.client(WORKED) as client:
                return metrics | self._verified(client, int(metrics["acknowledged"]))
        finally:
            database.drop(cluster, WORKED)

    def _verified(self, client: Client, acknowledged: int) -> dict[str, float]:
        """BenchError where the database contradicts itself or what clients were told."""
        broken = violations(client)
        if broken:
            raise BenchError("inconsistent: " + "; ".join(map(str, broken)))
        ((count,),) = client.query(
            "SELECT count(*) FROM " + ("orders" if self._orders else "history")
        )
        loaded_rows = self.size.orders if self._orders else self.size.payments
        added = int(count or 0) - loaded_rows
        # An order that is refused is acknowledged as such, and leaves nothing.
        refused = acknowledged - added
        if not plausible(refused, acknowledged, scripts.REFUSED if self._orders else 0.0):
            raise BenchError(
                f"{acknowledged} transactions were acknowledged, and {added} are in the database"
            )
        return {"refused_percent": 100.0 * refused / acknowledged}


def plausible(count: int, of: int, share: float) -> bool:
    """Whether something of that probability may have happened so often: exactly never, or within
    six standard deviations.
    """
    return count >= 0 and abs(count - of * share) <= 6 * (of * share * (1 - share)) ** 0.5


def _script_name(transaction: str, way: str, size: Size) -> str:
    return f"{transaction}-{way}-{size.warehouses}"
