"""What is drawn is what TPC-C 2.1.6, 2.4.1 and 2.5.1 ask for: counted over seeded draws."""

import random
import unittest
from collections import Counter
from collections.abc import Iterable, Sequence

from pondage_bench.tpcc.draws import (
    LINES_MAX,
    LINES_MIN,
    NEW_ORDER,
    NEW_ORDER_SORTED,
    PAYMENT,
    Draws,
    Order,
    Payment,
    last_name,
)
from pondage_bench.tpcc.size import C_ID, C_ITEM, C_LAST, C_LAST_LOADED, Size

SIZE = Size(warehouses=10)
SEED = 2411
PAYMENTS, ORDERS = 40_000, 10_000
REFERENCES = 100_000


def nurand(a: int, low: int, high: int, c: int, generator: random.Random) -> int:
    """2.1.6 word for word."""
    drawn = generator.randint(0, a) | generator.randint(low, high)
    return (drawn + c) % (high - low + 1) + low


def payments(size: Size = SIZE, count: int = PAYMENTS) -> list[Payment]:
    draws = Draws(size, SEED)
    return [draws.payment(at % size.warehouses + 1) for at in range(count)]


def orders(*, in_order: bool = False, size: Size = SIZE, count: int = ORDERS) -> list[Order]:
    draws = Draws(size, SEED)
    return [draws.order(at % size.warehouses + 1, in_order=in_order) for at in range(count)]


class Drawn(unittest.TestCase):
    payments: Sequence[Payment]
    orders: Sequence[Order]

    @classmethod
    def setUpClass(cls) -> None:
        cls.payments, cls.orders = payments(), orders()

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

    def test_last_names_are_those_of_the_specification(self) -> None:
        self.assertEqual(last_name(371), "PRICALLYOUGHT")
        self.assertEqual(last_name(40), "BARPRESBAR")
        self.assertEqual(len({last_name(number) for number in range(1000)}), 1000)

    def test_a_seed_gives_the_same_every_time_and_another_one_something_else(self) -> None:
        for kind in (PAYMENT, NEW_ORDER, NEW_ORDER_SORTED):
            one, same, other = (Draws(SIZE, seed) for seed in (1, 1, 2))
            first = [one.one(kind, 3) for _ in range(50)]
            self.assertEqual(first, [same.one(kind, 3) for _ in range(50)])
            self.assertNotEqual(first, [other.one(kind, 3) for _ in range(50)])

    def test_every_warehouse_pays_and_orders_in_every_district(self) -> None:
        self.assert_even((p.d for p in self.payments), 1, 10)
        self.assert_even((o.d for o in self.orders), 1, 10)
        for at in range(20):
            self.assertEqual((self.payments[at].w, self.orders[at].w), (at % 10 + 1, at % 10 + 1))

    def test_fifteen_payments_of_a_hundred_are_of_another_warehouse_s_customer(self) -> None:
        remote = [p for p in self.payments if p.cw != p.w]
        self.assert_share(len(remote), PAYMENTS, 0.15)
        self.assertFalse([p for p in self.payments if p.cw == p.w and p.cd != p.d])
        self.assert_even(((p.cw - p.w) % 10 for p in remote), 1, 9)
        self.assert_even((p.cd for p in remote), 1, 10)

    def test_sixty_payments_of_a_hundred_are_by_name(self) -> None:
        named = [p for p in self.payments if p.last is not None]
        self.assert_share(len(named), PAYMENTS, 0.6)
        self.assert_share(sum(p.cw != p.w for p in named), PAYMENTS, 0.6 * 0.15)
        numbers = {last_name(number): number for number in range(1000)}
        self.assert_nurand([numbers[p.last or ""] for p in named], 255, 0, 999, C_LAST)

    def test_an_amount_is_from_one_to_five_thousand_in_cents(self) -> None:
        self.assertTrue(all(100 <= p.amount <= 500_000 for p in self.payments))
        self.assert_share(sum(p.amount < 100_075 for p in self.payments), PAYMENTS, 0.2)
        self.assertEqual(Payment(1, 1, 1, 1, 1, None, 100_205).money, "1002.05")

    def test_customers_and_items_are_drawn_by_nurand(self) -> None:
        self.assert_nurand([p.c for p in self.payments], 1023, 1, 3000, C_ID)
        self.assert_nurand([o.c for o in self.orders], 1023, 1, 3000, C_ID)
        items = [line.item for o in self.orders if not o.refused for line in o.lines]
        self.assert_nurand(items, 8191, 1, 100_000, C_ITEM)

    def test_an_order_has_five_to_fifteen_lines_of_one_to_ten(self) -> None:
        self.assert_even((len(o.lines) for o in self.orders), LINES_MIN, LINES_MAX)
        self.assert_even((line.quantity for o in self.orders for line in o.lines), 1, 10)

    def test_a_line_of_a_hundred_comes_from_another_warehouse(self) -> None:
        lines = [(o.w, line.supply) for o in self.orders for line in o.lines]
        away = [(supply - w) % 10 for w, supply in lines if supply != w]
        self.assert_share(len(away), len(lines), 0.01)
        self.assert_even(away, 1, 9)
        for order in self.orders:
            self.assertEqual(order.all_local, {line.supply for line in order.lines} == {order.w})

    def test_an_order_of_a_hundred_has_a_last_item_that_does_not_exist(self) -> None:
        self.assert_share(sum(o.refused for o in self.orders), ORDERS, 0.01)
        for order in self.orders:
            self.assertEqual(order.refused, order.lines[-1].item == SIZE.items + 1)
            self.assertTrue(all(line.item <= SIZE.items for line in order.lines[:-1]))

    def test_lines_are_sorted_where_they_are_and_the_same_otherwise(self) -> None:
        in_order = orders(in_order=True)
        for plain, by_item in zip(self.orders, in_order, strict=True):
            self.assertEqual((plain.w, plain.d, plain.c), (by_item.w, by_item.d, by_item.c))
            keys = [(line.supply, line.item) for line in by_item.lines]
            if not plain.refused:
                self.assertEqual(keys, sorted(keys))
                self.assertEqual(Counter(plain.lines), Counter(by_item.lines))

    def test_one_warehouse_has_no_other(self) -> None:
        alone = Size(1)
        self.assertEqual({p.cw for p in payments(alone, 2000)}, {1})
        supplies = {line.supply for o in orders(size=alone, count=2000) for line in o.lines}
        self.assertEqual(supplies, {1})


if __name__ == "__main__":
    unittest.main()
