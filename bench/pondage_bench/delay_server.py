"""PostgreSQL as if it were further away: what passes waits half of a round trip each way.

Run as `python3 delay_server.py SOCKET PORT POSTGRES_SOCKET MICROSECONDS`; it listens on a Unix
socket and on a port of 127.0.0.1. It uses nothing of its package, so that it needs no path.

One thread, with select(), whose timeout is in microseconds where that of epoll is in milliseconds.
"""

from __future__ import annotations

import contextlib
import select
import socket
import sys
import time
from collections import deque
from pathlib import Path

RECEIVE_BYTES = 1 << 18
BACKLOG = 256
# select() can't know of more.
FILES_MAX = 1000


class Delay:
    """Connections in pairs. What is received waits in one queue, as all waits equally long."""

    def __init__(self, listeners: list[socket.socket], behind: str, one_way: float) -> None:
        self._listeners = listeners
        self._behind = behind
        self._one_way = one_way
        self._other: dict[socket.socket, socket.socket] = {}
        #: When it is due, for whom, and what; nothing: the end.
        self._waiting: deque[tuple[float, socket.socket, bytes]] = deque()

    def serve(self) -> None:
        """Until killed."""
        while True:
            left = None
            if self._waiting:
                left = max(self._waiting[0][0] - time.monotonic(), 0.0)
            readable, _, _ = select.select([*self._listeners, *self._other], [], [], left)
            for ready in readable:
                if ready in self._listeners:
                    self._accept(ready)
                elif ready in self._other:
                    self._receive(ready)
            now = time.monotonic()
            while self._waiting and self._waiting[0][0] <= now:
                _, receiver, data = self._waiting.popleft()
                self._send(receiver, data)

    def _accept(self, listener: socket.socket) -> None:
        client, _ = listener.accept()
        if len(self._other) > FILES_MAX:
            client.close()
            return
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._behind)
        except OSError:
            client.close()
            server.close()
            return
        with contextlib.suppress(OSError):  # a Unix socket has no such delay
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._other[client], self._other[server] = server, client

    def _receive(self, sender: socket.socket) -> None:
        try:
            data = sender.recv(RECEIVE_BYTES)
        except OSError:
            data = b""
        receiver = self._other[sender]
        if not data:
            # The other side hears of it in time; a socket is closed when both have ended.
            del self._other[sender]
            if receiver not in self._other:
                sender.close()
        self._waiting.append((time.monotonic() + self._one_way, receiver, data))

    def _send(self, receiver: socket.socket, data: bytes) -> None:
        """Waits until it is taken: loads read what they asked for."""
        with contextlib.suppress(OSError):  # its end is noticed by reading
            if data:
                receiver.sendall(data)
            elif receiver in self._other:
                receiver.shutdown(socket.SHUT_WR)
            else:
                receiver.close()


def tighten_timers() -> None:
    """By default the kernel lets a process oversleep by 50 us."""
    with contextlib.suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1")


def main(path: str, port: int, behind: str, micros: int) -> None:
    """Everybody may connect, as to PostgreSQL's socket."""
    Path(path).unlink(missing_ok=True)
    local = socket.socket(socket.AF_UNIX)
    local.bind(path)
    Path(path).chmod(0o777)
    local.listen(BACKLOG)
    tighten_timers()
    listeners = [local, socket.create_server(("127.0.0.1", port), backlog=BACKLOG)]
    Delay(listeners, behind, micros / 2e6).serve()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
