import os
import struct
import tempfile
import time
import unittest
from pathlib import Path

from pondage_bench import proc
from pondage_bench.constant_server import ANSWERS, GREETING, Hangup, Session, message
from pondage_bench.pgwire import Client, startup_message
from pondage_bench.postgres import Upstream
from pondage_bench.processes import Supervisor
from pondage_bench.sides.constant import Constant

STARTUP = startup_message("u", "d")
QUERY = message(b"Q", b"select 1\0")
DEADLINE_SECONDS = 20.0


class Sessions(unittest.TestCase):
    def test_bytes_may_come_one_by_one(self) -> None:
        session = Session()
        answers = [session.answer(bytes([byte])) for byte in STARTUP + QUERY]
        self.assertEqual(b"".join(answers), GREETING + ANSWERS[b"Q"])

    def test_a_pipeline_is_answered_in_order(self) -> None:
        session = Session()
        session.answer(STARTUP)
        kinds = (b"P", b"B", b"D", b"E", b"S")
        sent = b"".join(message(kind, b"\0\0") for kind in kinds)
        self.assertEqual(session.answer(sent), b"".join(ANSWERS[kind] for kind in kinds))

    def test_encryption_is_refused_and_login_goes_on(self) -> None:
        session = Session()
        self.assertEqual(session.answer(struct.pack("!ii", 8, 80877103)), b"N")
        self.assertEqual(session.answer(STARTUP), GREETING)

    def test_goodbye_and_garbage_hang_up(self) -> None:
        for garbage in (message(b"X", b""), b"Q\xff\xff\xff\xff", b"Q\x7f\xff\xff\xff"):
            session = Session()
            session.answer(STARTUP)
            with self.subTest(garbage), self.assertRaises(Hangup):
                session.answer(garbage)
        with self.assertRaises(Hangup):
            Session().answer(struct.pack("!i", 4))


class Serving(unittest.TestCase):
    def test_it_answers_and_ends_with_all_its_processes(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            side = Constant()
            with Supervisor(Path(temporary) / "run") as supervisor:
                side.start(supervisor, Upstream("127.0.0.1", 1, Path("/x"), "u", "d"))
                with Client(side.endpoint) as client:
                    self.assertEqual(client.query("select 42"), [["1"]])
                assert side.pid is not None
                pids = proc.tree_pids(side.pid)
                self.assertEqual(len(pids), os.cpu_count())
                side.stop()
            deadline = time.monotonic() + DEADLINE_SECONDS
            while any(Path(f"/proc/{pid}").exists() for pid in pids):
                self.assertLess(time.monotonic(), deadline)
