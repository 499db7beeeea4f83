// node-redis in RESP2 and RESP3: types, transactions, scripts, messages, streams.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { ErrorReply, WatchError, createClient, defineScript } from 'redis'

import { LIMIT, URL, named, sleep } from './common.js'

const add = defineScript({
  SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1])",
  NUMBER_OF_KEYS: 1,
  parseCommand(parser, key, by) {
    parser.pushKey(key)
    parser.push(String(by))
  },
  transformReply: (reply) => reply,
})

function withClient(name, body) {
  for (const RESP of [2, 3]) {
    test(`node-redis, RESP${RESP}: ${name}`, LIMIT, () => named(async (prefix) => {
      const client = await createClient({ url: URL, RESP, scripts: { add } }).connect()
      try {
        await body(client, prefix)
      } finally {
        client.destroy()
      }
    }))
  }
}

withClient('values of every kind', async (client, p) => {
  assert.equal(await client.set(p + 's', '1', { expiration: { type: 'EX', value: 100 } }), 'OK')
  assert.ok(await client.ttl(p + 's') > 90)
  await client.hSet(p + 'h', { a: '1', b: 'two' })
  assert.deepEqual({ ...await client.hGetAll(p + 'h') }, { a: '1', b: 'two' })
  await client.zAdd(p + 'z', [{ score: 1, value: 'a' }, { score: 2.5, value: 'b' }])
  const scored = await client.zRangeWithScores(p + 'z', 0, -1)
  assert.deepEqual(scored.map(({ score, value }) => [score, value]), [[1, 'a'], [2.5, 'b']])
  await client.sAdd(p + 'e', ['x', 'y'])
  assert.deepEqual([...await client.sMembers(p + 'e')].sort(), ['x', 'y'])
  assert.equal(await client.get(p + 'none'), null)
  await assert.rejects(client.incr(p + 'h'), ErrorReply)
})

withClient('many at once', async (client, p) => {
  const replies = await Promise.all(Array.from({ length: 2000 }, () => client.incr(p + 'n')))
  assert.deepEqual(replies, Array.from({ length: 2000 }, (_, n) => n + 1))
})

withClient('a transaction, and one whose key has changed', async (client, p) => {
  assert.deepEqual(await client.multi().set(p + 'a', '1').incr(p + 'a').exec(), ['OK', 2])
  await client.watch(p + 'a')
  const other = await client.duplicate().connect()
  await other.incr(p + 'a')
  other.destroy()
  await assert.rejects(client.multi().set(p + 'a', '0').exec(), WatchError)
})

withClient('scripts and blocking calls', async (client, p) => {
  assert.equal(await client.add(p + 'n', 5), 5)
  assert.equal(await client.add(p + 'n', 5), 10)
  const other = await client.duplicate().connect()
  const popped = client.blPop(p + 'l', 20)
  await sleep(50)
  await other.rPush(p + 'l', 'x')
  assert.deepEqual({ ...await popped }, { key: p + 'l', element: 'x' })
  other.destroy()
})

withClient('messages', async (client, p) => {
  const subscriber = await client.duplicate().connect()
  const heard = []
  await subscriber.subscribe(p + 'c', (text) => heard.push(text))
  await subscriber.pSubscribe(p + 'd*', (text) => heard.push(text))
  await client.publish(p + 'c', 'one')
  await client.publish(p + 'd1', 'two')
  while (heard.length < 2) await sleep(10)
  assert.deepEqual(heard, ['one', 'two'])
  subscriber.destroy()
})

withClient('a stream with a group', async (client, p) => {
  const id = await client.xAdd(p + 'x', '*', { n: '1' })
  await client.xGroupCreate(p + 'x', 'g', '0')
  const read = await client.xReadGroup('g', 'one', { key: p + 'x', id: '>' }, { COUNT: 5 })
  assert.ok(JSON.stringify(read).includes(id))
  assert.equal(await client.xAck(p + 'x', 'g', id), 1)
  assert.equal((await client.xPending(p + 'x', 'g')).pending, 0)
})
