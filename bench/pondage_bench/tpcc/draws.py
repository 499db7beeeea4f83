"""What clients ask for: payments (2.5.1) and orders (2.4.1), drawn from one seed.

Clients keep their warehouse (2.5.1.1) and do not wait between transactions: no keying, no thinking
times.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from .size import C_ID, C_ITEM, C_LAST, DISTRICTS, Size

PAYMENT, NEW_ORDER, NEW_ORDER_SORTED = "payment", "neworder", "neworder-sorted"
TRANSACTIONS = (PAYMENT, NEW_ORDER, NEW_ORDER_SORTED)
LINES_MIN, LINES_MAX = 5, 15
SYLLABLES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")


def last_name(number: int) -> str:
    """4.3.2.3."""
    return SYLLABLES[number // 100] + SYLLABLES[number // 10 % 10] + SYLLABLES[number % 10]


@dataclass(frozen=True)
class Payment:
    """By `last` where that is given, else by `c`. `amount` is in cents."""

    w: int
    d: int
    cw: int
    cd: int
    c: int
    last: str | None
    amount: int

    @property
    def money(self) -> str:
        return f"{self.amount // 100}.{self.amount % 100:02}"


@dataclass(frozen=True)
class OrderedLine:
    item: int
    supply: int
    quantity: int


@dataclass(frozen=True)
class Order:
    """The last item of one that is `refused` does not exist."""

    w: int
    d: int
    c: int
    lines: Sequence[OrderedLine]
    refused: bool

    @property
    def all_local(self) -> bool:
        return all(line.supply == self.w for line in self.lines)


class Draws:
    """The same sizes and the same seed give the same transactions in the same order."""

    def __init__(self, size: Size, seed: int) -> None:
        self._size = size
        self._random = random.Random(seed)

    def one(self, transaction: str, warehouse: int) -> Payment | Order:
        if transaction == PAYMENT:
            return self.payment(warehouse)
        return self.order(warehouse, in_order=transaction == NEW_ORDER_SORTED)

    def payment(self, warehouse: int) -> Payment:
        """85 of 100 customers are at home, 60 of 100 come by name."""
        d = cd = self._whole(1, DISTRICTS)
        cw = warehouse
        if self._size.warehouses > 1 and self._whole(1, 100) > 85:
            cw, cd = self._other(warehouse), self._whole(1, DISTRICTS)
        by_name = self._whole(1, 100) <= 60
        number = self._nurand(255, 0, self._size.last_names - 1, C_LAST)
        return Payment(
            warehouse, d, cw, cd,
            c=self._nurand(1023, 1, self._size.customers, C_ID),
            last=last_name(number) if by_name else None,
            amount=self._whole(100, 500_000),
        )  # fmt: skip

    def order(self, warehouse: int, *, in_order: bool) -> Order:
        """A line in a hundred is supplied by another warehouse; an order in a hundred is refused.

        `in_order`: by the warehouse that supplies and the item, so that no two orders that update
        rows of `stock` deadlock.
        """
        d = self._whole(1, DISTRICTS)
        c = self._nurand(1023, 1, self._size.customers, C_ID)
        count = self._whole(LINES_MIN, LINES_MAX)
        refused = self._whole(1, 100) == 1
        lines = [self._line(warehouse) for _ in range(count)]
        if in_order:
            lines.sort(key=lambda line: (line.supply, line.item))
        if refused:
            last = lines[-1]
            lines[-1] = OrderedLine(self._size.items + 1, last.supply, last.quantity)
        return Order(warehouse, d, c, tuple(lines), refused)

    def _line(self, warehouse: int) -> OrderedLine:
        item = self._nurand(8191, 1, self._size.items, C_ITEM)
        away = self._size.warehouses > 1 and self._whole(1, 100) == 1
        supply = self._other(warehouse) if away else warehouse
        return OrderedLine(item, supply, self._whole(1, 10))

    def _whole(self, low: int, high: int) -> int:
        # A tenth of what randint takes; its unevenness is far below what can be counted.
        return low + int(self._random.random() * (high - low + 1))

    def _nurand(self, a: int, low: int, high: int, c: int) -> int:
        """2.1.6."""
        return ((self._whole(0, a) | self._whole(low, high)) + c) % (high - low + 1) + low

    def _other(self, warehouse: int) -> int:
        """Any but `warehouse`."""
        drawn = self._whole(1, self._size.warehouses - 1)
        return drawn + (drawn >= warehouse)
