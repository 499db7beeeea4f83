"""asyncpg, which prepares every statement it runs and reads everything in binary."""

import asyncio
import functools
import io
import time
import uuid

import asyncpg
import pytest

from common import CONNECTIONS, KINDS, LARGE, ROWS, as_json


def connect(**options):
    return asyncpg.connect(timeout=20, **options)


def run(test):
    @functools.wraps(test)
    def wrapper():
        async def body():
            conn = await connect()
            table = "t_" + uuid.uuid4().hex
            try:
                await test(conn, table)
            finally:
                await conn.execute(f"drop table if exists {table}")
                await conn.close()

        asyncio.run(body())

    # functools.wraps would otherwise let pytest look for fixtures named conn and table.
    del wrapper.__wrapped__
    return wrapper


@run
async def test_server_parameters_are_those_of_a_server(conn, table):
    assert conn.get_server_version().major >= 12
    assert conn.get_settings().server_encoding == "UTF8"
    assert conn.get_server_pid() > 0


@run
async def test_simple_and_prepared_statements_agree(conn, table):
    assert await conn.execute("select 1") == "SELECT 1"
    for i in range(100):
        assert await conn.fetchval("select $1::int * 2", i) == i * 2
    statement = await conn.prepare("select $1::text || $2::text")
    for i in range(50):
        assert await statement.fetchval("a", str(i)) == f"a{i}"
    assert [a.name for a in statement.get_attributes()] == ["?column?"]


def test_prepared_statements_survive_a_change_of_servers():
    async def body():
        clients = [await connect() for _ in range(12)]
        statements = []
        for number, client in enumerate(clients):
            statement = await client.prepare("select $1::int + $2::int")
            # asyncpg prepares with Flush, not Sync: the server is its own until it executes.
            assert await statement.fetchval(number, 0) == number
            statements.append(statement)
        for turn in range(20):
            got = await asyncio.gather(*(s.fetchval(n, turn) for n, s in enumerate(statements)))
            assert got == [n + turn for n in range(12)]
        await asyncio.gather(*(c.close() for c in clients))

    asyncio.run(body())


def test_a_text_that_others_have_prepared_is_prepared_after_ddl():
    async def body():
        clients = [await connect() for _ in range(4)]
        table, kind = ("t_" + uuid.uuid4().hex for _ in range(2))
        first = clients[0]
        await first.execute(f"create type {kind} as enum ('a')")
        await first.execute(f"create table {table}(a int); insert into {table} values (1)")
        texts = {f"select * from {table}": [], f"select 'a'::{kind}, $1::{kind}": ["a"]}
        for client in clients[:2]:
            for text, values in texts.items():
                await client.fetchrow(text, *values)
        await first.execute(f"alter table {table} add b int")
        await first.execute(f"drop type {kind}; create type {kind} as enum ('a')")
        # Without a word of plans that are older than they are.
        for client in clients[2:]:
            for text, values in texts.items():
                assert len(await client.fetchrow(text, *values)) == 2
        await first.execute(f"drop table {table}; drop type {kind}")
        await asyncio.gather(*(client.close() for client in clients))

    asyncio.run(body())


@run
async def test_types_make_the_round_trip(conn, table):
    await conn.execute(KINDS.format(table=table))
    rows = [(*r[:10], as_json(r[10]), *r[11:]) for r in ROWS]
    places = ", ".join(f"${i}" for i in range(1, 15))
    await conn.executemany(f"insert into {table} values ({places})", rows)
    got = await conn.fetch(f"select * from {table} order by id")
    for back, sent in zip(got, ROWS, strict=True):
        back = tuple(back)
        assert (*back[:10], *back[11:]) == (*sent[:10], *sent[11:])
    match = f"select count(*) from {table} where j = $1::jsonb"
    assert await conn.fetchval(match, as_json(ROWS[0][10])) == 1


@run
async def test_transactions_and_savepoints(conn, table):
    await conn.execute(f"create table {table}(a int primary key)")
    async with conn.transaction():
        await conn.execute(f"insert into {table} values (1)")
        with pytest.raises(asyncpg.UniqueViolationError):
            async with conn.transaction():
                await conn.execute(f"insert into {table} values (2)")
                await conn.execute(f"insert into {table} values (1)")
    with pytest.raises(ZeroDivisionError):
        async with conn.transaction(isolation="serializable"):
            await conn.execute(f"insert into {table} values (3)")
            raise ZeroDivisionError
    assert await conn.fetchval(f"select array_agg(a) from {table}") == [1]


@run
async def test_error_carries_the_servers_fields_and_the_connection_lives_on(conn, table):
    with pytest.raises(asyncpg.DivisionByZeroError) as caught:
        await conn.fetchval("select 1 / $1::int", 0)
    assert caught.value.sqlstate == "22012"
    with pytest.raises(asyncpg.UndefinedTableError):
        await conn.execute("select * from nowhere_at_all")
    with pytest.raises(asyncpg.PostgresSyntaxError):
        await conn.prepare("selec 1")
    assert await conn.fetchval("select 1") == 1


@run
async def test_copy_in_and_out_carry_every_row(conn, table):
    await conn.execute(f"create table {table}(a int, t text)")
    rows = [(i, None if i % 7 == 0 else f"line\t{i}\n\\") for i in range(20_000)]
    assert await conn.copy_records_to_table(table, records=rows) == f"COPY {len(rows)}"
    out = io.BytesIO()
    assert await conn.copy_from_query(f"select * from {table} order by a", output=out) == "COPY 20000"
    assert out.getvalue().count(b"\n") == len(rows)
    out.seek(0)
    await conn.execute(f"truncate {table}")
    assert await conn.copy_to_table(table, source=out) == "COPY 20000"
    assert [tuple(r) for r in await conn.fetch(f"select * from {table} order by a")] == rows


@run
async def test_large_values_pass_both_ways(conn, table):
    text = "0123456789" * (LARGE // 10)
    assert await conn.fetchval("select $1::text", text) == text
    raw = bytes(range(256)) * (LARGE // 256)
    assert await conn.fetchval("select $1::bytea", raw) == raw


@run
async def test_executemany_pipelines_thousands_of_rows(conn, table):
    await conn.execute(f"create table {table}(a int primary key, t text)")
    rows = [(i, f"row {i}") for i in range(10_000)]
    await conn.executemany(f"insert into {table} values ($1, $2)", rows)
    assert await conn.fetchval(f"select count(*) from {table}") == 10_000
    with pytest.raises(asyncpg.UniqueViolationError):
        await conn.executemany(f"insert into {table} values ($1, $2)", [(20_000, ""), (1, "")])
    assert await conn.fetchval(f"select count(*) from {table}") == 10_000


@run
async def test_cursor_fetches_in_parts(conn, table):
    async with conn.transaction():
        got = [r[0] async for r in conn.cursor("select generate_series(1, 1000)", prefetch=33)]
    assert got == list(range(1, 1001))


@run
async def test_timeout_cancels_the_statement_and_the_connection_lives_on(conn, table):
    began = time.monotonic()
    with pytest.raises(asyncio.TimeoutError):
        await conn.fetchval("select pg_sleep(60)", timeout=0.3)
    assert await conn.fetchval("select 'usable'") == "usable"
    assert time.monotonic() - began < 20


@run
async def test_notices_arrive(conn, table):
    heard = []
    conn.add_log_listener(lambda _, message: heard.append(message.message))
    await conn.execute("do $$ begin raise notice 'hello %', 42; end $$")
    # asyncpg calls its listeners from the event loop, after the statement.
    while not heard:
        await asyncio.sleep(0)
    assert heard == ["hello 42"]


@run
async def test_listeners_hear_others_and_know_themselves(conn, table):
    heard = asyncio.Queue()

    def hear(to, pid, channel, payload):
        heard.put_nowait((pid == to.get_server_pid(), channel, payload))

    await conn.add_listener(table, hear)
    other = await connect()
    for n in range(20):
        await other.execute("select pg_notify($1, $2)", table, str(n))
        # asyncpg's pool resets connections so; it is another's UNLISTEN.
        await other.reset()
        assert await asyncio.wait_for(heard.get(), 20) == (False, table, str(n))
    async with conn.transaction():
        await conn.execute(f"notify {table}, 'own'")
        assert heard.empty()
    assert await asyncio.wait_for(heard.get(), 20) == (True, table, "own")
    await conn.remove_listener(table, hear)
    await other.execute(f"notify {table}, 'nobody'")
    await conn.execute("select 1")
    assert heard.empty()
    await other.close()


def test_settings_at_start_up_hold_on_every_server():
    async def body():
        zones = ["Asia/Tokyo", "America/Lima", "Europe/Madrid"] * 4
        clients = [
            await connect(server_settings={"TimeZone": zone, "application_name": f"{zone} {n}"})
            for n, zone in enumerate(zones)
        ]
        show = "select current_setting('TimeZone'), current_setting('application_name')"
        for _ in range(10):
            got = await asyncio.gather(*(c.fetchrow(show) for c in clients))
            assert [tuple(r) for r in got] == [(z, f"{z} {n}") for n, z in enumerate(zones)]
        await asyncio.gather(*(c.close() for c in clients))

    asyncio.run(body())


def test_many_short_connections():
    async def once(mark):
        conn = await connect()
        try:
            return await conn.fetchval("select $1::int", mark)
        finally:
            await conn.close()

    async def body():
        for start in range(0, 200, 10):
            marks = range(start, start + 10)
            assert await asyncio.gather(*map(once, marks)) == list(marks)

    asyncio.run(body())


def test_no_reply_goes_to_another_connection():
    async def work(pool, mark):
        for turn in range(40):
            own = f"{mark}:{turn}"
            async with pool.acquire() as conn:
                if turn % 3 == 0:
                    async with conn.transaction():
                        await conn.execute("select pg_sleep(0.001)")
                        got = await conn.fetchval("select $1::text", own)
                elif turn % 3 == 1:
                    rows = await conn.fetch("select $1::text, generate_series(1, 20)", own)
                    assert [r[1] for r in rows] == list(range(1, 21))
                    (got,) = {r[0] for r in rows}
                else:
                    got = (await conn.fetchrow(f"select '{own}'"))[0]
            assert got == own

    async def body():
        async with asyncpg.create_pool(min_size=CONNECTIONS, max_size=CONNECTIONS) as pool:
            await asyncio.gather(*(work(pool, mark) for mark in range(CONNECTIONS)))

    asyncio.run(body())
