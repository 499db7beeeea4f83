"""What clients send: a transaction as one call, or statement by statement, as pgjdbc sends it.

Prepared statements with values as text, and no Describe, as pgjdbc keeps what it was told of a
statement. BEGIN goes with the statement after it, everything else waits for its answer.
Source: PostgreSQL documentation, "Message Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping, Sequence

from ..pgwire import PgError, Row
from .draws import Order, Payment
from .size import DISTRICTS

STATEMENTS, CALL = "statements", "call"
WAYS = (STATEMENTS, CALL)
#: Sends requests, gets the rows of each; ends when the transaction did. A refused order is undone.
Steps = Generator[bytes, list[Row], None]
#: What `neworder` raises for an item that does not exist: foreign_key_violation.
REFUSED = "23503"

_CUSTOMER = "WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"
_PAID = (
    "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4,"
    " c_payment_cnt = c_payment_cnt + 1"
)
_DIST = " ".join(f"WHEN {d} THEN s_dist_{d:02}" for d in range(1, DISTRICTS))
#: Prepared by every client, by name.
TEXTS: Mapping[str, Mapping[str, str]] = {
    CALL: {
        "payment": "CALL payment($1, $2, $3, $4, $5, $6, $7, NULL)",
        "neworder": "SELECT * FROM neworder($1, $2, $3, $4, $5, $6)",
    },
    STATEMENTS: {
        "begin": "BEGIN",
        "commit": "COMMIT",
        "rollback": "ROLLBACK",
        "pay_warehouse": (
            "UPDATE warehouse SET w_ytd = w_ytd + $1 WHERE w_id = $2"
            " RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip"
        ),
        "pay_district": (
            "UPDATE district SET d_ytd = d_ytd + $1 WHERE d_w_id = $2 AND d_id = $3"
            " RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip"
        ),
        "named": (
            "SELECT c_id FROM (SELECT c_id, row_number() OVER (ORDER BY c_first) AS place,"
            " count(*) OVER () AS people FROM customer WHERE c_w_id = $1 AND c_d_id = $2"
            " AND c_last = $3) named WHERE place = (people + 1) / 2"
        ),
        "payer": (
            "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state,"
            f" c_zip, c_phone, c_since, c_credit_lim, c_discount FROM customer {_CUSTOMER}"
            " FOR UPDATE"
        ),
        "paid": f"{_PAID} {_CUSTOMER} RETURNING c_balance",
        "paid_badly": (
            f"{_PAID}, c_data = left(concat_ws(' ', $3::int, $2::int, $1::int, $5::int, $6::int,"
            f" $4::numeric, c_data), 500) {_CUSTOMER} RETURNING c_balance, left(c_data, 200)"
        ),
        "history": "INSERT INTO history VALUES ($1, $2, $3, $4, $5, now(), $6, $7)",
        "tax": "SELECT w_tax FROM warehouse WHERE w_id = $1",
        "number": (
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2"
            " RETURNING d_next_o_id - 1, d_tax"
        ),
        "buyer": f"SELECT c_discount, c_last, c_credit FROM customer {_CUSTOMER}",
        "order": "INSERT INTO orders VALUES ($1, $2, $3, $4, now(), NULL, $5, $6)",
        "new_order": "INSERT INTO new_order VALUES ($1, $2, $3)",
        "item": "SELECT i_price, i_name, i_data FROM item WHERE i_id = $1",
        "stock": (
            "UPDATE stock SET s_quantity = s_quantity - $1"
            " + CASE WHEN s_quantity - $1 >= 10 THEN 0 ELSE 91 END,"
            " s_ytd = s_ytd + $1, s_order_cnt = s_order_cnt + 1,"
            " s_remote_cnt = s_remote_cnt + (s_w_id <> $2)::int"
            " WHERE s_w_id = $3 AND s_i_id = $4"
            f" RETURNING s_quantity, s_data, CASE $5::int {_DIST} ELSE s_dist_10 END"
        ),
        "line": "INSERT INTO order_line VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8, $9)",
    },
}

_SYNC = b"S\0\0\0\4"
_EXECUTE = b"E\0\0\0\x09\0\0\0\0\0"


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def preparing(way: str) -> bytes:
    """All that a client prepares when it has connected."""
    parses = (
        _message(b"P", name.encode() + b"\0" + text.encode() + b"\0\0\0")
        for name, text in TEXTS[way].items()
    )
    return b"".join(parses) + _SYNC


def _run(name: str, values: Sequence[int | str | None]) -> bytes:
    parts = [b"\0", name.encode(), b"\0\0\0", struct.pack("!h", len(values))]
    for value in values:
        if value is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            text = str(value).encode()
            parts += (struct.pack("!i", len(text)), text)
    parts.append(b"\0\0")
    return _message(b"B", b"".join(parts)) + _EXECUTE


def request(name: str, *values: int | str | None) -> bytes:
    """Runs a prepared statement and asks for the answer."""
    return _run(name, values) + _SYNC


_BEGIN, COMMIT, ROLLBACK = _run("begin", ()), request("commit"), request("rollback")


def call(drawn: Payment | Order) -> bytes:
    if isinstance(drawn, Payment):
        by = (None, drawn.last) if drawn.last is not None else (drawn.c, None)
        return request("payment", drawn.w, drawn.d, drawn.cw, drawn.cd, *by, drawn.money)
    arrays = (
        "{" + ",".join(map(str, values)) + "}"
        for values in (
            [line.item for line in drawn.lines],
            [line.supply for line in drawn.lines],
            [line.quantity for line in drawn.lines],
        )
    )
    return request("neworder", drawn.w, drawn.d, drawn.c, *arrays)


def steps(drawn: Payment | Order) -> Steps:
    return _payment(drawn) if isinstance(drawn, Payment) else _order(drawn)


def _only(rows: list[Row]) -> Row:
    if len(rows) != 1:
        raise PgError(f"{len(rows)} rows where there should be one")
    return rows[0]


def _payment(p: Payment) -> Steps:
    warehouse = _only((yield _BEGIN + request("pay_warehouse", p.money, p.w)))
    district = _only((yield request("pay_district", p.money, p.w, p.d)))
    c: int | str | None = p.c
    if p.last is not None:
        (c,) = _only((yield request("named", p.cw, p.cd, p.last)))
    customer = p.cw, p.cd, c
    payer = _only((yield request("payer", *customer)))
    if payer[0] == "BC":
        _only((yield request("paid_badly", *customer, p.money, p.d, p.w)))
    else:
        _only((yield request("paid", *customer, p.money)))
    names = f"{warehouse[0]}    {district[0]}"
    yield request("history", c, p.cd, p.cw, p.d, p.w, p.money, names)
    yield COMMIT


def _order(o: Order) -> Steps:
    _only((yield _BEGIN + request("tax", o.w)))
    number, _ = _only((yield request("number", o.w, o.d)))
    _only((yield request("buyer", o.w, o.d, o.c)))
    yield request("order", o.w, o.d, number, o.c, len(o.lines), int(o.all_local))
    yield request("new_order", o.w, o.d, number)
    for place, line in enumerate(o.lines, 1):
        found = yield request("item", line.item)
        if not found:
            yield ROLLBACK
            return
        stock = _only((yield request("stock", line.quantity, o.w, line.supply, line.item, o.d)))
        amount = f"{float(found[0][0] or 0) * line.quantity:.2f}"
        yield request(
            "line", o.w, o.d, number, place, line.item, line.supply, line.quantity, amount,
            stock[2],
        )  # fmt: skip
    yield COMMIT
