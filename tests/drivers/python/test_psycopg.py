"""psycopg 3 in a pool of transactions: everything an application does, on shared servers."""

import concurrent.futures
import threading
import time
import uuid

import psycopg
import pytest
from psycopg.types.json import Jsonb

from common import CONNECTIONS, KINDS, LARGE, ROWS


def connect(**options):
    return psycopg.connect("", connect_timeout=20, **options)


@pytest.fixture
def conn():
    with connect(autocommit=True) as conn:
        yield conn


@pytest.fixture
def table(conn):
    name = "t_" + uuid.uuid4().hex
    yield name
    conn.execute(f"drop table if exists {name}")


def test_server_parameters_are_those_of_a_server(conn):
    assert conn.info.server_version >= 120000
    assert conn.info.parameter_status("server_encoding") == "UTF8"
    assert conn.info.parameter_status("client_encoding") == "UTF8"
    assert conn.info.parameter_status("standard_conforming_strings") == "on"
    assert conn.info.parameter_status("integer_datetimes") == "on"
    assert conn.info.backend_pid > 0


def test_wrong_password_is_refused():
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        connect(password="wrong")


def test_simple_protocol_returns_rows(conn):
    cursor = psycopg.ClientCursor(conn)
    assert cursor.execute("select %s::int, %s", (7, "it's")).fetchall() == [(7, "it's")]


def test_several_statements_in_one_query_give_several_results(conn):
    cursor = conn.execute("select 1; select 2, 3; select 'four'")
    results = [cursor.fetchall()]
    while cursor.nextset():
        results.append(cursor.fetchall())
    assert results == [[(1,)], [(2, 3)], [("four",)]]


def test_statement_is_prepared_beyond_the_threshold_and_keeps_its_answers(conn):
    conn.prepare_threshold = 3
    for i in range(100):
        assert conn.execute("select %s::int * 2, %s::text", (i, f"n{i}")).fetchone() == (i * 2, f"n{i}")


def test_prepared_statements_are_closed_when_there_are_too_many(conn):
    conn.prepare_threshold = 0
    conn.prepared_max = 3
    for _ in range(5):
        for width in range(8):
            columns = ", ".join(f"%s::int as c{i}" for i in range(width + 1))
            values = tuple(range(width + 1))
            assert conn.execute(f"select {columns}", values).fetchone() == values


def test_prepared_statements_survive_a_change_of_servers():
    """Five clients hold servers in transactions by turns, so each statement meets several."""
    clients = [connect(autocommit=True, prepare_threshold=0) for _ in range(12)]
    try:
        for turn in range(20):
            for number, client in enumerate(clients):
                with client.transaction():
                    got = client.execute("select %s::int + %s::int, %s::text", (number, turn, "x" * turn))
                    assert got.fetchone() == (number + turn, "x" * turn)
            clients.append(clients.pop(0))
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_types_make_the_round_trip(conn, table, binary):
    conn.execute(KINDS.format(table=table))
    rows = [(*r[:10], None if r[10] is None else Jsonb(r[10]), *r[11:]) for r in ROWS]
    with conn.cursor(binary=binary) as cursor:
        placeholder = "%b" if binary else "%t"
        values = ", ".join([placeholder] * 14)
        for row in rows:
            cursor.execute(f"insert into {table} values ({values})", row)
        cursor.execute(f"select * from {table} order by id")
        assert cursor.fetchall() == ROWS


def test_commit_keeps_and_rollback_forgets(conn, table):
    conn.execute(f"create table {table}(a int)")
    with conn.transaction():
        conn.execute(f"insert into {table} values (1)")
    with pytest.raises(ZeroDivisionError):
        with conn.transaction():
            conn.execute(f"insert into {table} values (2)")
            raise ZeroDivisionError
    assert conn.execute(f"select array_agg(a) from {table}").fetchone() == ([1],)


def test_savepoint_undoes_its_part_only(conn, table):
    conn.execute(f"create table {table}(a int primary key)")
    with conn.transaction():
        conn.execute(f"insert into {table} values (1)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            with conn.transaction():
                conn.execute(f"insert into {table} values (2)")
                conn.execute(f"insert into {table} values (1)")
        conn.execute(f"insert into {table} values (3)")
    assert conn.execute(f"select array_agg(a order by a) from {table}").fetchone() == ([1, 3],)


def test_error_carries_the_servers_fields_and_the_connection_lives_on(conn):
    with pytest.raises(psycopg.errors.DivisionByZero) as caught:
        conn.execute("select 1 / %s::int", (0,))
    assert caught.value.diag.sqlstate == "22012"
    with pytest.raises(psycopg.errors.UndefinedTable) as caught:
        conn.execute("select * from nowhere_at_all")
    assert caught.value.diag.statement_position == "15"
    assert conn.execute("select 1").fetchone() == (1,)


def test_failed_transaction_refuses_until_rolled_back():
    with connect() as conn:
        with pytest.raises(psycopg.errors.DivisionByZero):
            conn.execute("select 1/0")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            conn.execute("select 1")
        conn.rollback()
        assert conn.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize("form", ["text", "binary"])
def test_copy_in_and_out_carry_every_row(conn, table, form):
    conn.execute(f"create table {table}(a int, t text)")
    rows = [(i, None if i % 7 == 0 else f"line\t{i}\n\\") for i in range(20_000)]
    with conn.cursor() as cursor:
        with cursor.copy(f"copy {table} from stdin (format {form})") as copy:
            copy.set_types(["int4", "text"])
            for row in rows:
                copy.write_row(row)
        assert cursor.rowcount == len(rows)
        with cursor.copy(f"copy (select * from {table} order by a) to stdout (format {form})") as copy:
            copy.set_types(["int4", "text"])
            assert list(copy.rows()) == rows


def test_broken_copy_is_an_error_and_the_connection_lives_on(conn, table):
    conn.execute(f"create table {table}(a int)")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        with conn.cursor() as cursor, cursor.copy(f"copy {table} from stdin") as copy:
            for i in range(50_000):
                copy.write(f"{i}\n" if i != 100 else "not a number\n")
    # The driver sends CopyFail and hides the server's answer behind what the block raised.
    with pytest.raises(ValueError, match="given up by the client"):
        with conn.cursor() as cursor, cursor.copy(f"copy {table} from stdin") as copy:
            copy.write("1\n")
            raise ValueError("given up by the client")
    assert conn.execute(f"select count(*) from {table}").fetchone() == (0,)


def test_large_values_pass_both_ways(conn):
    text = "0123456789" * (LARGE // 10)
    got, size = conn.execute("select %s::text, length(%s::text)", (text, text)).fetchone()
    assert size == LARGE and got == text
    raw = bytes(range(256)) * (LARGE // 256)
    with conn.cursor(binary=True) as cursor:
        assert cursor.execute("select %b::bytea", (raw,)).fetchone() == (raw,)


def test_pipeline_answers_in_order(conn, table):
    conn.execute(f"create table {table}(a int)")
    with conn.pipeline():
        cursors = [conn.execute("select %s::int", (i,)) for i in range(200)]
        for i in range(100):
            conn.execute(f"insert into {table} values (%s)", (i,))
        assert [c.fetchone() for c in cursors] == [(i,) for i in range(200)]
    assert conn.execute(f"select sum(a) from {table}").fetchone() == (4950,)


def test_error_in_a_pipeline_skips_to_its_sync_only(conn, table):
    conn.execute(f"create table {table}(a int)")
    # Raised at whichever statement the driver notices it, at the latest when the block ends.
    with pytest.raises(psycopg.errors.DivisionByZero):
        with conn.pipeline() as pipeline:
            conn.execute(f"insert into {table} values (1)")
            pipeline.sync()
            conn.execute("select 1/0")
            conn.execute(f"insert into {table} values (2)")
    assert conn.execute(f"select array_agg(a) from {table}").fetchone() == ([1],)


def test_server_side_cursor_fetches_in_parts():
    with connect() as conn, conn.cursor("parts") as cursor:
        cursor.itersize = 33
        cursor.execute("select g from generate_series(1, 1000) g")
        assert [row[0] for row in cursor] == list(range(1, 1001))


def test_stream_receives_single_rows(conn):
    with conn.cursor() as cursor:
        got = [row[0] for row in cursor.stream("select g from generate_series(1, 5000) g")]
    assert got == list(range(1, 5001))


def test_cancel_ends_the_statement_and_the_connection_lives_on(conn):
    for cancel in (conn.cancel_safe, conn.cancel):
        began = time.monotonic()
        timer = threading.Timer(0.3, cancel)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            conn.execute("select pg_sleep(60)")
        timer.join()
        assert time.monotonic() - began < 20
        assert conn.execute("select 'usable'").fetchone() == ("usable",)


def test_cancel_works_with_the_long_keys_of_protocol_3_2():
    with connect(autocommit=True, max_protocol_version="3.2") as newer:
        test_cancel_ends_the_statement_and_the_connection_lives_on(newer)


def test_cancel_while_idle_does_nothing(conn):
    conn.cancel_safe()
    assert conn.execute("select pg_sleep(0.2), 1").fetchone()[1] == 1


def test_notices_arrive(conn):
    heard = []
    conn.add_notice_handler(lambda diag: heard.append((diag.severity_nonlocalized, diag.message_primary)))
    conn.execute("do $$ begin raise notice 'hello %', 42; raise warning 'careful'; end $$")
    assert heard == [("NOTICE", "hello 42"), ("WARNING", "careful")]


def test_settings_at_start_up_hold_on_every_server():
    names = {"Asia/Tokyo": "one", "America/Lima": "two", "Europe/Madrid": "three"}
    clients = {
        zone: connect(autocommit=True, application_name=name, options=f"-c TimeZone={zone}")
        for zone, name in names.items()
    }
    show = "select current_setting('TimeZone'), current_setting('application_name')"
    try:
        for _ in range(20):
            for zone, client in clients.items():
                assert client.info.parameter_status("TimeZone") == zone
                with client.transaction():
                    assert client.execute(show).fetchone() == (zone, names[zone])
    finally:
        for client in clients.values():
            client.close()


def test_set_of_a_reported_setting_stays_with_its_client():
    with connect(autocommit=True) as one, connect(autocommit=True) as other:
        one.execute("set datestyle to 'German'")
        other.execute("set timezone to 'Asia/Tokyo'")
        for _ in range(20):
            assert one.execute("select date '2024-02-29'::text").fetchone() == ("29.02.2024",)
            assert other.execute("select date '2024-02-29'::text").fetchone() == ("2024-02-29",)
            assert other.execute("show timezone").fetchone() == ("Asia/Tokyo",)
        assert one.info.parameter_status("DateStyle").startswith("German")


def test_many_short_connections():
    def once(mark):
        with connect(autocommit=True) as conn:
            return conn.execute("select %s::int", (mark,)).fetchone()[0]

    with concurrent.futures.ThreadPoolExecutor(8) as workers:
        assert list(workers.map(once, range(300))) == list(range(300))


def test_no_reply_goes_to_another_connection():
    def work(mark):
        with connect(autocommit=True, prepare_threshold=2) as conn:
            for turn in range(40):
                own = f"{mark}:{turn}"
                match turn % 4:
                    case 0:
                        got = conn.execute("select %s::text", (own,)).fetchone()[0]
                    case 1:
                        got = psycopg.ClientCursor(conn).execute("select %s", (own,)).fetchone()[0]
                    case 2:
                        with conn.transaction():
                            conn.execute("select pg_sleep(0.001)")
                            got = conn.execute("select %s::text || ''", (own,)).fetchone()[0]
                    case _:
                        with conn.pipeline():
                            cursors = [conn.execute("select %s::text, %s::int", (own, i)) for i in range(5)]
                            rows = [c.fetchone() for c in cursors]
                        assert [r[1] for r in rows] == list(range(5))
                        (got,) = {r[0] for r in rows}
                assert got == own
        return mark

    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as workers:
        assert sorted(workers.map(work, range(CONNECTIONS))) == list(range(CONNECTIONS))


def test_calls_of_one_row_ride_trains(conn, table):
    """At the same time, each with its own answer; a train's calls do not wait for the disk."""
    conn.execute(
        f"create table {table} (id int primary key, n int default 0, rode bool default false)"
    )
    conn.execute(f"insert into {table} (id) select generate_series(1, 3)")
    conn.execute(
        f"create procedure add_{table}(p_id int, inout p_n int) language plpgsql as $$ begin"
        f" update {table} set n = n + 1,"
        " rode = rode or current_setting('synchronous_commit') = 'off'"
        " where id = p_id returning n into p_n; end $$"
    )
    conn.execute(f"comment on procedure add_{table} is '@pondage key=p_id'")

    def work(mark):
        with connect(autocommit=True, prepare_threshold=5) as own:
            text = f"call add_{table}(%s, %s)"
            return [own.execute(text, (mark % 3 + 1, 0)).fetchone()[0] for _ in range(20)]

    rounds, rode = 0, False
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as workers:
        while not rode and rounds < 20:
            rounds += 1
            for counts in workers.map(work, range(CONNECTIONS)):
                assert counts == sorted(set(counts))
            rode = conn.execute(f"select bool_or(rode) from {table}").fetchone()[0]
    assert rode
    total = conn.execute(f"select sum(n) from {table}").fetchone()[0]
    assert total == rounds * CONNECTIONS * 20
    conn.execute(f"drop procedure add_{table}")


def test_notifications_arrive(conn, table):
    conn.execute(f"listen {table}")
    with connect() as other:
        for n in range(20):
            other.execute("select pg_notify(%s, %s)", (table, str(n)))
            other.commit()
            told = [(t.channel, t.payload) for t in conn.notifies(timeout=20, stop_after=1)]
            assert told == [(table, str(n))]
        # Whoever asks for something has been told before the answer ends.
        heard = []
        conn.add_notify_handler(lambda told: heard.append((told.pid, told.payload)))
        other.execute(f"notify {table}, 'committed'")
        other.commit()
        conn.execute("select 1")
        assert [payload for _, payload in heard] == ["committed"]
        conn.execute(f"notify {table}, 'own'")
        assert heard[1:] == [(conn.info.backend_pid, "own")]
        # A LISTEN that is rolled back.
        other.execute(f"listen {table}")
        other.rollback()
        deaf = []
        other.add_notify_handler(deaf.append)
        conn.execute(f"notify {table}, 'to whom?'")
        other.execute("select 1")
        assert deaf == []
