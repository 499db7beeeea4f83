"""Payment and new-order for pgbench: one generator of transactions, and two ways to run them.

What pgbench can't express, and what is done instead:

- Strings. It has numbers only, so last names are made by the function `last_name` in the statement,
  both ways alike; answers are kept as they came and sent again.
- Loops. The lines of an order are written out fifteen times, each under `\\if`. Their statements
  have the same texts, but a connection prepares up to fifteen of each; PostgreSQL is told to plan
  each once (`Procedure.settings`). A call has a text for each number of lines.
- An error that a client survives. The order in a hundred that is refused ends with ROLLBACK
  statement by statement; as a call it goes to `neworder_refused`, which catches the error.
- Sorting. The lines of an order keep the order in which they were drawn, in both ways, so that two
  orders can deadlock; pgbench tries again, and the report says how many did. For an application
  that sorts them, NEW_ORDER_SORTED has a sorting network.
- Not waiting. It waits for the answer when it prepares a statement, and all clients of its thread
  with it; so every client has a thread of its own (`Profile.thread_each`).
- Sending BEGIN with the statement after it, as pgjdbc does: statement by statement takes a round
  trip more than there.
- Keying and thinking times: none, every client asks again at once, as the report does whose figures
  are the bar.

Only with `-M extended` or `prepared`, as strings are sent as parameters. A client keeps its
warehouse (2.5.1.1); clients are dealt out evenly.
"""

from __future__ import annotations

from collections.abc import Iterator

from .size import C_ID, C_ITEM, C_LAST, DISTRICTS, Size

STATEMENTS, CALL = "statements", "call"
PAYMENT, NEW_ORDER, NEW_ORDER_SORTED = "payment", "neworder", "neworder-sorted"
TRANSACTIONS = (PAYMENT, NEW_ORDER, NEW_ORDER_SORTED)
LINES_MIN, LINES_MAX = 5, 15
# What a line of an order is sorted by is one number: its warehouse, its item, its quantity.
QUANTITIES, ITEMS = 2**4, 2**20
AFTER_ALL = 2**62
#: The share of orders that are refused.
REFUSED = 0.01


def script(transaction: str, way: str, size: Size) -> str:
    """The text of a pgbench script."""
    kind = PAYMENT if transaction == PAYMENT else NEW_ORDER
    return drawing(transaction, size) + BODIES[kind, way]()


def drawing(transaction: str, size: Size) -> str:
    """The beginning of a script: what sets the variables that the transaction is about."""
    if transaction == PAYMENT:
        return _payment_input(size)
    return _new_order_input(size, in_order=transaction == NEW_ORDER_SORTED)


def _nurand(a: int, low: int, high: int, c: int) -> str:
    """2.1.6; pgbench's random is inclusive, too."""
    return f"mod((random(0, {a}) | random({low}, {high})) + {c}, {high - low + 1}) + {low}"


def _home(size: Size) -> str:
    return f"\\set w mod(:client_id, {size.warehouses}) + 1\n\\set d random(1, {DISTRICTS})\n"


def _other(size: Size) -> str:
    """A warehouse that is not `:w`."""
    return f"mod(:w + random(0, {size.warehouses - 2}), {size.warehouses}) + 1"


def _payment_input(size: Size) -> str:
    """2.5.1: 85 of 100 customers are at home, 60 of 100 come by name."""
    away = "\\set cw :w\n\\set cd :d\n"
    if size.warehouses > 1:
        away += (
            "\\if random(1, 100) > 85\n"
            f"\\set cw {_other(size)}\n\\set cd random(1, {DISTRICTS})\n"
            "\\endif\n"
        )
    return (
        _home(size)
        + away
        + "\\set by_name random(1, 100) <= 60\n"
        + f"\\set number {_nurand(255, 0, size.last_names - 1, C_LAST)}\n"
        + f"\\set c {_nurand(1023, 1, size.customers, C_ID)}\n"
        + "\\set amount random(100, 500000) / 100.0\n"
    )


def _new_order_input(size: Size, *, in_order: bool) -> str:
    """2.4.1: a line in a hundred is supplied by another warehouse; the last item of an order in a
    hundred does not exist.
    """
    return (
        _home(size)
        + f"\\set c {_nurand(1023, 1, size.customers, C_ID)}\n"
        + f"\\set lines random({LINES_MIN}, {LINES_MAX})\n"
        + "\\set refused case when random(1, 100) = 1 then 1 else 0 end\n"
        + "\\set all_local 1\n"
        + "".join(_for_line(n, ":lines", _line_input(n, size)) for n in range(1, LINES_MAX + 1))
        + (_sorting() if in_order else "")
        + "\\if :refused = 1\n"
        + "".join(
            _for_last_line(n, f"\\set i{n} {size.items + 1}\n")
            for n in range(LINES_MIN, LINES_MAX + 1)
        )
        + "\\endif\n"
    )


def _line_input(n: int, size: Size) -> str:
    text = f"\\set i{n} {_nurand(8191, 1, size.items, C_ITEM)}\n\\set s{n} :w\n"
    if size.warehouses > 1:
        text += (
            f"\\if random(1, 100) = 1\n\\set s{n} {_other(size)}\n\\set all_local 0\n\\endif\n"
        )
    return text + f"\\set q{n} random(1, 10)\n"


def _sorting() -> str:
    """By the warehouse that supplies and the item, in which order rows of `stock` are updated."""
    lines = range(1, LINES_MAX + 1)
    keys = (f"(:s{n} * {ITEMS} + :i{n}) * {QUANTITIES} + :q{n}" for n in lines)
    return (
        "".join(
            f"\\if :lines >= {n}\n\\set k{n} {key}\n\\else\n\\set k{n} {AFTER_ALL}\n\\endif\n"
            for n, key in zip(lines, keys, strict=True)
        )
        + "".join(
            f"\\set low least(:k{a}, :k{b})\n\\set k{b} greatest(:k{a}, :k{b})\n\\set k{a} :low\n"
            for a, b in _comparisons(LINES_MAX)
        )
        + "".join(
            _for_line(
                n, ":lines",
                f"\\set s{n} :k{n} / {ITEMS * QUANTITIES}\n"
                f"\\set i{n} :k{n} / {QUANTITIES} % {ITEMS}\n\\set q{n} :k{n} % {QUANTITIES}\n",
            )
            for n in lines
        )
    )


def _comparisons(count: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort: pairs of places, from 1, that are put in order in turn."""
    run = 1
    while run < count:
        step = run
        while step:
            for first in range(step % run, count - step, 2 * step):
                for low in range(first, min(first + step, count - step)):
                    if low // (2 * run) == (low + step) // (2 * run):
                        yield low + 1, low + step + 1
            step //= 2
        run *= 2


def _for_line(n: int, lines: str, text: str) -> str:
    """`text`, in orders that have that line."""
    return f"\\if {lines} >= {n}\n{text}\\endif\n"


def _for_last_line(n: int, text: str) -> str:
    return f"\\if :lines = {n}\n{text}\\endif\n"


def _payment_statements() -> str:
    customer = "WHERE c_w_id = :cw AND c_d_id = :cd AND c_id = :c"
    paid = (
        "UPDATE customer SET c_balance = c_balance - :amount,"
        " c_ytd_payment = c_ytd_payment + :amount, c_payment_cnt = c_payment_cnt + 1"
    )
    return (
        "BEGIN;\n"
        "UPDATE warehouse SET w_ytd = w_ytd + :amount WHERE w_id = :w"
        " RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip \\gset\n"
        "UPDATE district SET d_ytd = d_ytd + :amount WHERE d_w_id = :w AND d_id = :d"
        " RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip \\gset\n"
        "\\if :by_name\n"
        "SELECT c_id AS c FROM (SELECT c_id, row_number() OVER (ORDER BY c_first) AS place,"
        " count(*) OVER () AS people FROM customer WHERE c_w_id = :cw AND c_d_id = :cd"
        " AND c_last = last_name(:number)) named WHERE place = (people + 1) / 2 \\gset\n"
        "\\endif\n"
        "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip,"
        " c_phone, c_since, c_credit, c_credit_lim, c_discount, (c_credit = 'BC')::int AS bad"
        f" FROM customer {customer} FOR UPDATE \\gset\n"
        "\\if :bad = 1\n"
        f"{paid}, c_data = left(concat_ws(' ', :c::int, :cd::int, :cw::int, :d::int, :w::int,"
        f" :amount::numeric, c_data), 500) {customer}"
        " RETURNING c_balance, left(c_data, 200) AS c_data \\gset\n"
        "\\else\n"
        f"{paid} {customer} RETURNING c_balance \\gset\n"
        "\\endif\n"
        "INSERT INTO history VALUES (:c, :cd, :cw, :d, :w, now(), :amount,"
        " :w_name || '    ' || :d_name);\n"
        "COMMIT;\n"
    )


def _payment_call() -> str:
    return (
        "\\if :by_name\n"
        "CALL payment(:w, :d, :cw, :cd, NULL, last_name(:number), :amount, NULL);\n"
        "\\else\n"
        "CALL payment(:w, :d, :cw, :cd, :c, NULL, :amount, NULL);\n"
        "\\endif\n"
    )


def _new_order_statements() -> str:
    lines = range(1, LINES_MAX + 1)
    return (
        "BEGIN;\n"
        "SELECT w_tax FROM warehouse WHERE w_id = :w \\gset\n"
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w AND d_id = :d"
        " RETURNING d_next_o_id - 1 AS o, d_tax \\gset\n"
        "SELECT c_discount, c_last, c_credit FROM customer"
        " WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c \\gset\n"
        "INSERT INTO orders VALUES (:w, :d, :o, :c, now(), NULL, :lines, :all_local);\n"
        "INSERT INTO new_order VALUES (:w, :d, :o);\n"
        "\\set total 0\n"
        + "".join(_for_line(n, ":lines - :refused", _line_statements(n)) for n in lines)
        + "\\if :refused = 1\n"
        # It gives no row, which \gset would not allow.
        + "".join(
            _for_last_line(
                n, f"\\set i :i{n}\nSELECT i_price, i_name, i_data FROM item WHERE i_id = :i;\n"
            )
            for n in range(LINES_MIN, LINES_MAX + 1)
        )
        + "ROLLBACK;\n"
        "\\else\n"
        "COMMIT;\n"
        "\\set total :total * (1 - :c_discount) * (1 + :w_tax + :d_tax)\n"
        "\\endif\n"
    )


def _line_statements(n: int) -> str:
    dist = " ".join(f"WHEN {d} THEN s_dist_{d:02}" for d in range(1, DISTRICTS))
    return (
        f"\\set n {n}\n\\set i :i{n}\n\\set s :s{n}\n\\set q :q{n}\n"
        "SELECT i_price, i_name, i_data FROM item WHERE i_id = :i \\gset\n"
        "UPDATE stock SET s_quantity = s_quantity - :q"
        " + CASE WHEN s_quantity - :q >= 10 THEN 0 ELSE 91 END,"
        " s_ytd = s_ytd + :q, s_order_cnt = s_order_cnt + 1,"
        " s_remote_cnt = s_remote_cnt + (s_w_id <> :w)::int"
        " WHERE s_w_id = :s AND s_i_id = :i"
        f" RETURNING s_quantity, s_data, CASE :d::int {dist} ELSE s_dist_10 END AS dist \\gset\n"
        "\\set amount :q * :i_price\n"
        "\\set total :total + :amount\n"
        "INSERT INTO order_line VALUES (:w, :d, :o, :n, :i, :s, NULL, :q, :amount, :dist);\n"
    )


def _new_order_call() -> str:
    def calls(function: str) -> str:
        return "".join(
            _for_last_line(n, f"SELECT * FROM {function}(:w, :d, :c, {_arrays(n)});\n")
            for n in range(LINES_MIN, LINES_MAX + 1)
        )

    refused, accepted = calls("neworder_refused"), calls("neworder")
    return f"\\if :refused = 1\n{refused}\\else\n{accepted}\\endif\n"


def _arrays(lines: int) -> str:
    """The items, the warehouses that supply them, and how many of each."""
    return ", ".join(
        f"ARRAY[{', '.join(f':{variable}{n}' for n in range(1, lines + 1))}]::int[]"
        for variable in "isq"
    )


BODIES = {
    (PAYMENT, STATEMENTS): _payment_statements,
    (PAYMENT, CALL): _payment_call,
    (NEW_ORDER, STATEMENTS): _new_order_statements,
    (NEW_ORDER, CALL): _new_order_call,
}
