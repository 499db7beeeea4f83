// node-postgres in a pool of transactions: everything an application does, on shared servers.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'

import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import Cursor from 'pg-cursor'

// Far beyond the pool's size, so that every statement may meet another server.
const CONNECTIONS = 50
// A test that takes longer has lost an answer.
const LIMIT = { timeout: 60_000 }
// Bytes of a value larger than any buffer on the way.
const LARGE = 5_000_000

async function connect(options = {}) {
  const client = new pg.Client({ connectionTimeoutMillis: 20_000, ...options })
  await client.connect()
  return client
}

// A test with a connection and a table name of its own.
function withClient(name, body) {
  test(name, LIMIT, async () => {
    const client = await connect()
    const table = 't_' + randomUUID().replaceAll('-', '')
    try {
      await body(client, table)
    } finally {
      await client.query(`drop table if exists ${table}`)
      await client.end()
    }
  })
}

withClient('simple and extended statements agree', async (client) => {
  const simple = await client.query("select 1 as one, 'two' as two, null as none")
  assert.deepEqual(simple.rows, [{ one: 1, two: 'two', none: null }])
  const extended = await client.query('select $1::int as one, $2::text as two', [1, 'two'])
  assert.deepEqual(extended.rows, [{ one: 1, two: 'two' }])
  assert.equal(extended.command, 'SELECT')
  assert.equal(extended.rowCount, 1)
})

test('a wrong password is refused', LIMIT, async () => {
  await assert.rejects(connect({ password: 'wrong' }), { code: '28P01' })
})

withClient('several statements in one query give several results', async (client) => {
  const results = await client.query("select 1 as a; select 2 as b; select 'three' as c")
  assert.deepEqual(results.map((r) => r.rows[0]), [{ a: 1 }, { b: 2 }, { c: 'three' }])
})

withClient('a named statement is prepared once and keeps its answers', async (client) => {
  for (let i = 0; i < 100; i++) {
    const query = { name: 'double', text: 'select $1::int * 2 as n', values: [i] }
    assert.equal((await client.query(query)).rows[0].n, i * 2)
  }
})

test('the same name may mean another statement on another connection', LIMIT, async () => {
  const clients = await Promise.all(Array.from({ length: 20 }, () => connect()))
  for (let turn = 0; turn < 20; turn++) {
    const answers = await Promise.all(clients.map((client, mark) => {
      const text = `select $1::int + ${mark} as n, '${mark}' as mark`
      return client.query({ name: 'same', text, values: [turn] })
    }))
    answers.forEach(({ rows }, mark) => assert.deepEqual(rows, [{ n: turn + mark, mark: `${mark}` }]))
  }
  await Promise.all(clients.map((client) => client.end()))
})

for (const binary of [false, true]) {
  withClient(`types make the round trip in ${binary ? 'binary' : 'text'}`, async (client, table) => {
    await client.query(`create table ${table}(i int, big bigint, n numeric, f float8, t text,
      b bytea, at timestamptz, u uuid, j jsonb, a int[], ta text[], flag bool)`)
    const at = new Date('2024-02-29T23:59:59.123Z')
    const rows = [
      [42, '4611686018427387904', '12345678901234567890.123456789', 0.1, 'plain', Buffer.from([0, 1, 255]),
        at, '12345678-1234-5678-1234-567812345678', { a: [1, null, 'ä'] }, [1, null, -3], ['x', null, 'a "b", c'], true],
      [-2147483648, '-9223372036854775808', '-0.000000000000000001', -1.5e300, "snow ☃ '\\\n", Buffer.alloc(0),
        new Date(0), '00000000-0000-0000-0000-000000000000', {}, [], [], false],
      Array(12).fill(null),
    ]
    const places = rows[0].map((_, i) => `$${i + 1}`).join(', ')
    for (const values of rows) {
      await client.query({ text: `insert into ${table} values (${places})`, values, binary })
    }
    const columns = binary ? 'i, f, t, b, flag' : '*'
    const got = await client.query({ text: `select ${columns} from ${table}`, rowMode: 'array', binary, values: [] })
    const kept = binary ? [0, 3, 4, 5, 11] : rows[0].map((_, i) => i)
    assert.deepEqual(got.rows, rows.map((row) => kept.map((i) => row[i])))
  })
}

withClient('transactions commit, roll back, and undo to savepoints', async (client, table) => {
  await client.query(`create table ${table}(a int primary key)`)
  await client.query('begin')
  await client.query(`insert into ${table} values ($1)`, [1])
  await client.query('savepoint s')
  await assert.rejects(client.query(`insert into ${table} values ($1)`, [1]), { code: '23505' })
  await assert.rejects(client.query('select 1'), { code: '25P02' })
  await client.query('rollback to savepoint s')
  await client.query(`insert into ${table} values ($1)`, [2])
  await client.query('commit')
  await client.query('begin')
  await client.query(`insert into ${table} values ($1)`, [3])
  await client.query('rollback')
  const { rows } = await client.query(`select array_agg(a order by a) as all from ${table}`)
  assert.deepEqual(rows, [{ all: [1, 2] }])
})

withClient('an error carries its fields and the connection lives on', async (client) => {
  await assert.rejects(client.query('select 1 / $1::int', [0]), { code: '22012', severity: 'ERROR' })
  await assert.rejects(client.query('select * from nowhere'), { code: '42P01', position: '15' })
  const broken = { name: 'broken', text: 'selec 1' }
  await assert.rejects(client.query(broken), { code: '42601' })
  assert.equal((await client.query('select 1 as n')).rows[0].n, 1)
})

withClient('copy carries every row in and out', async (client, table) => {
  await client.query(`create table ${table}(a int, t text)`)
  const lines = Array.from({ length: 20_000 }, (_, i) => `${i}\tline ${i}\n`)
  await pipeline(Readable.from(lines), client.query(copyFrom(`copy ${table} from stdin`)))
  const out = client.query(copyTo(`copy (select * from ${table} order by a) to stdout`))
  const parts = []
  for await (const part of out) parts.push(part)
  assert.equal(Buffer.concat(parts).toString(), lines.join(''))
  const bad = client.query(copyFrom(`copy ${table} from stdin`))
  await assert.rejects(pipeline(Readable.from(['no number\tx\n']), bad), { code: '22P02' })
  assert.equal((await client.query(`select count(*) from ${table}`)).rows[0].count, '20000')
})

withClient('large values pass both ways', async (client) => {
  const text = '0123456789'.repeat(LARGE / 10)
  const { rows } = await client.query('select $1::text as t, length($1::text) as n', [text])
  assert.equal(rows[0].n, LARGE)
  assert.ok(rows[0].t === text)
  const raw = Buffer.alloc(LARGE, 'binary\0')
  const back = await client.query('select $1::bytea as b', [raw])
  assert.ok(back.rows[0].b.equals(raw))
})

withClient('queries asked at once, sent one after the other, answer in order', async (client) => {
  const asked = Array.from({ length: 200 }, (_, i) =>
    i % 2 ? client.query('select $1::int as n', [i]) : client.query(`select ${i} as n`))
  const answers = await Promise.all(asked)
  assert.deepEqual(answers.map((r) => r.rows[0].n), answers.map((_, i) => i))
})

test('a pipeline answers in order and an error stays with its query', LIMIT, async () => {
  const client = await connect({ pipeline: true })
  const asked = Array.from({ length: 200 }, (_, i) => {
    if (i % 50 === 7) return client.query('select 1 / $1::int as n', [0])
    const name = i % 3 ? undefined : 'named'
    return client.query({ name, text: 'select $1::int as n', values: [i] })
  })
  const answers = await Promise.allSettled(asked)
  answers.forEach(({ status, value, reason }, i) => {
    if (i % 50 === 7) assert.equal(reason?.code, '22012')
    else assert.equal(value?.rows[0].n, i, `${status}: ${reason}`)
  })
  await client.end()
})

withClient('a cursor reads in parts', async (client) => {
  await client.query('begin')
  const cursor = client.query(new Cursor('select g from generate_series(1, $1) g', [250]))
  const sizes = []
  let last = 0
  for (let rows = await cursor.read(100); rows.length > 0; rows = await cursor.read(100)) {
    sizes.push(rows.length)
    last = rows.at(-1).g
  }
  await cursor.close()
  await client.query('commit')
  assert.deepEqual(sizes, [100, 100, 50])
  assert.equal(last, 250)
})

withClient('cancel ends the statement and the connection lives on', async (client) => {
  const sleep = new pg.Query('select pg_sleep(60)')
  const ended = new Promise((resolve) => {
    sleep.on('error', resolve)
    sleep.on('end', () => resolve(new Error('slept to the end')))
  })
  client.query(sleep)
  // The request goes out on a connection of its own, like libpq's PQcancel.
  const timer = setTimeout(() => new pg.Client().cancel(client, sleep), 300)
  assert.equal((await ended).code, '57014')
  clearTimeout(timer)
  assert.equal((await client.query("select 'usable' as state")).rows[0].state, 'usable')
})

withClient('notices arrive', async (client) => {
  const heard = []
  client.on('notice', (notice) => heard.push([notice.severity, notice.message]))
  await client.query("do $$ begin raise notice 'hello %', 42; raise warning 'careful'; end $$")
  assert.deepEqual(heard, [['NOTICE', 'hello 42'], ['WARNING', 'careful']])
})

test('settings at start-up hold on every server', LIMIT, async () => {
  const zones = ['Asia/Tokyo', 'America/Lima', 'Europe/Madrid']
  const clients = await Promise.all(Array.from({ length: 12 }, (_, i) =>
    connect({ application_name: `app ${i}`, options: `-c TimeZone=${zones[i % 3]}` })))
  const show = "select current_setting('TimeZone') as zone, current_setting('application_name') as name"
  for (let turn = 0; turn < 10; turn++) {
    const answers = await Promise.all(clients.map((client) => client.query(show)))
    answers.forEach(({ rows }, i) =>
      assert.deepEqual(rows, [{ zone: zones[i % 3], name: `app ${i}` }]))
  }
  await Promise.all(clients.map((client) => client.end()))
})

test('many short connections', LIMIT, async () => {
  for (let i = 0; i < 200; i += 10) {
    await Promise.all(Array.from({ length: 10 }, async (_, j) => {
      const client = await connect()
      assert.equal((await client.query('select $1::int as n', [i + j])).rows[0].n, i + j)
      await client.end()
    }))
  }
})

test('no reply goes to another connection', LIMIT, async () => {
  const pool = new pg.Pool({ max: CONNECTIONS, connectionTimeoutMillis: 20_000 })
  await Promise.all(Array.from({ length: CONNECTIONS }, async (_, mark) => {
    for (let turn = 0; turn < 40; turn++) {
      const own = `${mark}:${turn}`
      const client = await pool.connect()
      try {
        if (turn % 3 === 0) {
          await client.query('begin')
          await client.query('select pg_sleep(0.001)')
        }
        const query = turn % 2 ? `select '${own}' as own` : { name: 'own', text: 'select $1::text as own', values: [own] }
        assert.equal((await client.query(query)).rows[0].own, own)
        if (turn % 3 === 0) await client.query('commit')
      } finally {
        client.release()
      }
    }
  }))
  await pool.end()
})

withClient('calls of one row at the same time ride trains, each with its own answer', async (client, table) => {
  await client.query(`create table ${table} (id int primary key, n int default 0, rode bool default false)`)
  await client.query(`insert into ${table} (id) select generate_series(1, 3)`)
  // A train's calls do not wait for the disk.
  await client.query(`create function add_${table}(p_id int) returns int language plpgsql as $$
    declare counted int; begin
      update ${table} set n = n + 1, rode = rode or current_setting('synchronous_commit') = 'off'
      where id = p_id returning n into counted; return counted; end $$`)
  await client.query(`comment on function add_${table} is '@pondage key=p_id'`)
  const pool = new pg.Pool({ max: CONNECTIONS, connectionTimeoutMillis: 20_000 })
  let rounds = 0
  let rode = false
  for (; !rode && rounds < 20; rounds++) {
    await Promise.all(Array.from({ length: CONNECTIONS }, async (_, mark) => {
      let last = 0
      for (let turn = 0; turn < 20; turn++) {
        const values = [mark % 3 + 1]
        const text = `select add_${table}($1) as n`
        const query = turn % 2 ? { name: `add_${table}`, text, values } : { text, values }
        const { n } = (await pool.query(query)).rows[0]
        assert.ok(n > last)
        last = n
      }
    }))
    rode = (await client.query(`select bool_or(rode) as rode from ${table}`)).rows[0].rode
  }
  await pool.end()
  assert.ok(rode)
  const { total } = (await client.query(`select sum(n)::int as total from ${table}`)).rows[0]
  assert.equal(total, rounds * CONNECTIONS * 20)
  await client.query(`drop function add_${table}`)
})
