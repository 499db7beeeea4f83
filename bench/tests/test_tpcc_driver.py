import struct
import unittest
from dataclasses import asdict

from pondage_bench.pgwire import PgError
from pondage_bench.tpcc import driver
from pondage_bench.tpcc.draws import Order, OrderedLine, Payment
from pondage_bench.tpcc.driver import Client, Outcome, Task, _parse, _together, tapes_of
from pondage_bench.tpcc.requests import (
    CALL,
    COMMIT,
    ROLLBACK,
    STATEMENTS,
    TEXTS,
    WAYS,
    call,
    preparing,
    request,
    steps,
)

TASK = Task(
    "127.0.0.1", 5432, "postgres", "tpcc", "payment", CALL, 10, 30, 25, seed=1, seconds=2.5,
    warm_up=1.0,
)  # fmt: skip
PAYMENT = Payment(1, 2, 3, 4, 5, None, 1234)
ORDER = Order(1, 2, 3, (OrderedLine(7, 1, 2), OrderedLine(8, 9, 3)), refused=False)


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def sent(text: bytes) -> list[tuple[str, bytes]]:
    """Messages by kind, with their bodies."""
    found, at = [], 0
    while at < len(text):
        (length,) = struct.unpack_from("!i", text, at + 1)
        found.append((chr(text[at]), text[at + 5 : at + 1 + length]))
        at += 1 + length
    return found


def bound(text: bytes) -> tuple[str, list[str | None]]:
    """The name of the last statement that is bound, and its values."""
    body = [body for kind, body in sent(text) if kind == "B"][-1]
    portal, name, rest = body.split(b"\0", 2)
    assert portal == b"" and rest[:2] == b"\0\0"
    (count,) = struct.unpack_from("!h", rest, 2)
    values: list[str | None] = []
    at = 4
    for _ in range(count):
        (length,) = struct.unpack_from("!i", rest, at)
        at += 4
        values.append(None if length < 0 else rest[at : at + length].decode())
        at += max(length, 0)
    assert rest[at:] == b"\0\0"
    return name.decode(), values


def replies(answers: dict[str, list[list[list[str | None]]]], drawn: Payment | Order) -> list[str]:
    """Names of the statements that a transaction runs when it gets these rows."""
    running, names = steps(drawn), []
    text = next(running)
    try:
        while True:
            name, _ = bound(text)
            names.append(name)
            rows = answers.get(name, [[]])
            text = running.send(rows.pop(0) if len(rows) > 1 else rows[0])
    except StopIteration:
        return names


class Requests(unittest.TestCase):
    def test_a_call_is_one_round_trip(self) -> None:
        self.assertEqual([kind for kind, _ in sent(call(PAYMENT))], ["B", "E", "S"])
        values = ["1", "2", "3", "4", "5", None, "12.34"]
        self.assertEqual(bound(call(PAYMENT)), ("payment", values))
        by_name = Payment(1, 2, 3, 4, 5, "BARBARBAR", 1234)
        self.assertEqual(bound(call(by_name))[1][4:6], [None, "BARBARBAR"])
        expected = ["1", "2", "3", "{7,8}", "{1,9}", "{2,3}"]
        self.assertEqual(bound(call(ORDER)), ("neworder", expected))

    def test_begin_goes_with_the_first_statement_and_commit_alone(self) -> None:
        first = next(steps(PAYMENT))
        self.assertEqual([kind for kind, _ in sent(first)], ["B", "E", "B", "E", "S"])
        self.assertEqual(bound(first)[0], "pay_warehouse")
        for alone in (COMMIT, ROLLBACK):
            self.assertEqual([kind for kind, _ in sent(alone)], ["B", "E", "S"])

    def test_a_payment_by_number_or_by_name_with_good_or_bad_credit(self) -> None:
        found: dict[str, list[list[list[str | None]]]] = {
            "pay_warehouse": [[["W"]]], "pay_district": [[["D"]]], "payer": [[["GC"]]],
            "paid": [[["-1"]]], "paid_badly": [[["-1"]]], "named": [[["77"]]],
        }  # fmt: skip
        usual = ["pay_warehouse", "pay_district", "payer", "paid", "history", "commit"]
        self.assertEqual(replies(dict(found), PAYMENT), usual)
        named = Payment(1, 2, 3, 4, 5, "BARBARBAR", 1234)
        bad = found | {"payer": [[["BC"]]]}
        self.assertEqual(
            replies(bad, named),
            ["pay_warehouse", "pay_district", "named", "payer", "paid_badly", "history", "commit"],
        )

    def test_an_order_has_three_statements_a_line_and_is_undone_without_an_item(self) -> None:
        def found() -> dict[str, list[list[list[str | None]]]]:
            return {
                "tax": [[["0.1"]]], "number": [[["21", "0.1"]]], "buyer": [[["0", "A", "GC"]]],
                "stock": [[["9", "data", "dist"]]], "item": [[["2.50", "name", "data"]]],
            }  # fmt: skip

        head = ["tax", "number", "buyer", "order", "new_order"]
        line = ["item", "stock", "line"]
        self.assertEqual(replies(found(), ORDER), [*head, *line, *line, "commit"])
        missing = found() | {"item": [[["2.50", "name", "data"]], []]}
        self.assertEqual(replies(missing, ORDER), [*head, *line, "item", "rollback"])

    def test_a_statement_that_finds_nothing_is_an_error(self) -> None:
        running = steps(PAYMENT)
        next(running)
        with self.assertRaises(PgError):
            running.send([])

    def test_every_statement_that_is_run_was_prepared(self) -> None:
        for way in WAYS:
            kinds = [kind for kind, _ in sent(preparing(way))]
            self.assertEqual(kinds, ["P"] * len(TEXTS[way]) + ["S"])
        self.assertEqual(bound(request("history", 1, None, "x")), ("history", ["1", None, "x"]))


class Tapes(unittest.TestCase):
    def test_both_ways_run_the_same_transactions(self) -> None:
        for transaction in ("payment", "neworder"):
            calls, drawn = (
                tapes_of(Task(**{**asdict(TASK), "way": way, "transaction": transaction}))
                for way in (CALL, STATEMENTS)
            )
            self.assertEqual(len(calls), 10)
            for tape, other in zip(calls, drawn, strict=True):
                self.assertEqual(len(tape), driver.DRAWN // 10)
                for (text, refused), (asked, also_refused) in zip(tape[:50], other, strict=False):
                    assert isinstance(asked, (Payment, Order))
                    self.assertEqual((text, refused), (call(asked), also_refused))

    def test_only_warehouses_with_clients_have_one(self) -> None:
        few = tapes_of(Task(**{**asdict(TASK), "clients": 2}))
        self.assertEqual(len(few), 2)


def reading() -> Client:
    client = object.__new__(Client)
    client.rest, client.rows, client.error = b"", [], ""
    return client


class Reading(unittest.TestCase):
    ANSWER = (
        message(b"2") + message(b"D", b"\0\1\0\0\0\1x") + message(b"C", b"CALL\0")
        + message(b"Z", b"I")
    )  # fmt: skip

    def test_an_answer_may_come_in_any_pieces(self) -> None:
        for cut in range(1, len(self.ANSWER)):
            client = reading()
            self.assertIsNone(client.take(self.ANSWER[:cut]))
            self.assertEqual(client.take(self.ANSWER[cut:]), ord("I"))
            self.assertEqual((client.rows, client.rest), ([b"\0\1\0\0\0\1x"], b""))

    def test_what_looks_like_an_end_within_a_row_is_none(self) -> None:
        client = reading()
        self.assertIsNone(client.take(message(b"D", b"Z\0\0\0\5I" * 3)))
        self.assertEqual(client.take(message(b"Z", b"E")), ord("E"))

    def test_errors_are_kept_and_a_closed_connection_is_one(self) -> None:
        client = reading()
        failed = message(b"E", b"SERROR\0C40P01\0Mdeadlock\0\0") + message(b"Z", b"I")
        self.assertEqual(client.take(failed), ord("I"))
        self.assertIn("40P01", client.error)
        with self.assertRaisesRegex(PgError, "40P01"):
            client.take(b"")
        with self.assertRaises(PgError):
            reading().take(message(b"E", b"SFATAL\0C57P01\0Mending\0\0"))


class Outcomes(unittest.TestCase):
    def test_processes_are_added_up(self) -> None:
        one = Outcome(5, 1, 4, 5, 2.0, errors={"40P01": 2})
        other = Outcome(7, 0, 6, 7, 2.5, errors={"40P01": 1, "40001": 1}, failed={"40001": 1})
        times = driver.array("d", [0.001 * n for n in range(1, 101)])
        whole = _together([(one, times), (other, driver.array("d"))])
        self.assertEqual((whole.committed, whole.refused, whole.in_time), (12, 1, 10))
        self.assertEqual((whole.ended, whole.seconds), (12, 2.5))
        self.assertEqual(whole.errors, {"40P01": 3, "40001": 1})
        self.assertEqual(whole.failed, {"40001": 1})
        self.assertAlmostEqual(whole.p50_ms, 50.0)
        self.assertAlmostEqual(whole.p99_ms, 99.0)

    def test_an_outcome_is_the_last_line(self) -> None:
        self.assertEqual(Outcome.read('measuring\n{"committed": 3}\n').committed, 3)
        for text in ("", "measuring\n", '{"nothing": 1}', "[1]"):
            with self.subTest(text), self.assertRaises(PgError):
                Outcome.read(text)

    def test_a_task_survives_the_command_line(self) -> None:
        self.assertEqual(_parse(TASK.arguments()), TASK)


if __name__ == "__main__":
    unittest.main()
