"""Which cells of which tables are drawn. Wins and losses of a load stand in one picture."""

from __future__ import annotations

from dataclasses import replace

from .drawing import Bar, Picture
from .page import Cell

ALONE = "Beside PostgreSQL alone (1x)"
POOLER = "PgBouncer"
TO_DIRECT = "to direct"


def _measured(section: str, row: str) -> Cell:
    return Cell(section, "load | target | measured", row, "measured")


COALESCING = "Coalescing: where it stands"
PREPARED = Bar(
    "prepared selects", _measured(COALESCING, "`-S -M prepared -c 56`"), "{}x direct", "{}x"
)
SIMPLE = Bar("simple selects", _measured(COALESCING, "`-S -M simple -c 56`"), "{}x direct", "{}x")
WRITES = Bar(
    "single writes, coalesce_writes",
    _measured(COALESCING, "single writes (`UPDATE`, `INSERT`), 56 clients, `coalesce_writes`"),
    "{}x direct", "{}x",
)  # fmt: skip
TPCB = Bar(
    "TPC-B transactions", _measured(COALESCING, "TPC-B `-M simple -c 56`"), "{}x direct", "{}x"
)
ONE_CLIENT = Bar(
    "one client alone, p50",
    _measured(COALESCING, "one client, simple selects, p50"),
    "{} us against {} us", less=True,
)  # fmt: skip


def _pgjdbc(label: str, row: str) -> list[Bar]:
    cell = _measured(COALESCING, row)
    return [
        Bar(label, cell, "{}x the time", less=True),
        Bar(f"{label}, {POOLER}", cell, "(PgBouncer {}x", "{}x the time", less=True,
            kind="pgbouncer"),
    ]  # fmt: skip


def _to_direct(label: str, section: str) -> list[Bar]:
    """Two rows of a table of the run: Pondage and PgBouncer, both by Unix socket."""
    pondage = Cell(section, "side", "pondage", TO_DIRECT)
    pooler = replace(pondage, row="pgbouncer125-unix")
    return [Bar(label, pondage), Bar(f"{label}, {POOLER}", pooler, kind="pgbouncer")]


CONNECTED = _to_direct(
    "a connection for each select", "Selects, 56 clients, a connection per transaction, scale 10"
)
CONNECTIONS = [
    *CONNECTED,
    *_to_direct(
        "a connection for each TPC-B", "TPC-B, 56 clients, a connection per transaction, scale 10"
    ),
    *_to_direct("kept, simple selects", "Selects, 56 clients, connections kept, scale 10"),
    *_to_direct("kept, prepared", "Prepared selects, 56 clients, connections kept, scale 10"),
    *_to_direct("one client, prepared", "One client, prepared selects, scale 10"),
]

LOGINS = "Log-ins that prove something, and few active of many"


def _login(label: str, row: str, find: str = "{}x", show: str = "", *, less: bool = False) -> Bar:
    return Bar(label, Cell(LOGINS, "load", row, "ratio"), find, show, less=less)


CROWD = _login(
    "10,000 clients, 200 active: p99",
    "10,000 clients, 200 of them active, as fast as they can",
    "p99 {}x", "{}x the time", less=True,
)  # fmt: skip

FIRST_FIGURES = "First figures"


def _hit(label: str, row: str) -> Bar:
    return Bar(label, Cell(FIRST_FIGURES, "load", row, "to PostgreSQL"))


HIT = _hit("point selects, 8 threads", "8 threads")

MIRRORS = "Mirrors: values that never come again"


def _mirror(label: str, row: str, column: str = "with mirrors, literals") -> list[Bar]:
    cell = Cell(MIRRORS, "load, threads", f"{row}, 1", column)
    return [
        Bar(f"{label}, {threads}", replace(cell, below=below))
        for below, threads in enumerate(("1 thread", "4 threads", "8 threads"))
    ]


RANGES = _mirror("random ranges", "`select_random_ranges`")


def _cost(label: str, row: str, find: str = "{}x", show: str = "") -> Bar:
    return Bar(label, Cell(MIRRORS, "load | target | ratio", row, "ratio"), find, show)


CACHED_UPDATES = _cost("updates alone", "updates alone, 4 threads", "{} (", "{}x")

REDIS = "Redis: where it stands"


def _redis(label: str, column: str, beside: str = "Redis `always`") -> Bar:
    cell = Cell(REDIS, "operations/s | write | read | 1:1 | write, 32", "Pondage, rows", column)
    return Bar(label, cell, "{}", "{}/s against {}", beside=replace(cell, row=beside))


UPSERTS = "prepared upserts"


def _large(label: str, size: str, column: str) -> Bar:
    table = "operations/s | write | read | 1:1 | write, 32"
    cell = Cell(REDIS, table, f"{size}: Pondage, rows", column)
    beside = replace(cell, row=f"{size}: Redis `always`")
    return Bar(label, cell, "{}", "{}/s against {}", beside=beside)


JOURNAL = Bar(
    "writes by the journal",
    Cell(REDIS, "operations/s, 2 seconds, one round", "128 B: Pondage, journal", "write"),
    "{}", "{}/s against {}",
    beside=Cell(REDIS, "operations/s, 2 seconds, one round", "128 B: Redis `always`", "write"),
)  # fmt: skip
WRITTEN = _redis("writes", "write")
READ_PIPELINED = _redis("reads, 32 in a pipeline", "read, 32")

PROCEDURES = "Where it stands"


def _trains(of: str, row: str) -> list[Bar]:
    cell = Cell(PROCEDURES, " | target | measured", row, "measured")
    rivals = ("statements", "calls", "calls, pooled")
    return [
        Bar(f"{of} to {rival}", cell, "{}x, {}x, {}x", "{}x", only=at)
        for at, rival in enumerate(rivals)
    ]


PAYMENTS = _trains(
    "payments", "payment, 10: against direct statements, direct procedure, our own pool"
)
ONE_CALL = Bar(
    "one client, p50 of a payment",
    Cell(PROCEDURES, " | target | measured", "one client, p50 of a payment", "measured"),
    "{} us against {} us", less=True,
)  # fmt: skip

SESSIONS = "What sessions keep"


def _session(label: str, row: str) -> Bar:
    cell = Cell(SESSIONS, "load | Pondage, p50", row, "Pondage, p50")
    beside = replace(cell, column="direct, p50")
    return Bar(label, cell, "{} ms", "{} ms against {}", beside=beside, less=True)


LISTENER = _session("a select of a client that listens", "the same, of a client that listens")

PICTURES = [
    Picture(
        "at-a-glance",
        "What is won and what is lost",
        "Each beside the rival that its line names (1x), in the same rounds; 2 processors shared by"
        " load, gateway and database.",
        [
            CONNECTED[0].called("a connection each, to PostgreSQL"),
            SIMPLE.called("56 clients, selects, to PostgreSQL"),
            HIT.called("cached selects, 8 threads, to PostgreSQL"),
            RANGES[2].called("ranges from a mirror, to PostgreSQL"),
            PAYMENTS[1].called("200 clients, payments, to PostgreSQL"),
            CROWD.called("10,000 clients, p99, to PgBouncer"),
            READ_PIPELINED.called("pipelined reads, to Redis"),
            TPCB.called("56 clients, TPC-B, to PostgreSQL"),
            ONE_CLIENT.called("one client, p50, to PostgreSQL"),
            CACHED_UPDATES.called("updates with the cache, to without"),
            WRITTEN.called("durable writes, to Redis"),
            LISTENER.called("a listener's select, to PostgreSQL"),
        ],
    ),
    Picture(
        "coalescing",
        "56 clients that keep their connections",
        f"{ALONE}: statements a second; for one client its median time.",
        [PREPARED, SIMPLE, WRITES, TPCB, ONE_CLIENT],
        ["2 processors shared by load, gateway and database", "2026-11-21"],
    ),
    Picture(
        "prepared",
        "pgjdbc: threads with prepared statements",
        f"{ALONE}: the time for all selects, so less is better.",
        [
            *_pgjdbc("60 threads, 1 text", "pgjdbc, 60 threads x 1 text"),
            *_pgjdbc("60 threads, 60 texts", "pgjdbc, 60 threads x 60 texts"),
            *_pgjdbc("1 thread, 1 text", "pgjdbc, 1 thread x 1 text"),
        ],
        ["2 processors shared by load, gateway and database", "2026-11-21"],
    ),
    Picture(
        "cache-hits",
        "The read cache: reads that come again",
        f"{ALONE}: queries a second, with literals if nothing else is said.",
        [
            _hit("point selects, 1 thread", "point select, literals, 1 thread"),
            _hit("point selects, 4 threads", "4 threads"),
            HIT,
            _hit("prepared, 4 threads", "prepared, 4 threads"),
            _hit(
                "oltp_read_only, 4 threads",
                "`oltp_read_only` with BEGIN and COMMIT, 4 threads, sysbench's own distribution"
                " (one round)",
            ),
            _hit(
                "PostgreSQL 0.5 ms away, 4 threads",
                "point select, PostgreSQL 0.5 ms away, 4 threads, own distribution (one round)",
            ),
        ],
        ["2 processors shared by load, gateway and database", "2026-11-22"],
    ),
    Picture(
        "mirrors",
        "Mirrors: reads that never come again",
        f"{ALONE}: queries a second, 1,000,000 rows; literals if nothing else is said.",
        [
            *RANGES,
            *_mirror("random points", "`select_random_points`"),
            *_mirror("oltp_read_only", "`oltp_read_only` with BEGIN and COMMIT"),
            *_mirror("point selects", "`oltp_point_select`"),
            *_mirror("the same, prepared", "`oltp_point_select`", "prepared"),
        ],
        ["2 processors shared by load, gateway and database", "2026-11-23"],
    ),
    Picture(
        "cache-costs",
        "What the read cache costs others",
        "Beside Pondage without the cache (1x): queries a second.",
        [
            _cost(
                "misses, a full cache",
                "misses, point selects, 1 MiB for 43 MiB of results",
                "{} (", "{}x",
            ),
            _cost(
                "misses, while an empty one fills",
                "misses while an empty cache fills",
                "{} (", "{}x",
            ),
            CACHED_UPDATES,
            _cost(
                "updates beside 2,000 reads/s",
                "updates beside 2,000 reads/s of the same rows",
                "{} (", "{}x",
            ),
            Bar(
                "updates of a mirrored column",
                Cell(
                    MIRRORS, "mirrors | target | figure",
                    "updates of an indexed column with a mirror of it that nobody reads, 4 threads",
                    "figure",
                ),
                "{}x, {}x and {}x of Pondage without the cache", "{}x, {}x, {}x", only=0,
            ),
        ],
    ),
    Picture(
        "procedures",
        "Procedure calls as trains, 200 clients",
        "Beside statement by statement, calls, and calls through Pondage's own pool (1x):"
        " transactions a second; for one client its median time.",
        [*PAYMENTS, *_trains("new-orders", "new-order, 10"), ONE_CALL],
        ["2 processors shared by clients, gateway and database", "2026-11-22"],
    ),
    Picture(
        "redis",
        "The Redis door beside Redis",
        "Beside Redis with appendfsync always (1x): operations a second, 128 clients, values of"
        " 128 bytes where nothing else is said.",
        [
            _redis("reads", "read"),
            READ_PIPELINED,
            WRITTEN,
            _redis("writes, 32 in a pipeline", "write, 32"),
            JOURNAL,
            _redis("1:1", "1:1"),
            _redis("1:1, 32 in a pipeline", "1:1, 32"),
            _redis("one hot counter", "counter"),
            _large("4 KiB: writes", "4 KiB, 128", "write"),
            _large("16 KiB: writes", "16 KiB, 128", "write"),
        ],
        ["2 processors shared by load, gateway and database", "2026-11-22"],
    ),
    Picture(
        "redis-upserts",
        "The Redis door beside upserts in SQL",
        "Beside PostgreSQL's prepared upserts, one a commit (1x): operations a second.",
        [
            _redis("writes", "write", UPSERTS),
            _redis("writes, 32 in a pipeline", "write, 32", UPSERTS),
            _redis("one hot counter", "counter", UPSERTS),
        ],
    ),
    Picture(
        "connections",
        "56 clients, before coalescing was built",
        f"{ALONE}: transactions a second. Both poolers by Unix socket.",
        CONNECTIONS,
    ),
    Picture(
        "log-ins",
        "Log-ins, and few active of many clients",
        "Beside PgBouncer (1x): log-ins a second; for the last two the time of the slowest of"
        " 100 answers.",
        [
            _login("SCRAM-SHA-256", "56 clients, a connection per select, SCRAM-SHA-256"),
            _login("TLS", "the same by TLS"),
            _login("SCRAM-SHA-256 within TLS", "SCRAM-SHA-256 within TLS"),
            CROWD,
            _login(
                "the same at 8,000 selects/s: p99",
                "the same, at 8,000 selects/s",
                "p99 {}x", "{}x the time", less=True,
            ),
        ],
        ["2 processors used by nobody else", "2026-11-23"],
    ),
    Picture(
        "sessions",
        "What sessions keep: one client",
        f"{ALONE}: the median time of a simple query, so less is better.",
        [
            _session("select 1", "`select 1`"),
            _session("pinned to its server", "the same, of a client that keeps its server"),
            LISTENER,
            _session("NOTIFY until it is told", "from NOTIFY until an idle listener is told"),
        ],
        ["Disturbed: others kept 1.9 of the 2 processors busy", "2026-11-23"],
    ),
]
