// ioredis: pipelines, transactions, scripts, blocking calls, messages, streams, reconnection.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Redis } from 'ioredis'

import { LIMIT, URL, named, sleep } from './common.js'

// A test with a connection and a prefix of its own.
function withRedis(name, body) {
  test('ioredis: ' + name, LIMIT, () => named(async (prefix) => {
    const redis = new Redis(URL)
    try {
      await body(redis, prefix)
    } finally {
      redis.disconnect()
    }
  }))
}

withRedis('values of every kind', async (redis, p) => {
  assert.equal(await redis.set(p + 's', 'one', 'EX', 100, 'NX'), 'OK')
  assert.equal(await redis.set(p + 's', 'two', 'NX'), null)
  assert.equal(await redis.get(p + 's'), 'one')
  const bytes = Buffer.from([0, 255, 13, 10, 0xc3, 0x28])
  await redis.set(p + 'b', bytes)
  assert.deepEqual(await redis.getBuffer(p + 'b'), bytes)
  await redis.hset(p + 'h', { a: 1, b: 'two' })
  assert.deepEqual(await redis.hgetall(p + 'h'), { a: '1', b: 'two' })
  await redis.zadd(p + 'z', 1, 'a', 2.5, 'b')
  assert.deepEqual(await redis.zrange(p + 'z', 0, -1, 'WITHSCORES'), ['a', '1', 'b', '2.5'])
  await assert.rejects(redis.incr(p + 'h'), /WRONGTYPE/)
})

withRedis('automatic pipelines of many at once', async (redis, p) => {
  const eager = new Redis(URL, { enableAutoPipelining: true })
  const replies = await Promise.all(Array.from({ length: 2000 }, () => eager.incr(p + 'n')))
  assert.deepEqual(replies, Array.from({ length: 2000 }, (_, n) => n + 1))
  eager.disconnect()
})

withRedis('a transaction, and one whose key has changed', async (redis, p) => {
  const replies = await redis.multi().set(p + 'a', 1).lpush(p + 'a', 1).incr(p + 'a').exec()
  assert.deepEqual([replies[0][1], replies[2][1]], ['OK', 2])
  assert.match(replies[1][0].message, /WRONGTYPE/)
  await redis.watch(p + 'a')
  const other = new Redis(URL)
  await other.incr(p + 'a')
  other.disconnect()
  assert.equal(await redis.multi().set(p + 'a', 0).exec(), null)
})

withRedis('a script of its own', async (redis, p) => {
  redis.defineCommand('addAll', {
    numberOfKeys: 1,
    lua: "local n for _, v in ipairs(ARGV) do n = redis.call('INCRBY', KEYS[1], v) end return n",
  })
  assert.equal(await redis.addAll(p + 'n', 1, 2, 3), 6)
  assert.equal(await redis.addAll(p + 'n', 4), 10)
})

withRedis('blocking calls and messages', async (redis, p) => {
  const other = new Redis(URL)
  const popped = redis.blpop(p + 'l', 20)
  await sleep(50)
  await other.rpush(p + 'l', 'x')
  assert.deepEqual(await popped, [p + 'l', 'x'])
  const messages = []
  redis.on('message', (channel, text) => messages.push(text))
  await redis.subscribe(p + 'c')
  for (let n = 0; n < 100; n++) assert.equal(await other.publish(p + 'c', String(n)), 1)
  while (messages.length < 100) await sleep(10)
  assert.deepEqual(messages, Array.from({ length: 100 }, (_, n) => String(n)))
  other.disconnect()
})

withRedis('an iteration over all keys', async (redis, p) => {
  for (let n = 0; n < 200; n++) redis.set(p + n, n)
  const found = new Set()
  for await (const keys of redis.scanStream({ match: p + '*', count: 20 })) {
    keys.forEach((key) => found.add(key))
  }
  assert.equal(found.size, 200)
})
