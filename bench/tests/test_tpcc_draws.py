"""What pgbench draws is what TPC-C 2.1.6, 2.4.1 and 2.5.1 ask for: counted over seeded runs."""

import random
import tempfile
import unittest
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from pondage_bench.pgwire import Client
from pondage_bench.postgres import Cluster, default_settings, find_bindir
from pondage_bench.processes import BenchError, Supervisor
from pondage_bench.tpcc import scripts
from pondage_bench.tpcc.size import C_ID, C_ITEM, C_LAST, C_LAST_LOADED, Size

SIZE = Size(warehouses=10)
# A client for each warehouse.
CLIENTS, PAYMENTS_EACH, ORDERS_EACH = 10, 2000, 1000
PAYMENTS, ORDERS = CLIENTS * PAYMENTS_EACH, CLIENTS * ORDERS_EACH
SEED = "2411"
REFERENCES = 100_000
LINES = range(1, scripts.LINES_MAX + 1)


def array(letter: str) -> str:
    """The lines there are; variables of others are those of an earlier order."""
    return f"(ARRAY[{', '.join(f':{letter}{n}' for n in LINES)}]::int[])[1 : :lines::int]"


DRAWN = {
    scripts.PAYMENT: (
        "CREATE UNLOGGED TABLE payments (client int, w int, d int, cw int, cd int, by_name bool,"
        " number int, c int, amount numeric)",
        "INSERT INTO payments VALUES"
        " (:client_id, :w, :d, :cw, :cd, :by_name, :number, :c, :amount);\n",
        PAYMENTS_EACH,
    ),
    **{
        transaction: (
            f"CREATE UNLOGGED TABLE {table} (w int, d int, c int, lines int, refused int,"
            " all_local int, items int[], supply int[], quantity int[])",
            f"INSERT INTO {table} VALUES (:w, :d, :c, :lines, :refused, :all_local,"
            f" {array('i')}, {array('s')}, {array('q')});\n",
            ORDERS_EACH,
        )
        for transaction, table in (
            (scripts.NEW_ORDER, "orders"),
            (scripts.NEW_ORDER_SORTED, "sorted_orders"),
        )
    },
}


def nurand(a: int, low: int, high: int, c: int, generator: random.Random) -> int:
    """2.1.6 word for word."""
    drawn = generator.randint(0, a) | generator.randint(low, high)
    return (drawn + c) % (high - low + 1) + low


class Draws(unittest.TestCase):
    cluster: Cluster
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        try:
            bindir = find_bindir()
        except BenchError as error:
            raise unittest.SkipTest(str(error)) from error
        directory = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        directory.chmod(0o755)
        supervisor = cls.enterClassContext(Supervisor(directory / "run"))
        settings = {**default_settings(), "shared_buffers": "64MB", "fsync": "off"}
        cls.cluster = Cluster(supervisor, settings)
        cls.cluster.start()
        cls.client = cls.enterClassContext(cls.cluster.client())
        for transaction, (table, insert, each) in DRAWN.items():
            cls.client.query(table)
            script = supervisor.directory / f"{transaction}.sql"
            supervisor.write(script, scripts.drawing(transaction, SIZE) + insert)
            supervisor.run(
                [bindir / "pgbench", "-n", "-M", "prepared", "-c", str(CLIENTS),
                 "-t", str(each), "--random-seed", SEED, "-f", script, "-h", "127.0.0.1",
                 "-p", str(cls.cluster.port), "-U", cls.cluster.user, "postgres"],
                timeout=120.0,
            )  # fmt: skip

    def count(self, table: str, condition: str = "true") -> int:
        ((value,),) = self.client.query(f"SELECT count(*) FROM {table} WHERE {condition}")
        return int(value or 0)

    def numbers(self, sql: str) -> list[int]:
        return [int(row[0] or 0) for row in self.client.query(sql)]

    def assert_share(self, count: int, of: int, share: float) -> None:
        """Within five standard deviations."""
        deviation = (share * (1 - share) / of) ** 0.5
        self.assertAlmostEqual(count / of, share, delta=5 * deviation)

    def assert_even(self, drawn: Iterable[int], low: int, high: int) -> None:
        counts = Counter(drawn)
        self.assertEqual(set(counts), set(range(low, high + 1)))
        for count in counts.values():
            self.assert_share(count, counts.total(), 1 / (high - low + 1))

    def assert_nurand(self, drawn: list[int], a: int, low: int, high: int, c: int) -> None:
        """Twentieths of the range, and each bit of what was there before `c` was added, come as
        often as by the formula. Twice the delta, as the reference is drawn, too.
        """
        self.assertTrue(all(low <= value <= high for value in drawn))
        generator = random.Random(SEED)
        expected = [nurand(a, low, high, c, generator) for _ in range(REFERENCES)]
        span = high - low + 1
        for twentieth in range(20):
            here = [(v - low) * 20 // span == twentieth for v in drawn]
            there = [(v - low) * 20 // span == twentieth for v in expected]
            self.assertAlmostEqual(
                sum(here) / len(here), sum(there) / len(there), delta=0.015, msg=str(twentieth)
            )
        for bit in range(span.bit_length()):
            ones = sum((v - low - c) % span >> bit & 1 for v in drawn) / len(drawn)
            wanted = sum((v - low - c) % span >> bit & 1 for v in expected) / REFERENCES
            self.assertAlmostEqual(ones, wanted, delta=0.025, msg=f"bit {bit}")

    def test_constants_are_allowed(self) -> None:
        delta = abs(C_LAST - C_LAST_LOADED)
        self.assertTrue(65 <= delta <= 119 and delta not in (96, 112))
        self.assertTrue(C_LAST <= 255 and C_LAST_LOADED <= 255 and C_ID <= 1023 and C_ITEM <= 8191)

    def test_a_client_stays_at_its_warehouse_and_asks_in_every_district(self) -> None:
        self.assertEqual(self.count("payments", "w <> client + 1"), 0)
        self.assert_even(self.numbers("SELECT d FROM payments"), 1, 10)
        self.assert_even(self.numbers("SELECT d FROM orders"), 1, 10)

    def test_fifteen_payments_of_a_hundred_are_of_another_warehouse_s_customer(self) -> None:
        self.assert_share(self.count("payments", "cw <> w"), PAYMENTS, 0.15)
        self.assertEqual(self.count("payments", "cw = w AND cd <> d"), 0)
        others = self.numbers("SELECT (cw - w + 10) % 10 FROM payments WHERE cw <> w")
        self.assert_even(others, 1, 9)
        self.assert_even(self.numbers("SELECT cd FROM payments WHERE cw <> w"), 1, 10)

    def test_sixty_payments_of_a_hundred_are_by_name(self) -> None:
        self.assert_share(self.count("payments", "by_name"), PAYMENTS, 0.6)
        self.assert_share(self.count("payments", "by_name AND cw <> w"), PAYMENTS, 0.6 * 0.15)

    def test_an_amount_is_from_one_to_five_thousand_in_cents(self) -> None:
        wrong = "amount NOT BETWEEN 1 AND 5000 OR amount <> round(amount, 2)"
        self.assertEqual(self.count("payments", wrong), 0)
        self.assert_share(self.count("payments", "amount < 1000.75"), PAYMENTS, 0.2)

    def test_customers_and_items_are_drawn_by_nurand(self) -> None:
        for sql, a, low, high, c in (
            ("SELECT number FROM payments", 255, 0, 999, C_LAST),
            ("SELECT c FROM payments", 1023, 1, 3000, C_ID),
            ("SELECT c FROM orders", 1023, 1, 3000, C_ID),
            (
                "SELECT i FROM orders, unnest(items) i WHERE i <= 100000",
                8191, 1, 100_000, C_ITEM,
            ),
        ):  # fmt: skip
            with self.subTest(sql):
                self.assert_nurand(self.numbers(sql), a, low, high, c)

    def test_an_order_has_five_to_fifteen_lines_of_one_to_ten(self) -> None:
        self.assertEqual(self.count("orders", "cardinality(items) <> lines"), 0)
        self.assert_even(self.numbers("SELECT lines FROM orders"), 5, 15)
        quantities = self.numbers("SELECT q FROM orders, unnest(quantity) q")
        self.assert_even(quantities, 1, 10)

    def test_a_line_of_a_hundred_comes_from_another_warehouse(self) -> None:
        lines = self.count("orders, unnest(supply) s")
        self.assert_share(self.count("orders, unnest(supply) s", "s <> w"), lines, 0.01)
        others = "SELECT (s - w + 10) % 10 FROM orders, unnest(supply) s WHERE s <> w"
        self.assert_even(self.numbers(others), 1, 9)
        self.assertEqual(self.count("orders", "(all_local = 1) <> (w = ALL (supply))"), 0)

    def test_an_order_of_a_hundred_has_a_last_item_that_does_not_exist(self) -> None:
        self.assert_share(self.count("orders", "refused = 1"), ORDERS, 0.01)
        missing = "(refused = 1) <> (items[lines] = 100001)"
        self.assertEqual(self.count("orders", missing), 0)
        self.assertEqual(self.count("orders", "100001 = ANY (items[: lines - 1])"), 0)

    def test_lines_are_sorted_where_they_are_and_the_same_otherwise(self) -> None:
        falling = (
            "SELECT 1 FROM generate_series(1, lines - refused - 1) n"
            " WHERE (supply[n], items[n]) > (supply[n + 1], items[n + 1])"
        )
        self.assertEqual(self.count("sorted_orders", f"EXISTS ({falling})"), 0)
        self.assertGreater(self.count("orders", f"EXISTS ({falling})"), ORDERS * 9 // 10)

        # The same seed: the same orders, but for what their order of lines makes last.
        def totals(table: str) -> list[list[str | None]]:
            return self.client.query(
                f"SELECT w, d, c, lines, refused, (SELECT sum(q) FROM unnest(quantity) q),"
                " (SELECT sum(s) FROM unnest(supply) s), CASE refused WHEN 0 THEN"
                f" (SELECT sum(i) FROM unnest(items) i) END FROM {table}"
                " ORDER BY w, d, c, 4, 5, 6, 7, 8"
            )

        self.assertEqual(totals("orders"), totals("sorted_orders"))


class Sorting(unittest.TestCase):
    def test_the_network_sorts_whatever_comes(self) -> None:
        pairs = list(scripts._comparisons(scripts.LINES_MAX))
        # It sorts all if it sorts all that has zeros and ones only; a bit of a number for each.
        columns = [
            sum(1 << row for row in range(1 << scripts.LINES_MAX) if row >> place & 1)
            for place in range(scripts.LINES_MAX)
        ]
        for a, b in pairs:
            low, high = columns[a - 1] & columns[b - 1], columns[a - 1] | columns[b - 1]
            columns[a - 1], columns[b - 1] = low, high
        for before, after in zip(columns, columns[1:], strict=False):
            self.assertEqual(before & ~after, 0)


if __name__ == "__main__":
    unittest.main()
