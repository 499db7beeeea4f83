// What the suites share: the server's address, and names that nobody else uses.
import { randomUUID } from 'node:crypto'
import { createClient } from 'redis'

export const URL = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379/0'

// A test that takes longer has lost an answer.
export const LIMIT = { timeout: 60_000 }

export const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds))

// Calls body with a prefix and deletes what begins with it.
export async function named(body) {
  const prefix = 't' + randomUUID().replaceAll('-', '') + ':'
  try {
    await body(prefix)
  } finally {
    const client = await createClient({ url: URL }).connect()
    for await (const keys of client.scanIterator({ MATCH: prefix + '*', COUNT: 1000 })) {
      if (keys.length > 0) await client.unlink(keys)
    }
    client.destroy()
  }
}
