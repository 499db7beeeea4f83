import os
import struct
import tempfile
import time
import unittest
from pathlib import Path

from pondage_bench import proc
from pondage_bench.constant_server import (
    ANSWER_TO_QUERY,
    BEGIN,
    BOUND,
    CLOSED,
    COMMIT,
    DESCRIPTION,
    PARAMETERS,
    PARSED,
    READY,
    ROW_AND_DONE,
    SYSBENCH,
    Behind,
    Hangup,
    Session,
    greeting_of,
    message,
)
from pondage_bench.pgwire import Client, Endpoint, startup_message
from pondage_bench.processes import Supervisor
from pondage_bench.sides.constant import Constant

from .fake_postgres import ANSWER, REPORTED, FakePostgres

STARTUP = startup_message("u", "d")
SELECT = b"SELECT abalance FROM pgbench_accounts WHERE aid = 1;\0"
QUERY = message(b"Q", SELECT)
OTHER = b"select provolatile from pg_proc\0"
SYNC = message(b"S", b"")
DEADLINE_SECONDS = 20.0


class Files(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.postgres = FakePostgres(Path(temporary.name))
        self.addCleanup(self.postgres.close)
        self.behind = Behind(self.postgres.path, "u", "d")

    def session(self) -> Session:
        session = Session(b"hello", self.behind)
        self.addCleanup(session.close)
        self.assertEqual(session.answer(STARTUP), b"hello")
        return session


class Selects(Files):
    def test_bytes_may_come_one_by_one(self) -> None:
        session = Session(b"hello", self.behind)
        answers = [session.answer(bytes([byte])) for byte in STARTUP + QUERY]
        self.assertEqual(b"".join(answers), b"hello" + ANSWER_TO_QUERY)

    def test_a_pipeline_is_answered_in_order(self) -> None:
        bind = message(b"B", b"\0\0" + bytes(6))
        portal, statement = message(b"D", b"P\0"), message(b"D", b"S\0")
        execute, close = message(b"E", bytes(5)), message(b"C", b"S\0")
        sent = message(b"P", b"\0" + SELECT + bytes(2)) + statement
        sent += bind + portal + execute + bind + execute + close + SYNC
        expected = PARSED + PARAMETERS + DESCRIPTION + BOUND + DESCRIPTION + ROW_AND_DONE
        expected += BOUND + ROW_AND_DONE + CLOSED + READY
        self.assertEqual(self.session().answer(sent), expected)
        self.assertEqual(self.postgres.asked, [])

    def test_encryption_is_refused_and_login_goes_on(self) -> None:
        session = Session(b"hello", self.behind)
        self.assertEqual(session.answer(struct.pack("!ii", 8, 80877103)), b"N")
        self.assertEqual(session.answer(STARTUP), b"hello")

    def test_goodbye_and_garbage_hang_up(self) -> None:
        for garbage in (message(b"X", b""), b"Q\xff\xff\xff\xff", b"Q\x7f\xff\xff\xff"):
            session = self.session()
            with self.subTest(garbage), self.assertRaises(Hangup):
                session.answer(garbage)
        with self.assertRaises(Hangup):
            Session(b"hello", self.behind).answer(struct.pack("!i", 4))


class Sysbench(Files):
    def test_its_queries_and_transactions_are_answered_here(self) -> None:
        texts = (
            (b"BEGIN", BEGIN),
            (b"SELECT c FROM sbtest1 WHERE id=7", SYSBENCH),
            (b"SELECT c FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY c", SYSBENCH),
            (b"SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 1 AND 2 ORDER BY c", SYSBENCH),
            (b"SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 1 AND 100", SYSBENCH),
            (b"        SELECT id, k, c, pad\n          FROM sbtest1\n", SYSBENCH),
            (b"        SELECT count(k)\n          FROM sbtest1\n", SYSBENCH),
            (b"COMMIT", COMMIT),
        )
        session = self.session()
        for text, answer in texts:
            with self.subTest(text):
                self.assertEqual(session.answer(message(b"Q", text + b"\0")), answer.to_query)
        self.assertEqual(self.postgres.asked, [])

    def test_prepared_ones_are_told_apart_by_their_names(self) -> None:
        session = self.session()
        texts = ((b"b", b"BEGIN", BEGIN), (b"s", b"SELECT c FROM sbtest1 WHERE id=$1", SYSBENCH))
        for name, text, _ in texts:
            parse = message(b"P", name + b"\0" + text + bytes(3))
            self.assertEqual(session.answer(parse + SYNC), PARSED + READY)
        for _ in range(2):
            for name, _, answer in texts:
                bind = message(b"B", b"\0" + name + b"\0" + bytes(6))
                portal, execute = message(b"D", b"P\0"), message(b"E", bytes(5))
                executed = BOUND + answer.description + answer.any[ord("E")] + READY
                with self.subTest(name):
                    self.assertEqual(session.answer(bind + portal + execute + SYNC), executed)
                    # The same, message by message.
                    parts = [session.answer(part) for part in (bind, portal, execute, SYNC)]
                    self.assertEqual(b"".join(parts), executed)
        self.assertEqual(self.postgres.asked, [])


class HandedOn(Files):
    def test_other_queries_are_answered_by_postgresql(self) -> None:
        other = message(b"Q", OTHER)
        answers = self.session().answer(QUERY + other + QUERY)
        self.assertEqual(answers, ANSWER_TO_QUERY + ANSWER + ANSWER_TO_QUERY)
        self.assertEqual(self.postgres.asked, [other])

    def test_other_statements_go_there_up_to_their_sync_and_by_name_ever_after(self) -> None:
        session = self.session()
        parse = message(b"P", b"look\0" + OTHER + bytes(2))
        again = message(b"B", b"\0look\0" + bytes(6)) + message(b"E", bytes(5)) + SYNC
        self.assertEqual(session.answer(parse), b"")
        self.assertEqual(session.answer(SYNC), ANSWER)
        self.assertEqual(session.answer(again), ANSWER)
        self.assertEqual(self.postgres.asked, [parse + SYNC + again])
        ours = message(b"B", b"\0ours\0" + bytes(6)) + message(b"E", bytes(5)) + SYNC
        self.assertEqual(session.answer(ours), BOUND + ROW_AND_DONE + READY)

    def test_a_name_comes_back_with_a_select(self) -> None:
        session = self.session()
        session.answer(message(b"P", b"name\0" + OTHER + bytes(2)) + SYNC)
        select = message(b"P", b"name\0" + SELECT + bytes(2))
        bind = message(b"B", b"\0name\0" + bytes(6))
        self.assertEqual(session.answer(select + bind + SYNC), PARSED + BOUND + READY)

    def test_clients_are_told_what_postgresql_reports(self) -> None:
        greeting = greeting_of(self.behind)
        self.assertIn(REPORTED, greeting)
        self.assertTrue(greeting.endswith(READY))


class Serving(Files):
    def test_it_answers_on_both_sockets_and_ends_with_all_its_processes(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            side = Constant()
            with Supervisor(Path(temporary) / "run") as supervisor:
                side.start(supervisor, self.postgres.upstream)
                with Client(side.endpoint) as client:
                    self.assertEqual(client.query("select 42"), [["42"]])
                    self.assertEqual(client.query(SELECT[:-1].decode()), [["1"]])
                served = side.as_upstream()
                self.assertTrue((served.socket_directory / f".s.PGSQL.{served.port}").is_socket())
                self.assertEqual(served.endpoint(), Endpoint("127.0.0.1", served.port, "u", "d"))
                assert side.pid is not None
                pids = proc.tree_pids(side.pid)
                self.assertEqual(len(pids), os.cpu_count())
                side.stop()
            deadline = time.monotonic() + DEADLINE_SECONDS
            while any(Path(f"/proc/{pid}").exists() for pid in pids):
                self.assertLess(time.monotonic(), deadline)
