"""Just enough of PostgreSQL's protocol 3.0 to log in without a password and run simple queries.

It waits for servers and gateways to answer, reads counters, and holds thousands of idle clients.
Source: PostgreSQL documentation, "Message Flow" and "Message Formats".
"""

from __future__ import annotations

import contextlib
import socket
import struct
from dataclasses import dataclass
from types import TracebackType

PROTOCOL_3_0 = 196608
# Longest message accepted, length word included: replies here are a few short rows.
MESSAGE_MAX_BYTES = 1 << 20
RECEIVE_BYTES = 8192

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
        text = sql.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
        return self._until_ready()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the other side may be gone already
            self._socket.sendall(b"X\0\0\0\x04")
        self._socket.close()

    def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            more = self._socket.recv(RECEIVE_BYTES)
            if not more:
                raise PgError("connection closed by the server")
            self._received += more
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    def _until_ready(self) -> list[Row]:
        rows: list[Row] = []
        failure: str | None = None
        while True:
            kind, length = struct.unpack("!ci", self._take(5))
            if not 4 <= length <= MESSAGE_MAX_BYTES:
                raise PgError(f"message of {length} bytes")
            body = self._take(length - 4)
            if kind == b"R" and body[:4] != b"\0\0\0\0":
                raise PgError("the server asks for a password; these benchmarks use trust")
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
