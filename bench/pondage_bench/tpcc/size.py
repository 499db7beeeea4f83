"""How large a database is, and the numbers of TPC-C that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

DISTRICTS = 10
# 2.1.6.1: any constants will do, but those of last names must differ by 65 to 119, not by 96 or
# 112, between loading and running.
C_LAST_LOADED, C_LAST, C_ID, C_ITEM = 157, 223, 259, 7911


@dataclass(frozen=True)
class Size:
    """TPC-C has 3,000 customers in each district; with fewer there is less of everything."""

    warehouses: int
    customers: int = 3000

    @property
    def items(self) -> int:
        return max(self.customers * 100 // 3, 100)

    @property
    def last_names(self) -> int:
        """As many as the first customers of each district have, one each."""
        return min(self.customers, 1000)

    @property
    def payments(self) -> int:
        """Rows of the history when nothing has run yet."""
        return self.warehouses * DISTRICTS * self.customers

    @property
    def orders(self) -> int:
        """When nothing has run yet: one of each customer, as the payments."""
        return self.payments

    @property
    def bytes(self) -> int:
        """On disk, roughly; measured with the tables of TPC-C's own size."""
        return self.warehouses * self.customers * 42_000
