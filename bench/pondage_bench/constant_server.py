"""A server that answers every statement with the same row: the limit of what a load can ask.

It logs everybody in, keeps nothing and runs nothing. Run as
`python3 constant_server.py PORT`; it uses nothing of its package, so that it needs no path.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import sys

MESSAGE_MAX_BYTES = 1 << 20
RECEIVE_BYTES = 65536
BACKLOG = 1024
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


READY = message(b"Z", b"I")
GREETING = (
    message(b"R", struct.pack("!i", 0))
    + message(b"S", b"server_version\x0015.0\0")
    + message(b"S", b"client_encoding\0UTF8\0")
    + message(b"S", b"standard_conforming_strings\0on\0")
    + message(b"K", struct.pack("!ii", 1, 1))
    + READY
)
INT4 = struct.pack("!ihihih", 0, 0, 23, 4, -1, 0)
DESCRIPTION = message(b"T", struct.pack("!h", 1) + b"abalance\0" + INT4)
ROW = message(b"D", struct.pack("!hi", 1, 1) + b"1")
DONE = message(b"C", b"SELECT 1\0")
# pgbench asks once how its tables are partitioned, and needs these columns: 1, null, 0.
PARTITIONS_ASKED = b"partstrat"
PARTITIONS = (
    message(b"T", struct.pack("!h", 3) + (b"n\0" + INT4) * 3)
    + message(b"D", struct.pack("!hi", 3, 1) + b"1" + struct.pack("!ii", -1, 1) + b"0")
    + DONE
    + READY
)
#: What each message of a client is answered with.
ANSWERS = {
    b"Q": DESCRIPTION + ROW + DONE + READY,
    b"P": message(b"1", b""),
    b"B": message(b"2", b""),
    b"C": message(b"3", b""),
    b"D": DESCRIPTION,
    b"E": ROW + DONE,
    b"S": READY,
    b"H": b"",
}


class Hangup(Exception):
    """The client said goodbye, or spoke something else."""


class Session:
    """One client: bytes go into `answer`, the bytes to send come out."""

    def __init__(self) -> None:
        self._received = b""
        self._logged_in = False

    def answer(self, data: bytes) -> bytes:
        """Raises Hangup when the connection has to be closed."""
        received = self._received + data
        answers: list[bytes] = []
        at = 0
        while True:
            head = 5 if self._logged_in else 4
            if len(received) - at < head:
                break
            (length,) = struct.unpack_from("!i", received, at + head - 4)
            if not 4 <= length <= MESSAGE_MAX_BYTES:
                raise Hangup
            end = at + head - 4 + length
            if len(received) < end:
                break
            answers.append(self._one(received, at, end))
            at = end
        self._received = received[at:]
        return b"".join(answers)

    def _one(self, received: bytes, at: int, end: int) -> bytes:
        if self._logged_in:
            answer = ANSWERS.get(received[at : at + 1])
            if answer is None:
                raise Hangup
            asks_partitions = PARTITIONS_ASKED in received[at:end]
            return PARTITIONS if asks_partitions else answer
        if end - at < 8:
            raise Hangup
        (code,) = struct.unpack_from("!i", received, at + 4)
        if code in (SSL_REQUEST, GSS_REQUEST):
            return b"N"
        if code == CANCEL_REQUEST:
            raise Hangup
        self._logged_in = True
        return GREETING


def serve(listener: socket.socket, lifeline: int | None) -> None:
    """Until killed, or until the other end of `lifeline` is closed.

    One thread; an answer is written at once or the client is dropped.
    """
    selector = selectors.EpollSelector()
    listener.setblocking(False)
    selector.register(listener, selectors.EVENT_READ)
    if lifeline is not None:
        selector.register(lifeline, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj == lifeline:
                return
            if key.fileobj is listener:
                _accept(listener, selector)
                continue
            client = key.fileobj
            assert isinstance(client, socket.socket)
            try:
                data = client.recv(RECEIVE_BYTES)
                if not data:
                    raise Hangup
                answer = key.data.answer(data)
                if answer:
                    client.sendall(answer)
            except BlockingIOError:
                continue
            except (Hangup, OSError):
                selector.unregister(client)
                client.close()


def _accept(listener: socket.socket, selector: selectors.BaseSelector) -> None:
    try:
        client, _ = listener.accept()
    except OSError:
        return  # another process took it
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.setblocking(False)
    selector.register(client, selectors.EVENT_READ, Session())


def main(port: int) -> None:
    """A process per processor, on one listening socket. All end with the first."""
    listener = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    lifeline, held = os.pipe()
    for _ in range((os.cpu_count() or 1) - 1):
        if os.fork() == 0:
            os.close(held)
            serve(listener, lifeline)
            return
    serve(listener, None)


if __name__ == "__main__":
    main(int(sys.argv[1]))
