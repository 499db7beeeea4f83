"""A PostgreSQL that knows log-in and says the same to everything: for tests without a cluster."""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path

from pondage_bench.constant_server import READY, message, socket_file
from pondage_bench.postgres import Upstream

PORT = 5432
REPORTED = message(b"S", b"server_version\x0015.20\0")
GREETING = message(b"R", bytes(4)) + REPORTED + message(b"K", bytes(8)) + READY
ANSWER = message(b"D", struct.pack("!hi", 1, 2) + b"42") + message(b"C", b"SELECT 1\0") + READY


class FakePostgres:
    """Listens on a Unix socket in `directory` until closed; `asked` is all it was sent after
    start-up, by connection.
    """

    def __init__(self, directory: Path) -> None:
        self.upstream = Upstream("127.0.0.1", PORT, directory, "u", "d")
        self.path = str(socket_file(directory, PORT))
        self.asked: list[bytes] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.asked.append(b"")
            number = len(self.asked) - 1
            threading.Thread(target=self._serve, args=(client, number), daemon=True).start()

    def _serve(self, client: socket.socket, number: int) -> None:
        """Every exchange of the tests comes in one piece."""
        with client:
            client.recv(4096)
            client.sendall(GREETING)
            while data := client.recv(4096):
                self.asked[number] += data
                client.sendall(ANSWER)
