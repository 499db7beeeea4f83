"""What pgbench runs besides its builtins.

Source: PostgreSQL documentation, "pgbench", custom scripts.
"""

from __future__ import annotations

from dataclasses import dataclass

from .processes import Supervisor

# Statements sent at once by the scripts that pipeline.
PIPELINE_DEPTH = 20
DEEP_PIPELINE_DEPTH = 50
PIPELINED, DEEPLY_PIPELINED, SINGLE_ROW_WRITES = "pipelined", "deeply-pipelined", "writes"
UPSERT, UPSERT_ONE = "upsert", "upsert-one"
UPSERT_4K, UPSERT_16K = "upsert-4k", "upsert-16k"
CHANGES, CHANGES_ROWS = "changes", 10
#: Random values of `payloads`, for upserts that are too large to be made in a statement.
PAYLOADS = 256

_RANDOM_AID = "\\set aid random(1, 100000 * :scale)\n"
# As pgbench's own `-S`.
_SELECT = "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"


@dataclass(frozen=True)
class Script:
    """`statements` of one run of it are what a report counts."""

    text: str
    statements: int
    writes: bool = False


SCRIPTS = {
    PIPELINED: Script(
        _RANDOM_AID + "\\startpipeline\n" + _SELECT * PIPELINE_DEPTH + "\\endpipeline\n",
        PIPELINE_DEPTH,
    ),
    # Another row each time, as separate clients would ask.
    DEEPLY_PIPELINED: Script(
        "\\startpipeline\n" + (_RANDOM_AID + _SELECT) * DEEP_PIPELINE_DEPTH + "\\endpipeline\n",
        DEEP_PIPELINE_DEPTH,
    ),
    # Two transactions, as none begins one. The second statement is TPC-B's.
    SINGLE_ROW_WRITES: Script(
        "\\set aid random(1, 100000 * :scale)\n"
        "\\set bid random(1, 1 * :scale)\n"
        "\\set tid random(1, 10 * :scale)\n"
        "\\set delta random(-5000, 5000)\n"
        "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n"
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)"
        " VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n",
        2,
        writes=True,
    ),
    # What a SET of 128 random bytes is in SQL, and what an INCR.
    UPSERT: Script(
        "\\set key random(1, 1000000)\n"
        "INSERT INTO upserts VALUES (int4send(:key::int), "
        "sha512(int8send((random() * 9e12)::int8)) || sha512(int4send(:key::int)))"
        " ON CONFLICT (key) DO UPDATE SET val = excluded.val;\n",
        1,
        writes=True,
    ),
    # Rows of sysbench's table, so many in a transaction; a unit of scale is as many.
    CHANGES: Script(
        f"\\set first random(0, :scale - 1) * {CHANGES_ROWS}\n"
        "UPDATE sbtest1 SET k = k + 1"
        f" WHERE id BETWEEN :first + 1 AND :first + {CHANGES_ROWS};\n",
        1,
        writes=True,
    ),
    UPSERT_ONE: Script(
        "INSERT INTO upserts VALUES ('counter', int8send(1))"
        " ON CONFLICT (key) DO UPDATE SET val = int8send("
        "('x' || encode(upserts.val, 'hex'))::bit(64)::int8 + 1);\n",
        1,
        writes=True,
    ),
}


def _large_upsert(size: int, keys: int) -> Script:
    return Script(
        f"\\set key random(1, {keys})\n\\set n random(1, {PAYLOADS})\n"
        "INSERT INTO upserts SELECT int4send(:key::int), val FROM payloads "
        f"WHERE size = {size} AND n = :n::int"
        " ON CONFLICT (key) DO UPDATE SET val = excluded.val;\n",
        1,
        writes=True,
    )


SCRIPTS[UPSERT_4K] = _large_upsert(4096, 131_072)
SCRIPTS[UPSERT_16K] = _large_upsert(16384, 32_768)


def write_scripts(supervisor: Supervisor) -> None:
    """Puts them where `Profile.command` finds them: the supervisor's directory."""
    for name, script in SCRIPTS.items():
        supervisor.write(supervisor.directory / f"{name}.sql", script.text)
