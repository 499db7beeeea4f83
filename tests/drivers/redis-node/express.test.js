// A web server: its sessions with connect-redis, its limit with express-rate-limit.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { RedisStore } from 'connect-redis'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import session from 'express-session'
import { RedisStore as LimitStore } from 'rate-limit-redis'
import { createClient } from 'redis'

import { LIMIT, URL, named } from './common.js'

test('express: sessions and a rate limit', LIMIT, () => named(async (prefix) => {
  const client = await createClient({ url: URL }).connect()
  const app = express()
  app.use('/visit', session({
    store: new RedisStore({ client, prefix: prefix + 'session:', ttl: 100 }),
    resave: false,
    saveUninitialized: false,
    secret: 'a secret',
  }))
  app.get('/visit', (request, response) => {
    request.session.visits = (request.session.visits ?? 0) + 1
    response.send(String(request.session.visits))
  })
  app.use('/limited', rateLimit({
    windowMs: 60_000,
    limit: 3,
    standardHeaders: 'draft-8',
    validate: false,
    store: new LimitStore({
      sendCommand: (...words) => client.sendCommand(words),
      prefix: prefix + 'limit:',
    }),
  }))
  app.get('/limited', (_, response) => response.send('let in'))
  const server = app.listen(0, '127.0.0.1')
  await new Promise((done) => server.once('listening', done))
  const base = `http://127.0.0.1:${server.address().port}`
  try {
    const first = await fetch(base + '/visit')
    const cookie = first.headers.get('set-cookie').split(';')[0]
    assert.equal(await first.text(), '1')
    for (const expected of ['2', '3']) {
      const again = await fetch(base + '/visit', { headers: { cookie } })
      assert.equal(await again.text(), expected)
    }
    const statuses = []
    for (let n = 0; n < 5; n++) statuses.push((await fetch(base + '/limited')).status)
    assert.deepEqual(statuses, [200, 200, 200, 429, 429])
  } finally {
    server.closeAllConnections()
    server.close()
    client.destroy()
  }
}))
