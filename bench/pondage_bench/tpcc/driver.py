"""A closed loop of clients that run TPC-C's transactions; a program of its own.

Each process waits for all its clients at once and does as little as it can for each, as it runs on
the processors that it measures: calls are made before the run, as the bytes that are sent. All
sides get the same transactions from the same seed. Deadlocks (40P01) and serialization failures
(40001) are tried again with the same values, as applications do; latencies have all tries in them.

The last line of its output is JSON (`Outcome`); BEGUN is one when it begins to measure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import BinaryIO

from ..pgwire import PgError, data_row, error_text, startup_message
from ..stats import percentile
from .draws import Draws, Order, Payment
from .requests import CALL, REFUSED, ROLLBACK, WAYS, Steps, call, preparing, steps
from .size import Size

BEGUN = "measuring"
TRIES = 20
AGAIN = ("40P01", "40001")
# So many for all clients, who begin at different ones and go round.
DRAWN = 40_000
RECEIVE_BYTES = 1 << 14
ANSWER_SECONDS = 30.0
# What a client that is waiting at the end still gets for its answer.
LAST_ANSWER_SECONDS = 45.0
POLL_SECONDS = 1.0
# From when all are connected until all begin.
BEGIN_SECONDS = 0.02
SMALL = "!BI"


@dataclass(frozen=True)
class Task:
    """What one run does. `transactions` of each client, or `seconds` after `warm_up`."""

    host: str
    port: int
    user: str
    database: str
    transaction: str
    way: str
    warehouses: int
    customers: int
    clients: int
    seed: int
    seconds: float
    warm_up: float = 0.0
    transactions: int = 0
    processes: int = 1

    def arguments(self) -> list[str]:
        return [f"--{name.replace('_', '-')}={value}" for name, value in asdict(self).items()]

    @property
    def size(self) -> Size:
        return Size(self.warehouses, self.customers)


@dataclass
class Outcome:
    """`committed` and `refused` are of the whole run, the rest of what was measured of it."""

    committed: int = 0
    refused: int = 0
    #: In the seconds that were measured; those that ended later are in `ended` only.
    in_time: int = 0
    ended: int = 0
    seconds: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    #: How often clients were told of an error, by SQLSTATE, in the whole run.
    errors: dict[str, int] = field(default_factory=dict)
    #: Of these, those that ended a transaction for good.
    failed: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, output: str) -> Outcome:
        """Raises PgError when the last line is none."""
        try:
            return cls(**json.loads(output.strip().splitlines()[-1]))
        except (IndexError, TypeError, ValueError) as error:
            raise PgError(f"the driver told no outcome: {output[-800:]}") from error


#: A call as it is sent, or what is run statement by statement; and whether it will be refused.
Drawn = tuple[bytes | Payment | Order, bool]


class Client:
    """One connection, and the transaction it is in. `rows` are those of the present answer."""

    __slots__ = (
        "at", "began", "error", "left", "rest", "rows", "socket", "steps", "tape", "tries",
        "undoing",
    )  # fmt: skip

    def __init__(self, task: Task, tape: Sequence[Drawn], number: int) -> None:
        self.socket = socket.create_connection((task.host, task.port), ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tape = tape
        # Clients of one warehouse begin apart from one another.
        self.at = number // task.warehouses * 7919 % len(tape)
        self.left = task.transactions
        self.rest = b""
        self.rows: list[bytes] = []
        self.error = ""
        self.began = 0.0
        self.tries = 0
        #: Waits for the answer to ROLLBACK.
        self.undoing = False
        self.steps: Steps | None = None
        self._say(startup_message(task.user, task.database))
        self._say(preparing(task.way))

    def _say(self, text: bytes) -> None:
        """Sends, and waits until the server is ready again; PgError if it complains."""
        self.socket.sendall(text)
        while self.take(self.more()) is None:
            pass
        if self.error:
            raise PgError(self.error)
        self.rows.clear()

    def more(self) -> bytes:
        return self.socket.recv(RECEIVE_BYTES)

    def take(self, data: bytes) -> int | None:
        """Reads messages up to ReadyForQuery and gives its status; None if it is not there yet."""
        if not data:
            raise PgError(f"the connection was closed; last error: {self.error or 'none'}")
        if self.rest:
            data = self.rest + data
        at, end = 0, len(data)
        while at + 5 <= end:
            kind, length = struct.unpack_from(SMALL, data, at)
            following = at + 1 + length
            if following > end:
                break
            if kind == 0x5A:  # Z
                self.rest = b""
                return data[at + 5]
            if kind == 0x44:  # D
                self.rows.append(data[at + 5 : following])
            elif kind == 0x45:  # E
                self.error = error_text(data[at + 5 : following])
                if self.error.startswith("FATAL"):
                    raise PgError(self.error)
            at = following
        self.rest = data[at:]
        return None

    def next(self) -> None:
        """Begins the next transaction of its tape."""
        self.tries = 0
        self.began = time.monotonic()
        self.retry()

    def retry(self) -> None:
        drawn, _ = self.tape[self.at]
        self.tries += 1
        if isinstance(drawn, bytes):
            self.socket.sendall(drawn)
            return
        self.steps = steps(drawn)
        self.socket.sendall(next(self.steps))

    @property
    def refused(self) -> bool:
        """Whether the present transaction ought to be."""
        return self.tape[self.at][1]


class Loop:
    """The clients of one process."""

    def __init__(
        self, task: Task, numbers: Sequence[int], tapes: Sequence[Sequence[Drawn]]
    ) -> None:
        self.task = task
        self.outcome = Outcome()
        self.errors: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.latencies = array("d")
        self.since = self.until = 0.0
        self.poll = select.epoll()
        self.clients: dict[int, Client] = {}
        for number in numbers:
            client = Client(task, tapes[number % task.warehouses], number)
            client.socket.settimeout(None)
            self.clients[client.socket.fileno()] = client
            self.poll.register(client.socket, select.EPOLLIN)

    def run(self, begin: float) -> None:
        """From `begin` on, of the monotonic clock."""
        self.since = begin + self.task.warm_up
        self.until = self.since + self.task.seconds
        for client in self.clients.values():
            client.next()
        running = len(self.clients)
        while running:
            if time.monotonic() > self.until + LAST_ANSWER_SECONDS:
                raise PgError(f"{running} clients still wait {LAST_ANSWER_SECONDS:.0f} s later")
            for descriptor, _ in self.poll.poll(POLL_SECONDS):
                client = self.clients[descriptor]
                status = client.take(client.more())
                if status is not None and not self._answered(client, status):
                    running -= 1
        self.outcome.seconds = time.monotonic() - self.since
        if not self.task.transactions:
            self.outcome.seconds = self.task.seconds
        for client in self.clients.values():
            client.socket.sendall(b"X\0\0\0\4")
            client.socket.close()

    def _answered(self, client: Client, status: int) -> bool:
        """The next step of a client that has its answer; whether there was one."""
        if client.error:
            code = client.error.split(":")[0].split()[-1]
            rows: list[bytes] = []
        else:
            code, rows = "", client.rows
        client.error, client.rows = "", []
        if client.undoing:
            client.undoing = False
            return self._again(client)
        if code and not (code == REFUSED and client.refused):
            self.errors[code] += 1
            if code not in AGAIN or client.tries >= TRIES:
                self.failed[code] += 1
                client.tries = TRIES
            if status != 0x49:  # I
                client.undoing = True
                client.socket.sendall(ROLLBACK)
                return True
            return self._again(client)
        if client.steps is not None:
            try:
                client.socket.sendall(client.steps.send([data_row(row) for row in rows]))
                return True
            except StopIteration:
                client.steps = None
        return self._ended(client, code)

    def _again(self, client: Client) -> bool:
        """After an error: the same once more, or the next if it failed for good."""
        client.steps = None
        if client.tries < TRIES:
            client.retry()
            return True
        return self._advance(client, time.monotonic())

    def _ended(self, client: Client, code: str) -> bool:
        """`code` is empty, or that of an order that was refused as it ought to be."""
        now = time.monotonic()
        if client.refused:
            if not code and self.task.way == CALL:
                raise PgError("an order of an item that does not exist was taken")
            self.outcome.refused += 1
        else:
            self.outcome.committed += 1
        if now >= self.since:
            self.latencies.append(now - client.began)
            self.outcome.ended += 1
            if now < self.until or self.task.transactions:
                self.outcome.in_time += 1
        return self._advance(client, now)

    def _advance(self, client: Client, now: float) -> bool:
        client.at = (client.at + 1) % len(client.tape)
        client.left -= 1
        if client.left == 0 or (now >= self.until and not self.task.transactions):
            return False
        client.next()
        return True


def tapes_of(task: Task) -> list[list[Drawn]]:
    """The transactions of each warehouse that has a client, one after the other."""
    draws = Draws(task.size, task.seed)
    used = min(task.warehouses, task.clients)
    tapes: list[list[Drawn]] = []
    for warehouse in range(1, used + 1):
        tape: list[Drawn] = []
        for _ in range(max(DRAWN // used, 1)):
            drawn = draws.one(task.transaction, warehouse)
            refused = isinstance(drawn, Order) and drawn.refused
            tape.append((call(drawn) if task.way == CALL else drawn, refused))
        tapes.append(tape)
    return tapes


class _Worker:
    """A process with some of the clients. It connects, says so, is told when to begin."""

    def __init__(self, task: Task, number: int, tapes: Sequence[Sequence[Drawn]]) -> None:
        told, tell = os.pipe()
        start, begin = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                with os.fdopen(tell, "wb") as output, os.fdopen(start, "rb") as orders:
                    _work(task, range(number, task.clients, task.processes), tapes, output, orders)
                status = 0
            except (OSError, PgError) as error:
                print(f"error: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(status)
        os.close(tell)
        os.close(start)
        self._told = os.fdopen(told, "rb")
        self._begin = os.fdopen(begin, "wb", buffering=0)

    def wait_until_connected(self) -> None:
        if self._told.readline() != b"connected\n":
            raise PgError("a process of the driver failed")

    def begin(self, when: float) -> None:
        self._begin.write(struct.pack("d", when))

    def outcome(self) -> tuple[Outcome, array[float]]:
        line = self._told.readline()
        if not line:
            raise PgError("a process of the driver failed")
        return Outcome(**json.loads(line)), array("d", self._told.read())

    def end(self) -> None:
        """It has nothing to do any more, or another one failed."""
        self._begin.close()
        self._told.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _work(
    task: Task,
    numbers: Sequence[int],
    tapes: Sequence[Sequence[Drawn]],
    output: BinaryIO,
    orders: BinaryIO,
) -> None:
    loop = Loop(task, numbers, tapes)
    output.write(b"connected\n")
    output.flush()
    (begin,) = struct.unpack("d", orders.read(8))
    time.sleep(max(begin - time.monotonic(), 0.0))
    loop.run(begin)
    loop.outcome.errors, loop.outcome.failed = dict(loop.errors), dict(loop.failed)
    output.write(json.dumps(asdict(loop.outcome)).encode() + b"\n")
    output.write(loop.latencies.tobytes())


def run(task: Task, measuring: Callable[[], None]) -> Outcome:
    """Runs the task in its processes; calls `measuring` when what is measured begins."""
    tapes = tapes_of(task)
    workers = [_Worker(task, number, tapes) for number in range(task.processes)]
    try:
        for worker in workers:
            worker.wait_until_connected()
        begin = time.monotonic() + BEGIN_SECONDS
        for worker in workers:
            worker.begin(begin)
        time.sleep(max(begin + task.warm_up - time.monotonic(), 0.0))
        measuring()
        return _together([worker.outcome() for worker in workers])
    finally:
        for worker in workers:
            worker.end()


def _together(parts: Sequence[tuple[Outcome, array[float]]]) -> Outcome:
    whole = Outcome(seconds=max(outcome.seconds for outcome, _ in parts))
    errors: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    latencies = array("d")
    for outcome, times in parts:
        whole.committed += outcome.committed
        whole.refused += outcome.refused
        whole.in_time += outcome.in_time
        whole.ended += outcome.ended
        errors.update(outcome.errors)
        failed.update(outcome.failed)
        latencies.extend(times)
    whole.errors, whole.failed = dict(errors), dict(failed)
    if latencies:
        ordered = sorted(latencies)
        whole.p50_ms = percentile(ordered, 50) * 1000
        whole.p99_ms = percentile(ordered, 99) * 1000
    return whole


def _parse(arguments: Sequence[str]) -> Task:
    parser = argparse.ArgumentParser(prog="python3 -m pondage_bench.tpcc.driver")
    for name, kind in Task.__annotations__.items():
        convert = {"str": str, "int": int, "float": float}[kind]
        parser.add_argument(f"--{name.replace('_', '-')}", type=convert, required=True)
    task = Task(**vars(parser.parse_args(arguments)))
    if task.way not in WAYS:
        parser.error(f"--way: one of {', '.join(WAYS)}")
    return task


def main(arguments: Sequence[str]) -> int:
    task = _parse(arguments)
    try:
        outcome = run(task, lambda: print(BEGUN, flush=True))
    except (OSError, PgError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(asdict(outcome)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
