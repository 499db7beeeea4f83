"""TPC-C's consistency conditions (3.3.2) as queries that return what violates them.

Condition 11 is about deliveries, which nothing here makes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..pgwire import Client, Row

WORK_MEM = "256MB"


@dataclass(frozen=True)
class Condition:
    """Holds where `query` returns no row. `number` is that of 3.3.2."""

    number: int
    says: str
    query: str


# Missing rows count as 0, so that a parent without children is compared, too.
_DELIVERED = (
    "SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS bought FROM orders JOIN order_line"
    " ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id"
    " WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id"
)

CONDITIONS = (
    Condition(
        1, "W_YTD is the sum of its districts' D_YTD",
        "SELECT w_id, w_ytd, ytd FROM warehouse LEFT JOIN"
        " (SELECT d_w_id, sum(d_ytd) AS ytd FROM district GROUP BY d_w_id) d ON d_w_id = w_id"
        " WHERE w_ytd <> coalesce(ytd, 0)",
    ),
    Condition(
        2, "D_NEXT_O_ID follows the newest order and the newest new-order",
        "SELECT d_w_id, d_id, d_next_o_id, newest, newest_new FROM district LEFT JOIN"
        " (SELECT o_w_id, o_d_id, max(o_id) AS newest FROM orders GROUP BY o_w_id, o_d_id) o"
        " ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN (SELECT no_w_id, no_d_id,"
        " max(no_o_id) AS newest_new FROM new_order GROUP BY no_w_id, no_d_id) n"
        " ON no_w_id = d_w_id AND no_d_id = d_id"
        " WHERE d_next_o_id - 1 IS DISTINCT FROM newest OR newest IS DISTINCT FROM newest_new",
    ),
    Condition(
        3, "new-orders of a district are numbered without gaps",
        "SELECT no_w_id, no_d_id, min(no_o_id), max(no_o_id), count(*) FROM new_order"
        " GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)",
    ),
    Condition(
        4, "a district has as many order lines as its orders say",
        "SELECT d_w_id, d_id, said, counted FROM district LEFT JOIN"
        " (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS said FROM orders GROUP BY o_w_id, o_d_id) o"
        " ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN (SELECT ol_w_id, ol_d_id,"
        " count(*) AS counted FROM order_line GROUP BY ol_w_id, ol_d_id) l"
        " ON ol_w_id = d_w_id AND ol_d_id = d_id"
        " WHERE coalesce(said, 0) <> coalesce(counted, 0)",
    ),
    Condition(
        5, "exactly the orders without a carrier are new",
        "SELECT o_w_id, o_d_id, o_id, no_o_id, o_carrier_id FROM orders FULL JOIN new_order"
        " ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id"
        " WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    ),
    Condition(
        6, "an order has as many lines as it says",
        "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, ol_o_id, counted FROM orders FULL JOIN"
        " (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS counted FROM order_line"
        " GROUP BY ol_w_id, ol_d_id, ol_o_id) l"
        " ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id"
        " WHERE coalesce(o_ol_cnt, 0) <> coalesce(counted, 0)",
    ),
    Condition(
        7, "exactly the lines of orders with a carrier are delivered",
        "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id"
        " FROM order_line LEFT JOIN orders"
        " ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id"
        " WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    Condition(
        8, "W_YTD is the sum of its payments",
        "SELECT w_id, w_ytd, paid FROM warehouse LEFT JOIN"
        " (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) h ON h_w_id = w_id"
        " WHERE w_ytd <> coalesce(paid, 0)",
    ),
    Condition(
        9, "D_YTD is the sum of its payments",
        "SELECT d_w_id, d_id, d_ytd, paid FROM district LEFT JOIN (SELECT h_w_id, h_d_id,"
        " sum(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) h"
        " ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> coalesce(paid, 0)",
    ),
    Condition(
        10, "C_BALANCE is what was delivered less what was paid",
        "SELECT c_w_id, c_d_id, c_id, c_balance, bought, paid FROM customer"
        f" LEFT JOIN ({_DELIVERED}) b ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id"
        " LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history"
        " GROUP BY h_c_w_id, h_c_d_id, h_c_id) h"
        " ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id"
        " WHERE c_balance <> coalesce(bought, 0) - coalesce(paid, 0)",
    ),
    Condition(
        12, "C_BALANCE and C_YTD_PAYMENT are together what was delivered",
        "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, bought FROM customer"
        f" LEFT JOIN ({_DELIVERED}) b ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id"
        " WHERE c_balance + c_ytd_payment <> coalesce(bought, 0)",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Violation:
    condition: Condition
    #: One of the rows that violate it.
    row: Row

    def __str__(self) -> str:
        return f"condition {self.condition.number} ({self.condition.says}): {self.row}"


def violations(client: Client) -> list[Violation]:
    """At most one for each condition; none where the database is consistent."""
    # PostgreSQL expects a tenth of the groups there are, and would loop over all of them.
    client.query("SET enable_nestloop = off")
    client.query(f"SET work_mem = '{WORK_MEM}'")
    found: list[Violation] = []
    for condition in CONDITIONS:
        rows = client.query(f"{condition.query} LIMIT 1")
        found += [Violation(condition, row) for row in rows]
    return found
