"""What a session keeps, statement by statement: one client after the other, simple queries, the
client in Python, which is the same for all sides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from . import proc
from .idle import OTHER_FILES, allow_open_files, resident
from .loads import CPU_DATABASE, CPU_GATEWAY, OTHERS, P50, P99, Context, Load
from .pgwire import Client, PgError
from .processes import BenchError
from .results import LoadInfo, Metric
from .sides import Gateway, Side
from .stats import percentile

DATABASE = "session"
WARM_UP_OPERATIONS = 100

LISTENER_BYTES = Metric("bytes_per_client", "per idle listener", "B", 0)
LISTEN = Metric("listen_ms", "a LISTEN", "ms", 2)
OTHERS_TOLD = Metric("told_ms", "until all are told", "ms", 1)


def timed(
    context: Context, side: Side, operation: Callable[[], object]
) -> dict[str, float]:
    """`operation`, again and again for the time that was asked for."""
    for _ in range(WARM_UP_OPERATIONS):
        operation()
    roots = {"gateway": side.pid, "database": side.database_pid or context.cluster.pid}

    def cpu() -> dict[str, float]:
        return {key: proc.tree_cpu_seconds(pid) for key, pid in roots.items() if pid is not None}

    before, busy, own = cpu(), proc.busy_seconds(), time.process_time()
    began = time.perf_counter()
    until = began + (context.amount.seconds or 1)
    took: list[float] = []
    last = began
    while last < until:
        operation()
        now = time.perf_counter()
        took.append(now - last)
        last = now
    spent = {key: value - before[key] for key, value in cpu().items()}
    others = proc.busy_seconds() - busy - (time.process_time() - own) - sum(spent.values())
    took.sort()
    micros = 1e6 / len(took)
    return {
        "p50_ms": percentile(took, 50) * 1e3,
        "p99_ms": percentile(took, 99) * 1e3,
        "operations": float(len(took)),
        "others_cores": max(others, 0.0) / (last - began),
        **{f"cpu_{key}_us": seconds * micros for key, seconds in spent.items()},
    }


class SessionLoad(Load):
    """Some statements of one client, after others that leave something in its session."""

    def __init__(self, key: str, title: str, before: Sequence[str], each: Sequence[str]) -> None:
        self._before, self._each = before, each
        shown = "; ".join(each)
        first = f"{'; '.join(before)}; then " if before else ""
        self.info = LoadInfo(
            key=key,
            title=title,
            command=f"{first}again and again: {shown}",
            primary=P50,
            metrics=(P50, P99, CPU_GATEWAY, CPU_DATABASE, OTHERS),
        )

    def run(self, context: Context, side: Side) -> dict[str, float]:
        with context.running(side, DATABASE), Client(side.endpoint) as client:
            for text in self._before:
                client.query(text)

            def each() -> None:
                for text in self._each:
                    client.query(text)

            return timed(context, side, each)


class NotifyLoad(Load):
    """From before a NOTIFY is sent until an idle client has it."""

    def __init__(self) -> None:
        self.info = LoadInfo(
            key="notify",
            title="From NOTIFY until an idle listener is told",
            command="listen a; another client, again and again: notify a, 'payload'",
            primary=P50,
            metrics=(P50, P99, CPU_GATEWAY, CPU_DATABASE, OTHERS),
        )

    def run(self, context: Context, side: Side) -> dict[str, float]:
        with (
            context.running(side, DATABASE),
            Client(side.endpoint) as sender,
            Client(side.endpoint) as listener,
        ):
            listener.query("listen a")

            def told() -> None:
                sender.ask("notify a, 'payload'")
                listener.notification()
                sender.answer()

            return timed(context, side, told)


class ListenersLoad(Load):
    """What an idle client that listens costs a gateway, and how long a crowd of them is told."""

    def __init__(self, clients: int) -> None:
        self._clients = min(clients, allow_open_files() - OTHER_FILES)
        self.info = LoadInfo(
            key="listeners",
            title=f"{self._clients:,} idle listeners",
            command="log in, `listen a`, stay; then one `notify a` of another client",
            primary=LISTENER_BYTES,
            metrics=(LISTENER_BYTES, LISTEN, OTHERS_TOLD),
        )

    def refusal(self, side: Side) -> str | None:
        if not isinstance(side, Gateway):
            return "only a gateway holds idle clients on few connections"
        return super().refusal(side)

    def run(self, context: Context, side: Side) -> dict[str, float]:
        with context.running(side, DATABASE), ExitStack() as connections:
            if side.pid is None:
                raise BenchError(f"{side.name} has no process of its own")
            sender = connections.enter_context(Client(side.endpoint))
            # What the first listener needs, all others have.
            connections.enter_context(Client(side.endpoint)).query("listen a")
            base, clients, took = resident(side.pid), [], 0.0
            try:
                for _ in range(self._clients):
                    client = connections.enter_context(Client(side.endpoint))
                    began = time.perf_counter()
                    client.query("listen a")
                    took += time.perf_counter() - began
                    clients.append(client)
                grown = resident(side.pid) - base
                began = time.perf_counter()
                sender.query("notify a, 'payload'")
                for client in clients:
                    client.notification()
                told = time.perf_counter() - began
            except (OSError, PgError) as error:
                raise BenchError(f"with {len(clients)} listeners: {error}") from error
        return {
            "bytes_per_client": grown / self._clients,
            "listen_ms": took * 1e3 / self._clients,
            "told_ms": told * 1e3,
        }
