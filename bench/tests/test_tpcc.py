import tempfile
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pondage_bench.pgwire import Client, PgError
from pondage_bench.postgres import Cluster, default_settings, find_bindir
from pondage_bench.procedure_loads import ProcedureLoad
from pondage_bench.processes import BenchError, Supervisor
from pondage_bench.tpcc import database, draws
from pondage_bench.tpcc.consistency import CONDITIONS, violations
from pondage_bench.tpcc.driver import Outcome, Task, run
from pondage_bench.tpcc.requests import CALL, STATEMENTS, WAYS
from pondage_bench.tpcc.size import Size
from pondage_bench.workloads.procedure import Procedure

SIZE = Size(warehouses=2, customers=20)
# What each condition is there to find: a statement, and all that it breaks.
WRONG: dict[int, tuple[str, set[int]]] = {
    1: ("UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 1 AND d_id = 3", {1, 9}),
    2: ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 2 AND d_id = 1", {2}),
    3: (
        "WITH gone AS (DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 17)"
        " UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 17",
        {3, 7},
    ),
    4: ("DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 20", {4, 6}),
    5: (
        "INSERT INTO new_order SELECT 1, 2, min(no_o_id) - 1 FROM new_order"
        " WHERE no_w_id = 1 AND no_d_id = 2",
        {5},
    ),
    6: (
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 4 THEN 1 ELSE -1 END"
        " WHERE o_w_id = 2 AND o_d_id = 10 AND o_id IN (4, 5)",
        {6},
    ),
    7: (
        "UPDATE order_line SET ol_delivery_d = NULL"
        " WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1",
        {7},
    ),
    8: (
        "WITH w AS (UPDATE warehouse SET w_ytd = w_ytd - 5 WHERE w_id = 2)"
        " UPDATE district SET d_ytd = d_ytd - 5 WHERE d_w_id = 2 AND d_id = 7",
        {8, 9},
    ),
    9: (
        "UPDATE district SET d_ytd = d_ytd + CASE d_id WHEN 1 THEN 5 ELSE -5 END"
        " WHERE d_w_id = 2 AND d_id IN (1, 2)",
        {9},
    ),
    10: (
        "UPDATE customer SET c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1"
        " WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1",
        {10},
    ),
    12: (
        "UPDATE customer SET c_ytd_payment = c_ytd_payment + 1"
        " WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1",
        {12},
    ),
}


def contents(client: Client) -> dict[str, str | None]:
    """A digest of each table, of all but the times."""
    digests: dict[str, str | None] = {}
    tables = client.query("SELECT relname FROM pg_stat_user_tables ORDER BY relname")
    for (table,) in tables:
        plain = "to_jsonb(t) - '{h_date, o_entry_d, ol_delivery_d, c_since}'::text[]"
        rows = f"SELECT ({plain})::text AS row FROM {table} t"
        digest_of = "SELECT md5(string_agg(row, ';' ORDER BY row))"
        ((digest,),) = client.query(f"{digest_of} FROM ({rows}) r")
        digests[table or ""] = digest
    return digests


class Conditions(unittest.TestCase):
    def test_all_but_that_of_deliveries_are_there(self) -> None:
        numbers = [condition.number for condition in CONDITIONS]
        self.assertEqual(numbers, [*range(1, 11), 12])
        self.assertEqual(set(numbers), set(WRONG))


class Loaded(unittest.TestCase):
    """In a small PostgreSQL of its own, which every test finds as it was loaded."""

    cluster: Cluster

    @classmethod
    def setUpClass(cls) -> None:
        try:
            find_bindir()
        except BenchError as error:
            raise unittest.SkipTest(str(error)) from error
        directory = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        directory.chmod(0o755)
        supervisor = cls.enterClassContext(Supervisor(directory / "run"))
        settings = {**default_settings(), **Procedure().settings(), "shared_buffers": "64MB"}
        settings |= {"fsync": "off", "synchronous_commit": "off"}
        cls.cluster = Cluster(supervisor, settings)
        cls.cluster.start()
        database.create(cls.cluster, "tpcc", SIZE)

    @contextmanager
    def undone(self) -> Iterator[Client]:
        with self.cluster.client("tpcc") as client:
            client.query("BEGIN")
            yield client

    def one(self, client: Client, sql: str) -> str | None:
        ((value,),) = client.query(sql)
        return value

    def test_what_is_loaded_is_consistent_and_as_large_as_it_says(self) -> None:
        with self.undone() as client:
            self.assertEqual(violations(client), [])
            for table, rows in (
                ("warehouse", 2), ("district", 20), ("customer", 400), ("history", SIZE.payments),
                ("orders", SIZE.orders), ("new_order", 2 * 10 * 6), ("item", SIZE.items),
                ("stock", 2 * SIZE.items),
            ):  # fmt: skip
                self.assertEqual(self.one(client, f"SELECT count(*) FROM {table}"), str(rows))
            lines = int(self.one(client, "SELECT count(*) FROM order_line") or 0)
            self.assertTrue(5 * SIZE.orders <= lines <= 15 * SIZE.orders)

    def test_a_wrong_database_is_found_out(self) -> None:
        for number, (statement, broken) in WRONG.items():
            with self.subTest(number), self.undone() as client:
                client.query(statement)
                found = {violation.condition.number for violation in violations(client)}
                self.assertIn(number, found)
                self.assertEqual(found, broken)

    def test_a_payment_moves_money_once_and_bad_credit_is_written_down(self) -> None:
        with self.undone() as client:
            client.query(
                "UPDATE customer SET c_credit = CASE c_id WHEN 5 THEN 'BC' ELSE 'GC' END"
            )
            for customer in (4, 5):
                client.query(f"CALL payment(1, 2, 2, 3, {customer}, NULL, 12.34, NULL)")
            client.query("CALL payment(1, 2, 2, 3, NULL, 'BARBARPRI', 1, NULL)")
            self.assertEqual(violations(client), [])
            paid = "SELECT w_ytd FROM warehouse WHERE w_id = 1"
            self.assertEqual(self.one(client, paid), "2025.68")
            noted = "SELECT c_data LIKE '5 3 2 2 1 12.34 %', c_balance FROM customer"
            at = "WHERE c_w_id = 2 AND c_d_id = 3 AND c_id"
            self.assertEqual(client.query(f"{noted} {at} = 5"), [["t", "-22.34"]])
            self.assertEqual(client.query(f"{noted} {at} = 4")[0][0], "f")

    def test_the_customer_in_the_middle_by_first_name_pays(self) -> None:
        with self.undone() as client:
            for people, middle in ((3, 8), (4, 8), (5, 7)):
                # The later the number, the earlier the first name.
                client.query(
                    f"UPDATE customer SET c_first = (30 - c_id)::text, c_last = 'SAME{people}'"
                    f" WHERE c_w_id = 1 AND c_d_id = 1 AND c_id BETWEEN {10 - people} AND 9"
                )
                name = f"NULL, 'SAME{people}', 10, NULL"
                ((receipt,),) = client.query(f"CALL payment(2, 5, 1, 1, {name})")
                self.assertIn(f",{middle},{30 - middle},OE,SAME{people},", receipt or "")
                client.query("UPDATE customer SET c_last = 'OTHER' WHERE c_last LIKE 'SAME%'")

    def test_a_payment_is_in_the_history_as_the_specification_says(self) -> None:
        with self.undone() as client:
            client.query("CALL payment(2, 4, 1, 3, 6, NULL, 4999.99, NULL)")
            self.assertEqual(
                client.query(
                    "SELECT h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date = now(), h_amount,"
                    " h_data = w_name || '    ' || d_name FROM history, warehouse, district"
                    " WHERE h_amount > 10 AND w_id = 2 AND d_w_id = 2 AND d_id = 4"
                ),
                [["6", "3", "1", "4", "2", "t", "4999.99", "t"]],
            )

    def test_bad_credit_keeps_five_hundred_characters_and_tells_two_hundred(self) -> None:
        with self.undone() as client:
            client.query("UPDATE customer SET c_credit = 'BC', c_data = repeat('x', 500)")
            ((receipt,),) = client.query("CALL payment(1, 2, 2, 3, 4, NULL, 1.00, NULL)")
            noted = "4 3 2 2 1 1.00 "
            self.assertIn(noted + "x" * (200 - len(noted)) + '"', receipt or "")
            at = "WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 4"
            data = self.one(client, f"SELECT c_data FROM customer {at}")
            self.assertEqual(data, noted + "x" * (500 - len(noted)))

    def test_stock_and_totals_of_an_order_are_as_the_specification_says(self) -> None:
        with self.undone() as client:
            client.query("UPDATE stock SET s_quantity = CASE s_i_id WHEN 1 THEN 20 ELSE 19 END")
            client.query("UPDATE item SET i_price = i_id, i_data = 'an ORIGINAL one'")
            client.query("UPDATE stock SET s_data = 'ORIGINALLY' WHERE s_i_id = 2")
            client.query("UPDATE stock SET s_data = 'plain' WHERE s_i_id <> 2")
            client.query("UPDATE warehouse SET w_tax = 0.1")
            client.query("UPDATE district SET d_tax = 0.15")
            client.query("UPDATE customer SET c_discount = 0.2")
            lines = "ARRAY[1, 2, 3], ARRAY[1, 1, 2], ARRAY[10, 10, 9]"
            order = f"SELECT total, lines::text FROM neworder(1, 7, 5, {lines})"
            ((total, told),) = client.query(order)
            # 10 * 1 + 10 * 2 + 9 * 3 = 57, times 0.8, times 1.25.
            self.assertEqual(float(total or 0), 57.0)
            self.assertIn(",10,G,1.00,10.00)", told or "")
            self.assertIn(",100,B,2.00,20.00)", told or "")
            self.assertIn(",10,G,3.00,27.00)", told or "")
            self.assertEqual(
                client.query(
                    "SELECT ol_number, ol_amount, ol_dist_info = s_dist_07, s_ytd, s_order_cnt,"
                    " s_remote_cnt, ol_delivery_d FROM order_line JOIN stock ON s_i_id = ol_i_id"
                    " AND s_w_id = ol_supply_w_id WHERE ol_w_id = 1 AND ol_d_id = 7"
                    " AND ol_o_id = 21 ORDER BY ol_number"
                ),
                [
                    ["1", "10.00", "t", "10", "1", "0", None],
                    ["2", "20.00", "t", "10", "1", "0", None],
                    ["3", "27.00", "t", "9", "1", "1", None],
                ],
            )

    def test_an_order_is_placed_and_a_refused_one_leaves_nothing(self) -> None:
        good = "1, 2, 3, ARRAY[1, 2, 3, 4, 5], ARRAY[1, 1, 2, 1, 1], ARRAY[1, 2, 3, 4, 5]"
        bad = good.replace("4, 5], ARRAY[1, 1, 2", f"4, {SIZE.items + 1}], ARRAY[1, 1, 2")
        with self.undone() as client:
            client.query("SAVEPOINT before")
            with self.assertRaisesRegex(PgError, "ERROR 23503: item number is not valid"):
                client.query(f"SELECT neworder({bad})")
            client.query("ROLLBACK TO before")
            placed = client.query(f"SELECT o_id, cardinality(lines) FROM neworder({good})")
            self.assertEqual(placed, [["21", "5"]])
            self.assertEqual(violations(client), [])
            remote = "SELECT s_remote_cnt, s_ytd FROM stock WHERE s_w_id = 2 AND s_i_id = 3"
            self.assertEqual(client.query(remote), [["1", "3"]])
            where = "WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 21"
            self.assertEqual(self.one(client, f"SELECT o_all_local FROM orders {where}"), "0")

    def test_both_ways_make_the_same_of_the_same_draws(self) -> None:
        for transaction in draws.TRANSACTIONS:
            with self.subTest(transaction):
                statements, call = (
                    self.left_by(transaction, way) for way in (STATEMENTS, CALL)
                )
                self.assertEqual(statements, call)
                with self.cluster.client("tpcc") as client:
                    self.assertNotEqual(call, contents(client))

    def left_by(self, transaction: str, way: str) -> dict[str, str | None]:
        """The tables after some hundred transactions of one client."""
        database.copy(self.cluster, "tpcc", "worked")
        try:
            outcome = run(self.task(transaction, way, clients=1, each=400), lambda: None)
            self.assertEqual(outcome.errors, {})
            self.assertEqual(outcome.committed + outcome.refused, 400)
            with self.cluster.client("worked") as client:
                ProcedureLoad(transaction, SIZE, 1, 0, 8).verify(client, outcome)
                return contents(client)
        finally:
            database.drop(self.cluster, "worked")

    def task(self, transaction: str, way: str, *, clients: int, each: int) -> Task:
        return Task(
            "127.0.0.1", self.cluster.port, self.cluster.user, "worked", transaction, way,
            SIZE.warehouses, SIZE.customers, clients, seed=25, seconds=0, transactions=each,
            processes=min(2, clients),
        )  # fmt: skip

    def test_many_clients_of_several_processes_lose_nothing(self) -> None:
        for way in WAYS:
            with self.subTest(way):
                database.copy(self.cluster, "tpcc", "worked")
                measured = []
                task = self.task(draws.NEW_ORDER, way, clients=9, each=30)
                outcome = run(task, lambda told=measured: told.append(1))
                self.assertEqual(measured, [1])
                self.assertEqual(outcome.committed + outcome.refused, 9 * 30)
                self.assertEqual((outcome.ended, outcome.failed), (9 * 30, {}))
                self.assertTrue(0 < outcome.p50_ms <= outcome.p99_ms)
                # Two clients of a warehouse update the same few rows of stock.
                self.assertLessEqual(set(outcome.errors), {"40P01"})
                with self.cluster.client("worked") as client:
                    ProcedureLoad(draws.NEW_ORDER, SIZE, 9, 0, 8).verify(client, outcome)
                database.drop(self.cluster, "worked")

    def test_an_error_that_nobody_expects_is_told_and_not_tried_again(self) -> None:
        for way, table in ((CALL, "item"), (STATEMENTS, "history")):
            with self.subTest(way):
                database.copy(self.cluster, "tpcc", "worked")
                transaction = draws.NEW_ORDER if way == CALL else draws.PAYMENT
                with self.cluster.client("worked") as client:
                    client.query(f"ALTER TABLE {table} RENAME TO gone")
                task = self.task(transaction, way, clients=1, each=3)
                if way == STATEMENTS:
                    # It can't even be prepared.
                    with self.assertRaises(PgError):
                        run(task, lambda: None)
                else:
                    outcome = run(task, lambda: None)
                    self.assertEqual(outcome.errors, {"42P01": 3})
                    self.assertEqual(outcome.failed, {"42P01": 3})
                    self.assertEqual(outcome.committed + outcome.refused, 0)
                database.drop(self.cluster, "worked")

    def test_a_run_fails_where_the_database_is_wrong(self) -> None:
        load = ProcedureLoad(draws.PAYMENT, SIZE, 1, 0, 8)
        with self.undone() as client:
            load.verify(client, Outcome())
        for number, (statement, _) in WRONG.items():
            with self.subTest(number), self.undone() as client:
                client.query(statement)
                with self.assertRaisesRegex(BenchError, f"inconsistent: condition {number} "):
                    load.verify(client, Outcome())
        with self.undone() as client:
            with self.assertRaisesRegex(BenchError, "3 transactions were acknowledged, and 0 are"):
                load.verify(client, Outcome(committed=3))
            with self.assertRaisesRegex(BenchError, "for good: 08007 2 times"):
                load.verify(client, Outcome(failed={"08007": 2}))

    def test_a_copy_is_as_what_it_was_made_from(self) -> None:
        database.copy(self.cluster, "tpcc", "copied")
        with self.cluster.client("copied") as client:
            self.assertEqual(violations(client), [])
        database.drop(self.cluster, "copied")


if __name__ == "__main__":
    unittest.main()
