import socket
import struct
import threading
import unittest
from collections.abc import Callable

from pondage_bench.pgwire import Client, Endpoint, PgError, data_row, startup_message

READY = b"Z\0\0\0\5I"
AUTHENTICATED = b"R\0\0\0\x08\0\0\0\0"
SERVER_TIMEOUT = 10.0


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


class OneShotServer:
    """Accepts one client on a free port and runs `script` on it."""

    def __init__(self, script: Callable[[socket.socket], None]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(SERVER_TIMEOUT)
        self._script = script
        self._thread = threading.Thread(target=self._serve)
        port = self._listener.getsockname()[1]
        self.endpoint = Endpoint("127.0.0.1", port, "u", "d")

    def __enter__(self) -> "OneShotServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(SERVER_TIMEOUT)
        self._listener.close()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        client.settimeout(SERVER_TIMEOUT)
        with client:
            (length,) = struct.unpack("!i", client.recv(4))
            client.recv(length - 4)
            self._script(client)


class Messages(unittest.TestCase):
    def test_startup_message_tells_its_own_length(self) -> None:
        built = startup_message("postgres", "scale10")
        self.assertEqual(struct.unpack_from("!ii", built), (len(built), 196608))
        self.assertTrue(built.endswith(b"database\0scale10\0\0"))

    def test_a_row_with_a_null(self) -> None:
        body = struct.pack("!hi", 2, 2) + b"42" + struct.pack("!i", -1)
        self.assertEqual(data_row(body), ["42", None])

    def test_a_truncated_row_is_an_error(self) -> None:
        with self.assertRaises(PgError):
            data_row(struct.pack("!hi", 2, 0))


class Conversations(unittest.TestCase):
    def test_rows_arrive_however_the_bytes_are_split(self) -> None:
        row = message(b"D", struct.pack("!hi", 1, 1) + b"1")

        def script(client: socket.socket) -> None:
            for byte in AUTHENTICATED + READY:
                client.sendall(bytes([byte]))
            client.recv(1024)
            for byte in row + READY:
                client.sendall(bytes([byte]))
            client.recv(1024)

        with OneShotServer(script) as server, Client(server.endpoint) as client:
            self.assertEqual(client.query("select 1"), [["1"]])

    def test_an_error_during_login_is_told(self) -> None:
        error = message(b"E", b"SFATAL\0C3D000\0Mno such database\0\0")
        with (
            OneShotServer(lambda client: client.sendall(error)) as server,
            self.assertRaisesRegex(PgError, "3D000: no such database"),
        ):
            Client(server.endpoint)

    def test_a_server_that_asks_for_a_password_is_refused(self) -> None:
        scram = message(b"R", struct.pack("!i", 10) + b"SCRAM-SHA-256\0\0")
        with (
            OneShotServer(lambda client: client.sendall(scram)) as server,
            self.assertRaisesRegex(PgError, "none was given"),
        ):
            Client(server.endpoint)

    def test_a_connection_closed_half_way_is_an_error(self) -> None:
        with (
            OneShotServer(lambda client: client.sendall(AUTHENTICATED)) as server,
            self.assertRaisesRegex(PgError, "closed"),
        ):
            Client(server.endpoint)

    def test_a_notification_is_passed_over_in_an_answer_and_told_when_asked_for(self) -> None:
        def told(payload: bytes) -> bytes:
            return message(b"A", struct.pack("!i", 7) + b"a\0" + payload + b"\0")

        def script(client: socket.socket) -> None:
            client.sendall(AUTHENTICATED + READY)
            client.recv(1024)
            client.sendall(told(b"x") + READY + told(b"y"))
            client.recv(1024)

        with OneShotServer(script) as server, Client(server.endpoint) as client:
            client.ask("select 1")
            self.assertEqual(client.answer(), [])
            self.assertEqual(client.notification(), "y")

    def test_an_absurd_length_is_an_error(self) -> None:
        with (
            OneShotServer(lambda client: client.sendall(b"D\x7f\xff\xff\xff")) as server,
            self.assertRaisesRegex(PgError, "bytes"),
        ):
            Client(server.endpoint)
