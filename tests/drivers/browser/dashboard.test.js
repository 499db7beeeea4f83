// The dashboard in a real browser, in front of a real gateway under load. One browser and one story:
// what a test does, the next ones may see.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'

import pg from 'pg'
import { chromium } from 'playwright-core'

const { DASHBOARD, ADMIN, ADMIN_PASSWORD, STATS, STATS_PASSWORD, SCREENSHOTS } = process.env
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const LIMIT = { timeout: 120_000 }
const PATIENCE_MS = 60_000
const PAGES = ['overview', 'pools', 'queries', 'caches', 'replication', 'redis', 'procedures', 'events', 'advice']

let browser
let page
// What no page may do: errors, violations of the policy, requests to anywhere else.
const complaints = []
// Set while the gateway is down or refuses on purpose: the browser says so in its console.
let expectsErrors = false

function watch(one) {
  one.on('console', (said) => {
    if (['error', 'warning'].includes(said.type()) && !expectsErrors) complaints.push(said.text())
  })
  one.on('pageerror', (error) => complaints.push(String(error)))
  one.on('request', (request) => {
    if (!request.url().startsWith(DASHBOARD)) complaints.push(`request to ${request.url()}`)
  })
  one.setDefaultTimeout(PATIENCE_MS)
}

before(async () => {
  const args = process.getuid() === 0 ? ['--no-sandbox'] : []
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'
  browser = await chromium.launch({ executablePath, args })
  page = await (await browser.newContext({ viewport: { width: 1280, height: 860 } })).newPage()
  watch(page)
})

after(async () => {
  await browser?.close()
})

const client = async (options = {}) => {
  const one = new pg.Client({ connectionTimeoutMillis: PATIENCE_MS, ...options })
  // A client that is ended on purpose says so.
  one.on('error', () => {})
  await one.connect()
  return one
}

async function console_(command) {
  const one = await client({ database: 'pondage', user: ADMIN, password: ADMIN_PASSWORD })
  try {
    return (await one.query(command)).rows
  } finally {
    await one.end()
  }
}

async function until(what, look) {
  const end = Date.now() + PATIENCE_MS
  let last
  while (Date.now() < end) {
    last = await look()
    if (last) return last
    await pause(200)
  }
  assert.fail(`never: ${what}`)
}

async function logIn(one, user, password) {
  await one.getByLabel('User').fill(user)
  await one.getByLabel('Password').fill(password)
  await one.getByRole('button', { name: 'Log in' }).click()
}

const open = async (name) => {
  await page.evaluate((name) => { location.hash = `#/${name}` }, name)
  await page.waitForSelector(`nav a[href="#/${name}"][aria-current=page]`)
}

// The rows of a table as the page shows them: objects by the columns' labels.
const rows = (caption, one = page) => one.evaluate((caption) => {
  const heads = [...document.querySelectorAll('h2')]
  const head = heads.find((head) => head.firstChild.textContent.trim() === caption)
  if (!head) return null
  const table = head.closest('section').querySelector('table')
  if (!table) return []
  return [...table.querySelectorAll('tbody tr')].map((row) => Object.fromEntries(
    [...row.querySelectorAll('td[data-label]')].map((cell) => [cell.dataset.label, cell.innerText.trim()])))
}, caption)

const figure = (text) => Number(text.replaceAll(',', ''))

async function load(runs) {
  const clients = await Promise.all(Array.from({ length: 8 }, () => client()))
  await Promise.all(clients.map(async (one) => {
    for (let run = 0; run < runs; run += 1) {
      await one.query({ name: 'shelf', text: 'select n from shelf where id = $1', values: [run % 20] })
    }
  }))
  await Promise.all(clients.map((one) => one.end()))
}

test('a wrong password is told, a right one lets in', LIMIT, async () => {
  expectsErrors = true
  await page.goto(DASHBOARD)
  await logIn(page, ADMIN, 'wrong')
  await page.getByRole('alert').waitFor()
  assert.match(await page.getByRole('alert').innerText(), /password authentication failed for user "admin"/)
  await logIn(page, ADMIN, ADMIN_PASSWORD)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expectsErrors = false
  await page.locator('.facts').waitFor()
  assert.match(await page.locator('.health').innerText(), /^All is well: \d+ clients share \d+ servers\.$/)
})

test('every figure is the console\'s', LIMIT, async () => {
  await load(200)
  await open('queries')
  await until('the page shows what the console shows', async () => {
    const shown = await rows('Statements by total time')
    const said = await console_('SHOW QUERIES')
    const calls = (list, text, name) => new Map(list.map((row) => [row[text], Number(figure(String(row[name])))]))
    const [there, here] = [calls(said, 'query', 'calls'), calls(shown, 'Statement', 'Calls')]
    return there.size > 0 && there.size === here.size && [...there].every(([text, count]) => here.get(text.trim()) === count)
  })
  const shelf = (await rows('Statements by total time')).find((row) => row.Statement.includes('shelf where'))
  // The first run of each client prepares it, before its shape is known.
  assert.ok(figure(shelf.Calls) > 1500, shelf.Calls)
  await open('pools')
  await until('the pools are the console\'s', async () => {
    const shown = await rows('Pools')
    const said = await console_('SHOW POOLS')
    const of = (row) => [row.database, row.user, row.pool_mode, row.cl_active + row.cl_waiting, row.cl_waiting, row.sv_active, row.sv_idle].join()
    const [there, here] = [said.map(of), shown.map((row) => [row.Database, row.User, row.Mode, row.Clients, row.Waiting, row['Servers at work'], row.Idle].join())]
    return there.length > 0 && there.join(';') === here.join(';')
  })
})

test('the charts have the minutes that have passed', LIMIT, async () => {
  await open('overview')
  await until('the peak of the load is in the chart', async () => {
    const legend = await page.locator('.chart').first().innerText()
    const peak = /Statements\/s: [\d,.]+ at most ([\d,.]+)/.exec(legend.replaceAll('\n', ' '))
    return peak && figure(peak[1]) > 100
  })
  const drawn = await page.evaluate(() => {
    const canvas = document.querySelector('.chart canvas')
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data
    return pixels.some((value) => value > 0)
  })
  assert.ok(drawn, 'the chart is empty')
})

test('"Cache this" makes a cache, and the hit rate rises', LIMIT, async () => {
  await open('queries')
  const row = page.locator('tr', { hasText: 'shelf where' }).filter({ has: page.getByRole('button', { name: 'Cache this' }) })
  await until('the statement was judged', async () => {
    await load(5)
    return (await row.count()) > 0
  })
  await row.getByRole('button', { name: 'Cache this' }).click()
  const dialog = page.getByRole('dialog')
  assert.match(await dialog.innerText(), /CREATE CACHE IN DATABASE/)
  await dialog.getByRole('button', { name: 'Cache this' }).click()
  await dialog.waitFor({ state: 'detached' })
  await open('caches')
  await until('reads are answered from the cache', async () => {
    await load(20)
    const [shown] = (await rows('Cached statements')) ?? []
    return shown && figure(shown.Hits) > 50 && Number(shown['Hit rate'].replace(' %', '')) > 10
  })
  await until('the cache is the console\'s', async () => {
    const [shown] = await rows('Cached statements')
    const [said] = await console_('SHOW CACHES')
    return shown.Name === said.name && figure(shown.Hits) === Number(said.hits) && figure(shown.Results) === Number(said.entries)
  })
  await open('overview')
  await until('the hit rate is on the overview', async () => {
    await load(20)
    const text = await page.locator('.facts div', { hasText: 'Cache hits' }).innerText()
    return /[1-9][\d.]* %/.test(text)
  })
})

async function confirm(name) {
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name, exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
}

test('pause holds clients, resume lets them go on, end ends one', LIMIT, async () => {
  await open('pools')
  const databases = page.locator('section', { has: page.getByRole('heading', { name: 'Databases' }) })
  await databases.getByRole('button', { name: 'Pause' }).click()
  await confirm('Pause')
  await databases.getByText('paused').waitFor()
  assert.ok((await console_('SHOW DATABASES')).some((row) => row.paused === 1))
  const waits = await client({ connectionTimeoutMillis: 0 }).then((one) => one, (error) => error)
  let done = false
  const answer = waits.query('select 1').then(() => { done = true })
  await page.locator('.health.bad').waitFor()
  assert.match(await page.locator('.health').innerText(), /is paused/)
  assert.equal(done, false)
  await databases.getByRole('button', { name: 'Resume' }).click()
  await confirm('Resume')
  await answer
  await waits.end()

  const holders = await Promise.all(Array.from({ length: 5 }, (_, at) => client({ application_name: `holder ${at}` })))
  await Promise.all(holders.map((one) => one.query('begin').then(() => one.query('select 1'))))
  const other = await client()
  const waiting = other.query('select 2')
  const blocker = page.locator('tbody tr', { hasText: /holder \d/ }).first()
  await blocker.getByRole('button', { name: 'End' }).click()
  await confirm('End the client')
  await waiting
  const left = await Promise.allSettled(holders.map((one) => one.query('select 3')))
  assert.equal(left.filter((one) => one.status === 'rejected').length, 1)
  await Promise.allSettled([...holders, other].map((one) => one.end()))
})

test('what the console refuses is told, with what to do', LIMIT, async () => {
  const refused = await page.evaluate(async () => {
    const { csrf } = await (await fetch('/api/v1/session')).json()
    const headers = { 'Content-Type': 'application/json', 'X-Pondage-CSRF': csrf }
    const answer = await fetch('/api/v1/command', { method: 'POST', headers, body: '{"command":"PAUSE; RELOAD"}' })
    return [answer.status, (await answer.json()).error]
  })
  complaints.length = 0 // The browser notes each answer that is no success.
  assert.equal(refused[0], 400)
  assert.ok(refused[1].hint)
})

test('the keyboard is enough', LIMIT, async () => {
  await open('overview')
  await page.evaluate(() => document.activeElement.blur())
  const focused = () => page.evaluate(() => document.activeElement.innerText || document.activeElement.id)
  await page.keyboard.press('Tab')
  assert.equal(await focused(), 'Skip to the figures')
  await page.keyboard.press('Enter')
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main')
  for (const wanted of ['Log out', 'Overview', 'Pools']) {
    await page.keyboard.press(wanted === 'Log out' ? 'Shift+Tab' : 'Tab')
    if (wanted === 'Log out') {
      while ((await focused()) !== 'Log out') await page.keyboard.press('Shift+Tab')
    }
    assert.equal(await focused(), wanted)
  }
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Pools', exact: true }).first().waitFor()
  while ((await focused()) !== 'Pause') await page.keyboard.press('Tab')
  const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle)
  assert.equal(ring, 'solid', 'the focus can be seen')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  for (let presses = 0; presses < 6; presses += 1) {
    await page.keyboard.press('Tab')
    const inside = await page.evaluate(() => document.activeElement === document.body || document.querySelector('dialog').contains(document.activeElement))
    assert.ok(inside, 'the focus has left the dialog')
  }
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.equal(await focused(), 'Pause', 'the focus is back')
})

test('tables are sorted and filtered', LIMIT, async () => {
  await open('queries')
  const calls = async () => (await rows('Statements by total time')).map((row) => figure(row.Calls))
  const head = page.locator('section', { hasText: 'Statements by total time' }).getByRole('button', { name: 'Calls' }).first()
  await head.click()
  assert.equal(await page.locator('th[aria-sort=descending]').count(), 1)
  const down = await calls()
  assert.deepEqual(down, [...down].sort((a, b) => b - a))
  await head.click()
  const up = await calls()
  assert.deepEqual(up, [...up].sort((a, b) => a - b))
  await head.click()
})

for (const colorScheme of ['light', 'dark']) {
  test(`every page is accessible and fits 360 px, ${colorScheme}`, LIMIT, async () => {
    await page.emulateMedia({ colorScheme })
    if (SCREENSHOTS) mkdirSync(SCREENSHOTS, { recursive: true })
    for (const name of PAGES) {
      await page.setViewportSize({ width: 1280, height: 860 })
      await open(name)
      await page.waitForTimeout(300)
      if (SCREENSHOTS && ['overview', 'queries'].includes(name)) {
        await page.screenshot({ path: `${SCREENSHOTS}/dashboard-${name}-${colorScheme}.png` })
      }
      // The policy keeps scripts out that are not files of the dashboard: this one comes by the
      // protocol that drives the browser.
      await page.evaluate(AXE)
      const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }))
      const told = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(' ')}`)
      assert.deepEqual(told, [], name)
      await page.setViewportSize({ width: 360, height: 740 })
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      assert.ok(width <= 360, `${name} is ${width} px wide`)
    }
    await page.setViewportSize({ width: 1280, height: 860 })
  })
}

test('who may only look sees no buttons, and a forged command is refused', LIMIT, async () => {
  const context = await browser.newContext()
  const other = await context.newPage()
  other.setDefaultTimeout(PATIENCE_MS)
  await other.goto(DASHBOARD)
  await logIn(other, STATS, STATS_PASSWORD)
  await other.locator('.facts').waitFor()
  for (const name of PAGES) {
    await other.evaluate((name) => { location.hash = `#/${name}` }, name)
    await other.waitForSelector(`nav a[href="#/${name}"][aria-current=page]`)
    const buttons = await other.locator('button:not(.sort)').allInnerTexts()
    assert.deepEqual(buttons, ['Log out'], name)
  }
  const status = await other.evaluate(async () => {
    const { csrf } = await (await fetch('/api/v1/session')).json()
    const headers = { 'Content-Type': 'application/json', 'X-Pondage-CSRF': csrf }
    return (await fetch('/api/v1/command', { method: 'POST', headers, body: '{"command":"PAUSE"}' })).status
  })
  assert.equal(status, 403)
  await context.close()
})

test('a gateway that hangs is said to, and one that comes back goes on', LIMIT, async () => {
  await open('overview')
  const pid = Number(process.env.GATEWAY_PID)
  const health = page.locator('.health')
  process.kill(pid, 'SIGSTOP')
  try {
    await until('figures are said to be old', async () => /these figures are old/.test(await health.innerText()))
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await until('figures are new again', async () => /^All is well/.test(await health.innerText()))

  assert.deepEqual(complaints, [])
  expectsErrors = true
  process.kill(pid, 'SIGTERM')
  await until('figures are said to be old', async () => /these figures are old/.test(await health.innerText()))
  const again = spawn(process.env.GATEWAY_PROGRAM, ['serve', '-c', process.env.GATEWAY_FILE], { stdio: 'ignore' })
  try {
    // Its sessions were in its memory.
    await page.getByText('The session has ended.').waitFor()
    await logIn(page, ADMIN, ADMIN_PASSWORD)
    await until('the stream is back', async () => /^All is well/.test(await health.innerText()))
  } finally {
    again.kill('SIGTERM')
    await new Promise((resolve) => again.once('exit', resolve))
  }
  await page.getByText(/these figures are old|does not answer/).first().waitFor()
})
