"""Values and statements that both drivers are asked to carry unchanged."""

import datetime
import decimal
import json
import uuid

KINDS = """
    create table if not exists {table} (
        id int primary key, i int, big bigint, n numeric, f float8, t text, b bytea,
        at timestamptz, d date, u uuid, j jsonb, a int[], ta text[], flag bool)
"""

#: One row per id: ordinary values, extremes, empty ones and NULL in every column.
ROWS = [
    (
        1, 42, 2**62, decimal.Decimal("12345678901234567890.123456789"), 0.1, "plain",
        b"\x00\x01\xff", datetime.datetime(2024, 2, 29, 23, 59, 59, 123456, datetime.timezone.utc),
        datetime.date(1999, 12, 31), uuid.UUID("12345678-1234-5678-1234-567812345678"),
        {"a": [1, None, "ä"], "b": {"c": 1.5}}, [1, None, -3], ["x", None, 'quo"te, comma'], True,
    ),
    (
        2, -(2**31), -(2**63), decimal.Decimal("-0.000000000000000001"), float("inf"),
        "snow ☃ and \U0001f40d 'quotes' \\ \n", b"", datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc),
        datetime.date(1, 1, 1), uuid.UUID(int=0), [], [], [], False,
    ),
    (3, *[None] * 13),
]

#: Bytes of a value larger than any buffer on the way.
LARGE = 5_000_000

#: Far beyond the pool's size, so that every statement may meet another server.
CONNECTIONS = 50


def as_json(value):
    return None if value is None else json.dumps(value)
