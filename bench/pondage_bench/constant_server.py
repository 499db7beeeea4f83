"""A server that answers a load's selects with the same row: the limit of what it can ask.

It knows pgbench's select, and sysbench's selects with their BEGIN and COMMIT. Each gets one row of
one column, whatever it asks for.

It logs everybody in, keeps nothing and runs nothing. What else it is asked (what pgbench finds out
before it starts, what a gateway looks up in catalogues) it hands on to PostgreSQL, one exchange at
a time, over a connection of its own for each client that asks so; neither is part of a load.

Run as `python3 constant_server.py SOCKET PORT POSTGRES_SOCKET USER DATABASE`; it listens on a Unix
socket and on a port of 127.0.0.1. It uses nothing of its package, so that it needs no path.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

MESSAGE_MAX_BYTES = 1 << 20
RECEIVE_BYTES = 65536
BACKLOG = 1024
RELAY_SECONDS = 10.0
PROTOCOL_3_0 = 196608
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102

HEAD = struct.Struct("!BI")
QUERY, PARSE, BIND, DESCRIBE, CLOSE, EXECUTE, SYNC, FLUSH = b"QPBDCESH"
STATUS, READY_KIND, OF_STATEMENT = b"SZS"


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def socket_file(directory: Path, port: int) -> Path:
    """Where PostgreSQL's clients look for it."""
    return directory / f".s.PGSQL.{port}"


READY = message(b"Z", b"I")
PARSED, BOUND, CLOSED = message(b"1", b""), message(b"2", b""), message(b"3", b"")
_EXECUTE = message(b"E", bytes(5))
_DESCRIBE_AND_EXECUTE = message(b"D", b"P\0") + _EXECUTE
_SYNC = message(b"S", b"")


class Answer:
    """What is answered to statements that begin in one of the given ways."""

    def __init__(
        self, beginnings: tuple[bytes, ...], parameters: bytes, description: bytes, executed: bytes
    ) -> None:
        self.beginnings = beginnings
        self.parameters = parameters
        self.description = description
        self.to_query = (b"" if description == NO_DATA else description) + executed + READY
        #: What need not be looked into.
        self.any = {EXECUTE: executed, SYNC: READY, FLUSH: b""}
        #: What follows a Bind, the longest first, and what is answered to both.
        self.tails = (
            (_DESCRIBE_AND_EXECUTE + _SYNC, BOUND + description + executed + READY),
            (_DESCRIBE_AND_EXECUTE, BOUND + description + executed),
            (_EXECUTE + _SYNC, BOUND + executed + READY),
            (_EXECUTE, BOUND + executed),
        )


def parameters_of(*types: int) -> bytes:
    return message(b"t", struct.pack(f"!h{len(types)}i", len(types), *types))


def column_of(name: bytes, kind: int, size: int) -> bytes:
    described = name + b"\0" + struct.pack("!ihihih", 0, 0, kind, size, -1, 0)
    return message(b"T", struct.pack("!h", 1) + described)


def row_of(value: bytes) -> bytes:
    row = message(b"D", struct.pack("!hi", 1, len(value)) + value)
    return row + message(b"C", b"SELECT 1\0")


INTEGER, PADDED = 23, 1042
NO_DATA = message(b"n", b"")
DESCRIPTION = column_of(b"abalance", INTEGER, 4)
# One parameter, an integer.
PARAMETERS = parameters_of(INTEGER)
ROW_AND_DONE = row_of(b"1")
PGBENCH = Answer(
    (b"SELECT abalance FROM pgbench_accounts",), PARAMETERS, DESCRIPTION, ROW_AND_DONE
)
ANSWER_TO_QUERY = PGBENCH.to_query
# A row of its point select; nobody asks how many parameters the others have.
SYSBENCH = Answer(
    (
        b"SELECT c FROM sbtest", b"SELECT SUM(k) FROM sbtest", b"SELECT DISTINCT c FROM sbtest",
        b"        SELECT id, k, c, pad\n          FROM sbtest",
        b"        SELECT count(k)\n          FROM sbtest",
    ),
    PARAMETERS, column_of(b"c", PADDED, -1), row_of(b"0123456789-" * 11),
)  # fmt: skip
# That a transaction is open is told to nobody: sysbench does not look.
BEGIN = Answer((b"BEGIN\0",), parameters_of(), NO_DATA, message(b"C", b"BEGIN\0"))
COMMIT = Answer((b"COMMIT\0",), parameters_of(), NO_DATA, message(b"C", b"COMMIT\0"))
ANSWERS = (PGBENCH, SYSBENCH, BEGIN, COMMIT)
ANSWERED = tuple((answer.beginnings, answer) for answer in ANSWERS)
#: Messages that may name a statement which only PostgreSQL knows.
NAMING = (BIND, CLOSE)


class Hangup(Exception):
    """A peer said goodbye, or spoke something else."""


@dataclass(frozen=True)
class Behind:
    """PostgreSQL, as everything that is not answered here reaches it: without a password."""

    path: str
    user: str
    database: str


class Relay:
    """A connection to PostgreSQL. `greeting` is what it said when we logged in."""

    def __init__(self, behind: Behind) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(RELAY_SECONDS)
        names = ("user", behind.user, "database", behind.database, "")
        body = struct.pack("!i", PROTOCOL_3_0) + b"".join(name.encode() + b"\0" for name in names)
        try:
            self._socket.connect(behind.path)
            self.greeting = self.exchange(struct.pack("!i", len(body) + 4) + body)
        except BaseException:
            self._socket.close()
            raise

    def exchange(self, asked: bytes) -> bytes:
        """What is answered until PostgreSQL is ready again."""
        self._socket.sendall(asked)
        received = bytearray()
        at = 0
        while True:
            more = self._socket.recv(RECEIVE_BYTES)
            if not more:
                raise Hangup
            received += more
            while (end := message_end(received, at)) is not None:
                if received[at] == READY_KIND:
                    return bytes(received)
                at = end

    def close(self) -> None:
        self._socket.close()


def message_end(received: bytes | bytearray, at: int) -> int | None:
    """None while the message at `at` is incomplete; Hangup when it can't be one."""
    if len(received) - at < HEAD.size:
        return None
    _, length = HEAD.unpack_from(received, at)
    if not 4 <= length <= MESSAGE_MAX_BYTES:
        raise Hangup
    end: int = at + 1 + length
    return end if end <= len(received) else None


def greeting_of(behind: Behind) -> bytes:
    """What PostgreSQL reports to a client that logs in, with a key that cancels nothing."""
    relay = Relay(behind)
    relay.close()
    told, at = bytearray(message(b"R", struct.pack("!i", 0))), 0
    while (end := message_end(relay.greeting, at)) is not None:
        if relay.greeting[at] == STATUS:
            told += relay.greeting[at:end]
        at = end
    return bytes(told) + message(b"K", struct.pack("!ii", 1, 1)) + READY


def text_at(received: bytes, at: int) -> bytes:
    """The zero-terminated text at `at`."""
    return received[at : received.index(0, at)]


def answer_to_parse(received: bytes, body: int) -> Answer | None:
    """Of the statement that the Parse with this body is about; None: it is not answered here."""
    text = received.index(0, body) + 1
    for beginnings, known in ANSWERED:
        if received.startswith(beginnings, text):
            return known
    return None


class Session:
    """One client: bytes go into `answer`, the bytes to send come out."""

    def __init__(self, greeting: bytes, behind: Behind) -> None:
        self._greeting = greeting
        self._behind = behind
        self._relay: Relay | None = None
        #: Names of statements that PostgreSQL holds.
        self._handed_on: set[bytes] = set()
        #: Names of those that are answered here, and the answer to the one that was bound last.
        self._known: dict[bytes, Answer] = {}
        self._bound = PGBENCH
        #: Some have another answer than others, so that a Bind has to be looked into.
        self._differ = False
        self._received = b""
        self._logged_in = False

    def answer(self, data: bytes) -> bytes:
        """Raises Hangup when the connection has to be closed."""
        received = self._received + data if self._received else data
        answers: list[bytes] = []
        at = 0
        while not self._logged_in and len(received) - at >= 4:
            (length,) = struct.unpack_from("!i", received, at)
            if not 8 <= length <= MESSAGE_MAX_BYTES:
                raise Hangup
            if len(received) - at < length:
                break
            answers.append(self._log_in(received, at))
            at += length
        if self._logged_in:
            at = self._answer_all(received, at, answers)
        self._received = received[at:]
        return b"".join(answers)

    def _log_in(self, received: bytes, at: int) -> bytes:
        (code,) = struct.unpack_from("!i", received, at + 4)
        if code in (SSL_REQUEST, GSS_REQUEST):
            return b"N"
        if code == CANCEL_REQUEST:
            raise Hangup
        self._logged_in = True
        return self._greeting

    def _answer_all(self, received: bytes, at: int, answers: list[bytes]) -> int:
        """Where it stopped. Every statement of a load passes here, so this is `message_end` again,
        written out, and a Bind is answered with what follows it.
        """
        size, head, unpack, starts = len(received), HEAD.size, HEAD.unpack_from, received.startswith
        while size - at >= head:
            kind, length = unpack(received, at)
            end = at + 1 + length
            if end > size or length < 4:
                if not 4 <= length <= MESSAGE_MAX_BYTES:
                    raise Hangup
                break
            answer = self._bound.any.get(kind)
            if kind == QUERY:
                for beginnings, known in ANSWERED:
                    if starts(beginnings, at + head):
                        answer = known.to_query
                        break
            elif kind == BIND and not self._handed_on:
                if self._differ:
                    self._bind(received, at + head)
                answer = BOUND
                for tail, answer_to_both in self._bound.tails:
                    if starts(tail, end):
                        answer, end = answer_to_both, end + len(tail)
                        break
            if answer is None:
                looked = self._look_into(kind, received, at, end)
                if looked is None:
                    break
                answer, end = looked
            answers.append(answer)
            at = end
        return at

    def _look_into(self, kind: int, received: bytes, at: int, end: int) -> tuple[bytes, int] | None:
        """An answer and the end of what it answers; None when that has not all come."""
        body = at + HEAD.size
        if kind == DESCRIBE:
            if received[body] != OF_STATEMENT:
                return self._bound.description, end
            name = text_at(received, body + 1)
            if name in self._handed_on:
                return self._hand_on_until_sync(received, at)
            known = self._known.get(name, self._bound)
            return known.parameters + known.description, end
        if kind == QUERY:
            return self._hand_on(received[at:end]), end
        if kind == PARSE:
            answer = answer_to_parse(received, body)
            if answer is None:
                return self._hand_on_until_sync(received, at)
            self._parsed(text_at(received, body), answer)
            return PARSED, end
        if kind in NAMING:
            after = body + 1 if kind == CLOSE else received.index(0, body) + 1
            if text_at(received, after) in self._handed_on:
                return self._hand_on_until_sync(received, at)
            if kind == CLOSE:
                return CLOSED, end
            self._bind(received, body)
            return BOUND, end
        raise Hangup

    def _parsed(self, name: bytes, answer: Answer) -> None:
        self._handed_on.discard(name)
        self._known[name] = self._bound = answer
        self._differ = len(set(self._known.values())) > 1

    def _bind(self, received: bytes, body: int) -> None:
        name = text_at(received, received.index(0, body) + 1)
        self._bound = self._known.get(name, self._bound)

    def _hand_on_until_sync(self, received: bytes, at: int) -> tuple[bytes, int] | None:
        here = at
        while (end := message_end(received, here)) is not None:
            body = here + HEAD.size
            if received[here] == PARSE and answer_to_parse(received, body) is None:
                self._handed_on.add(text_at(received, body))
            if received[here] == SYNC:
                return self._hand_on(received[at:end]), end
            here = end
        return None

    def _hand_on(self, asked: bytes) -> bytes:
        if self._relay is None:
            self._relay = Relay(self._behind)
        return self._relay.exchange(asked)

    def close(self) -> None:
        if self._relay is not None:
            self._relay.close()


class Server:
    """One thread; an answer is written at once or the client is dropped."""

    def __init__(self, listeners: list[socket.socket], behind: Behind) -> None:
        self._listeners = {listener.fileno(): listener for listener in listeners}
        self._clients: dict[int, tuple[socket.socket, Session]] = {}
        self._behind = behind
        self._greeting = greeting_of(behind)

    def serve(self, lifeline: int | None) -> None:
        """Until killed, or until the other end of `lifeline` is closed."""
        epoll = select.epoll()  # after the fork: each process has its own
        for number, listener in self._listeners.items():
            listener.setblocking(False)
            epoll.register(number, select.EPOLLIN)
        if lifeline is not None:
            epoll.register(lifeline, select.EPOLLIN)
        while True:
            for number, _ in epoll.poll():
                if number in self._clients:
                    self._one(number)
                elif number in self._listeners:
                    self._accept(self._listeners[number], epoll)
                elif number == lifeline:
                    return

    def _one(self, number: int) -> None:
        client, session = self._clients[number]
        try:
            data = client.recv(RECEIVE_BYTES)
            if not data:
                raise Hangup
            answer = session.answer(data)
            if answer:
                client.sendall(answer)
        except (Hangup, OSError, ValueError):
            del self._clients[number]
            session.close()
            client.close()  # and epoll forgets it

    def _accept(self, listener: socket.socket, epoll: select.epoll) -> None:
        try:
            client, _ = listener.accept()
        except OSError:
            return  # another process took it
        with contextlib.suppress(OSError):  # a Unix socket has no such delay
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setblocking(False)
        self._clients[client.fileno()] = (client, Session(self._greeting, self._behind))
        epoll.register(client, select.EPOLLIN)


def listen_unix(path: str) -> socket.socket:
    """Everybody may connect, as to PostgreSQL's; the gateways are not this process's user."""
    Path(path).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    Path(path).chmod(0o777)
    listener.listen(BACKLOG)
    return listener


def main(path: str, port: int, behind: Behind) -> None:
    """A process per processor, on the same listening sockets. All end with the first."""
    listeners = [listen_unix(path), socket.create_server(("127.0.0.1", port), backlog=BACKLOG)]
    server = Server(listeners, behind)
    lifeline, held = os.pipe()
    for _ in range((os.cpu_count() or 1) - 1):
        if os.fork() == 0:
            os.close(held)
            server.serve(lifeline)
            return
    server.serve(None)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Behind(*sys.argv[3:6]))
