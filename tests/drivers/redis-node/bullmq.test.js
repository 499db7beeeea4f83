// BullMQ: its scripts add, move, delay, retry and count jobs, and its streams tell of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq'

import { LIMIT, URL, named } from './common.js'

const url = new globalThis.URL(URL)
const connection = {
  host: url.hostname,
  port: Number(url.port || 6379),
  username: decodeURIComponent(url.username) || undefined,
  password: decodeURIComponent(url.password) || undefined,
  db: Number(url.pathname.slice(1) || 0),
  maxRetriesPerRequest: null,
}

// A queue, its events and a worker that runs `work`, all with a prefix of their own.
function withQueue(name, work, body, options = {}) {
  test('BullMQ: ' + name, LIMIT, () => named(async (prefix) => {
    const queue = new Queue('work', { connection, prefix })
    const events = new QueueEvents('work', { connection, prefix })
    const worker = new Worker('work', work, { connection, prefix, concurrency: 5, ...options })
    try {
      await Promise.all([events.waitUntilReady(), worker.waitUntilReady()])
      await body(queue, events, prefix)
    } finally {
      await worker.close(true)
      await events.close()
      await queue.close()
    }
  }))
}

withQueue('jobs are done and counted', async (job) => job.data.n * 2, async (queue, events) => {
  const jobs = await queue.addBulk(
    Array.from({ length: 100 }, (_, n) => ({ name: 'double', data: { n } })),
  )
  const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 30_000)))
  assert.deepEqual(results, Array.from({ length: 100 }, (_, n) => n * 2))
  const counts = await queue.getJobCounts('completed', 'failed', 'waiting', 'active')
  assert.deepEqual(counts, { completed: 100, failed: 0, waiting: 0, active: 0 })
  const [job] = await queue.getCompleted(0, 0)
  await job.remove()
  assert.equal(await queue.getCompletedCount(), 99)
})

withQueue('a delayed job waits', async () => Date.now(), async (queue, events) => {
  const began = Date.now()
  const job = await queue.add('later', {}, { delay: 500 })
  assert.equal(await job.getState(), 'delayed')
  const ended = await job.waitUntilFinished(events, 30_000)
  assert.ok(ended - began >= 480, `${ended - began} ms`)
})

withQueue('a job that fails is tried again', async (job) => {
  if (job.attemptsMade < 2) throw new Error('not yet')
  return job.attemptsMade
}, async (queue, events) => {
  const options = { attempts: 5, backoff: { type: 'fixed', delay: 50 } }
  const job = await queue.add('stubborn', {}, options)
  assert.equal(await job.waitUntilFinished(events, 30_000), 2)
  const hopeless = await queue.add('hopeless', {}, { attempts: 1 })
  await assert.rejects(hopeless.waitUntilFinished(events, 30_000), /not yet/)
  assert.equal(await queue.getFailedCount(), 1)
})

withQueue('priorities, duplicates and pause', async (job) => {
  await job.updateProgress(50)
  await job.log('a line')
  return job.data
}, async (queue, events) => {
  await queue.pause()
  const order = []
  events.on('completed', ({ jobId }) => order.push(jobId))
  await queue.add('p', 1, { jobId: 'low', priority: 10 })
  await queue.add('p', 2, { jobId: 'high', priority: 1 })
  const same = await queue.add('p', 3, { jobId: 'low', priority: 1 })
  assert.equal(same.id, 'low')
  await queue.resume()
  await same.waitUntilFinished(events, 30_000)
  assert.deepEqual(order.sort(), ['high', 'low'])
  assert.deepEqual((await queue.getJobLogs('low')).logs, ['a line'])
}, { concurrency: 1 })

withQueue('a parent waits for its children', async (job) => {
  const children = Object.values(await job.getChildrenValues())
  return children.length > 0 ? children.reduce((sum, n) => sum + n, 0) : job.data
}, async (queue, events, prefix) => {
  const flow = new FlowProducer({ connection, prefix })
  const child = (n) => ({ name: 'child', queueName: 'work', data: n })
  const tree = await flow.add({
    name: 'parent', queueName: 'work', data: 0, children: [child(1), child(2), child(3)],
  })
  assert.equal(await tree.job.waitUntilFinished(events, 30_000), 6)
  await flow.close()
})

withQueue('a repeated job comes again', async () => 'tick', async (queue, events) => {
  let ticks = 0
  const twice = new Promise((done) => events.on('completed', () => ++ticks === 2 && done()))
  await queue.upsertJobScheduler('clock', { every: 200 })
  await twice
  await queue.removeJobScheduler('clock')
  await queue.obliterate({ force: true })
})
