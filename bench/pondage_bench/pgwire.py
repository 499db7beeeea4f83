"""Just enough of PostgreSQL's protocol 3.0 to log in and run simple queries.

It waits for servers and gateways to answer, reads counters, and holds thousands of idle clients.
Source: PostgreSQL documentation, "Message Flow" and "Message Formats".
"""

from __future__ import annotations

import contextlib
import socket
import struct
from dataclasses import dataclass
from types import TracebackType

from . import scram

PROTOCOL_3_0 = 196608
# Longest message accepted, length word included: replies here are a few short rows.
MESSAGE_MAX_BYTES = 1 << 20
RECEIVE_BYTES = 8192
# Kinds of authentication requests.
AUTHENTICATED, SASL, SASL_CONTINUE, SASL_FINAL = 0, 10, 11, 12

Row = list[str | None]


class PgError(Exception):
    """An ErrorResponse, or bytes that are not the protocol."""


@dataclass(frozen=True)
class Endpoint:
    """Where a client connects: always TCP, as pgbench and every application here does."""

    host: str
    port: int
    user: str
    database: str
    #: Proven by SCRAM-SHA-256 when the server asks for it.
    password: str | None = None


def startup_message(user: str, database: str) -> bytes:
    body = b"".join(part.encode() + b"\0" for part in ("user", user, "database", database))
    return struct.pack("!ii", len(body) + 9, PROTOCOL_3_0) + body + b"\0"


def error_text(body: bytes) -> str:
    """`ERROR 42601: message` from the fields of an ErrorResponse."""
    fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
    return f"{fields.get(b'S', '?')} {fields.get(b'C', '?')}: {fields.get(b'M', '?')}"


def data_row(body: bytes) -> Row:
    """Raises PgError when lengths do not fit the message."""
    try:
        (count,) = struct.unpack_from("!h", body)
        row: Row = []
        at = 2
        for _ in range(count):
            (length,) = struct.unpack_from("!i", body, at)
            at += 4
            row.append(None if length < 0 else body[at : at + length].decode())
            at += max(length, 0)
        return row
    except struct.error as error:
        raise PgError("malformed DataRow") from error


class Client:
    """One connection. Connects when made; use as a context manager or call `close`."""

    def __init__(self, endpoint: Endpoint, timeout: float = 5.0) -> None:
        self._socket = socket.create_connection((endpoint.host, endpoint.port), timeout)
        self._received = bytearray()
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.sendall(startup_message(endpoint.user, endpoint.database))
            self._exchange = scram.Exchange(endpoint.password) if endpoint.password else None
            self._until_ready()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def query(self, sql: str) -> list[Row]:
        """The rows of a simple query, as text; PgError when the server reports one."""
        self.ask(sql)
        return self.answer()

    def ask(self, sql: str) -> None:
        self._send(b"Q", sql.encode() + b"\0")

    def answer(self) -> list[Row]:
        """What was asked for last; notifications in it are passed over."""
        return self._until_ready()

    def notification(self) -> str:
        """The payload of the next one, while nothing is asked."""
        while True:
            kind, body = self._message()
            if kind == b"E":
                raise PgError(error_text(body))
            if kind == b"A":
                _, payload, _ = body[4:].split(b"\0")
                return payload.decode()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the other side may be gone already
            self._socket.sendall(b"X\0\0\0\x04")
        self._socket.close()

    def _authenticate(self, kind: int, data: bytes) -> None:
        if kind == AUTHENTICATED:
            return
        if self._exchange is None:
            raise PgError("the server asks for a password, and none was given")
        try:
            if kind == SASL:
                first = self._exchange.first()
                name = scram.MECHANISM.encode() + b"\0"
                self._send(b"p", name + struct.pack("!i", len(first)) + first)
            elif kind == SASL_CONTINUE:
                self._send(b"p", self._exchange.final(data))
            elif kind == SASL_FINAL:
                self._exchange.check(data)
            else:
                raise PgError(f"the server asks for proof of kind {kind}")
        except scram.ScramError as error:
            raise PgError(str(error)) from error

    def _send(self, kind: bytes, body: bytes) -> None:
        self._socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)

    def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            more = self._socket.recv(RECEIVE_BYTES)
            if not more:
                raise PgError("connection closed by the server")
            self._received += more
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    def _message(self) -> tuple[bytes, bytes]:
        kind, length = struct.unpack("!ci", self._take(5))
        if not 4 <= length <= MESSAGE_MAX_BYTES:
            raise PgError(f"message of {length} bytes")
        return kind, self._take(length - 4)

    def _until_ready(self) -> list[Row]:
        rows: list[Row] = []
        failure: str | None = None
        while True:
            kind, body = self._message()
            if kind == b"R":
                self._authenticate(*struct.unpack_from("!i", body), body[4:])
            if kind == b"D":
                rows.append(data_row(body))
            elif kind == b"E":
                failure = error_text(body)
                if failure.startswith("FATAL"):
                    raise PgError(failure)
            elif kind == b"Z":
                if failure is not None:
                    raise PgError(failure)
                return rows
