import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { manualClock } from 'sluicegate'
import { readConfig } from 'sluicegate-config/read-config.js'
import { longTest, RedisProcess, until } from 'sluicegate-testkit'
import { openPage } from 'sluicegate-testkit/browser/browser.js'
import { FaultProxy } from 'sluicegate-testkit/servers/fault-proxy.js'
import { runService, TWO_POLICIES } from 'sluicegate-testkit/service/running-service.js'
import { createLog } from '../log.js'
import { type Service, startService } from '../service.js'

const OFTEN = { sampleMs: 100 }
const SHOWN = `${TWO_POLICIES}dashboard: { keys: shown }\n`

/** Waits until the first policy's part of the page shows `text` for `value`. */
async function shows(page: Page, value: string, text: string): Promise<void> {
  await page
    .locator('.policy')
    .first()
    .locator(`[data-value="${value}"]`)
    .filter({ hasText: new RegExp(`^${text}$`) })
    .waitFor()
}

async function take({ url }: Service, key: string, times = 1): Promise<void> {
  for (let i = 0; i < times; i++) await fetch(`${url}/v1/take?policy=burst&key=${encodeURIComponent(key)}`)
}

function ranking(page: Page, kind: 'demand' | 'denials') {
  return page.locator('.policy').first().locator(`[data-ranking="${kind}"] li`)
}

async function textOf(locator: Locator): Promise<string> {
  return (await locator.textContent()) ?? ''
}

async function openAt(t: TestContext, yaml: string = TWO_POLICIES) {
  const service = await runService(t, yaml, { ...OFTEN, clock: manualClock(0) })
  return { service, ...(await openPage(t, service.url)) }
}

test('the page’s figures follow real takes, without console output and without requests to another host', async (t) => {
  const { service, page, complaints } = await openAt(t)
  await page.locator('#status[data-state="live"]').waitFor()
  await shows(page, 'allowed-total', '0')
  await take(service, 'alice', 104)
  await take(service, 'bob', 3)
  await fetch(`${service.url}/v1/take?policy=burst&key=carol&cost=500`)
  await shows(page, 'allowed-total', '103')
  await shows(page, 'denied-total', '4')
  await shows(page, 'impossible-total', '1')
  assert.equal(await ranking(page, 'demand').count(), 3)
  assert.match(await textOf(ranking(page, 'demand').first()), /104$/)
  assert.match(await textOf(ranking(page, 'denials').first()), /4$/)
  assert.equal(await page.locator('.policy h2').allInnerTexts().then(String), 'burst,spaced')
  assert.deepEqual(complaints, [])
})

longTest('the rates rise with takes and the chart draws them', async (t) => {
  const { service, page } = await openAt(t)
  await page.locator('.policy canvas').first().waitFor()
  const rate = page.locator('#total-allowed')
  const pouring = setInterval(() => void take(service, 'alice').catch(() => {}), 5)
  t.after(() => clearInterval(pouring))
  await rate.filter({ hasText: /[1-9]/ }).waitFor()
  // Points in the colour that stands for what was allowed: #0b7a75.
  const colours = await page.evaluate(`(() => {
    const canvas = document.querySelector('.policy canvas')
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    return data.reduce((n, red, i) => (i % 4 === 0 && red === 0x0b && data[i + 1] === 0x7a && data[i + 2] === 0x75 ? n + 1 : n), 0)
  })()`)
  assert.ok(typeof colours === 'number' && colours > 20, `${colours} points of the line`)
})

test('masked, no key is anywhere in the page or its events', async (t) => {
  const { service, page } = await openAt(t)
  const secrets = ['alice@example.org', '203.0.113.77', 'sk_live_4242']
  for (const key of secrets) await take(service, key, 2)
  await ranking(page, 'demand').nth(2).waitFor()
  const html = await page.content()
  const events = await firstEvents(service.url)
  for (const key of secrets) {
    for (const piece of [key, key.slice(0, 6), key.slice(-6)]) {
      assert.ok(!html.includes(piece), `the page has ${piece}`)
      assert.ok(!events.includes(piece), `the events have ${piece}`)
    }
  }
  assert.match(await textOf(ranking(page, 'demand').first()), /^[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}\s*2$/)
  assert.equal(await page.locator('#key-note').isVisible(), true)
})

test('shown, a key that is markup or turns text around is nothing but text', async (t) => {
  const { service, page, complaints } = await openAt(t, SHOWN)
  const markup = '<img src=x onerror="document.title=\'broken in\'"><script>document.title="broken in"</script>'
  await take(service, markup, 3)
  await take(service, 'admin\u202egnp.exe\u0000\n', 2)
  await ranking(page, 'demand').nth(1).waitFor()
  assert.equal(await textOf(ranking(page, 'demand').first().locator('bdi')), `${markup.slice(0, 80)}…`)
  assert.equal(await textOf(ranking(page, 'demand').nth(1).locator('bdi')), 'admin\\u{202e}gnp.exe\\u{0}\\u{a}')
  assert.equal(await page.locator('main img, main script').count(), 0)
  assert.equal(await page.title(), 'Sluicegate')
  assert.equal(await page.locator('#key-note').isVisible(), false)
  assert.deepEqual(complaints, [])
})

test('a page opened later shows the history', async (t) => {
  const service = await runService(t, TWO_POLICIES, { ...OFTEN, clock: manualClock(0) })
  await take(service, 'alice', 20)
  const history = JSON.parse(/event: history\ndata: (.*)\n/.exec(await firstEvents(service.url))?.[1] ?? '')
  assert.deepEqual(
    history.policies.map(({ name }: { name: string }) => name),
    ['burst', 'spaced'],
  )
  assert.equal(history.policies[0].allowed.length, history.atS.length)
})

longTest('when the service ends, the page says so', async (t) => {
  const { service, page } = await openAt(t)
  await page.locator('#status[data-state="live"]').waitFor()
  await service.stop()
  await page.locator('#status[data-state="lost"]').waitFor()
  assert.match(await textOf(page.locator('#status')), /Connection lost/)
})

for (const colorScheme of ['light', 'dark'] as const) {
  longTest(`at a phone’s width nothing sticks out, and text stands out from its ground (${colorScheme})`, async (t) => {
    const service = await runService(t, SHOWN, { ...OFTEN, clock: manualClock(0) })
    await take(service, 'k'.repeat(200), 2)
    const { page } = await openPage(t, service.url, { viewport: { width: 360, height: 740 }, colorScheme })
    await ranking(page, 'demand').first().waitFor()
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
    for (const selector of ['h2', '.description', 'dt', 'dd.allowed', 'dd.denied', 'li bdi', 'footer p']) {
      const contrast = await contrastOf(page, selector)
      assert.ok(contrast >= 4.5, `${selector}: contrast ${contrast.toFixed(2)}`)
    }
  })
}

longTest('the page shows each part of an all-of with the denials for which it was binding', async (t) => {
  const parts = '[{ algorithm: gcra, limit: 5, window: 1s, name: rate }, { algorithm: fixed-window, limit: 2, window: day, name: quota }]'
  const { service, page, complaints } = await openAt(t, TWO_POLICIES.replace('burst:', `burst: { all-of: ${parts} }\n  bucket:`))
  await take(service, 'alice', 5)
  const rows = page.locator('.policy').first().locator('.parts li')
  await rows.nth(1).filter({ hasText: '3 denied' }).waitFor()
  assert.deepEqual(await rows.evaluateAll((items) => items.map(({ children }) => Array.from(children, ({ textContent }) => textContent))), [
    ['rate', 'gcra, 5 per 1s, burst 5', '0 denied'],
    ['quota', 'fixed-window, 2 per day in UTC', '3 denied'],
  ])
  assert.equal(await page.locator('.policy').nth(1).locator('.parts').isVisible(), false)
  assert.deepEqual(complaints, [])
})

longTest('each chart has a text in its place, and each figure a name', async (t) => {
  const { service, page } = await openAt(t)
  await take(service, 'alice', 2)
  await shows(page, 'allowed-total', '2')
  assert.match(
    (await page.locator('.policy .chart').first().getAttribute('aria-label')) ?? '',
    /burst: now .* allowed and .* denied a second/,
  )
  assert.equal(await textOf(page.getByRole('heading', { level: 1 })), 'Sluicegate')
  assert.equal(await textOf(page.getByRole('status')), 'Live')
  assert.equal(await page.locator('html').getAttribute('lang'), 'en')
})

const ADMIN = TWO_POLICIES.replace('port: 0', 'port: 0, admin: "127.0.0.1:0"')
const POLICY_NAMES = ['burst', 'spaced']

longTest('a key is looked up by keyboard, shows its state in each policy, and Escape closes it', async (t) => {
  const { service, page, complaints } = await openAt(t)
  await take(service, 'alice', 30)
  await page.locator('#status[data-state="live"]').waitFor()
  await page.keyboard.press('/')
  assert.equal(await page.evaluate('document.activeElement.id'), 'key')
  assert.notEqual(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'none')
  await page.keyboard.type('alice')
  await page.keyboard.press('Enter')
  const rows = page.locator('#key-states .state')
  await rows.nth(1).waitFor()
  assert.deepEqual(await page.locator('.state-name').allTextContents(), POLICY_NAMES)
  assert.match(await textOf(rows.first()), /allowed.*70 of 100 left/)
  await page.keyboard.press('Escape')
  assert.equal(await page.locator('#key-panel').isVisible(), false)
  assert.equal(await page.evaluate('document.activeElement.id'), 'key')
  await page.keyboard.press('Escape')
  assert.notEqual(await page.evaluate('document.activeElement.id'), 'key')
  assert.deepEqual(complaints, [])
})

longTest('a key is reset and blocked on the page of the admin listener, and nowhere else', async (t) => {
  const service = await runService(t, ADMIN, { ...OFTEN, clock: manualClock(0) })
  await take(service, 'alice', 105)
  const { page, complaints } = await openPage(t, service.urls.get('admin') ?? assert.fail())
  // A key of a list opens the lookup.
  await ranking(page, 'demand').first().locator('button').click()
  const first = page.locator('#key-states .state').first()
  await first.filter({ hasText: 'denied for' }).waitFor()
  await page.locator('#key-verbs').waitFor()
  await page.locator('#key-reset').click()
  await first.filter({ hasText: '100 of 100 left' }).waitFor()
  assert.equal(await textOf(page.locator('#key-message')), 'Reset in all policies')
  await page.locator('#key-policy').selectOption('burst')
  await page.locator('#key-block').click()
  await first.filter({ hasText: 'denied for 10 min' }).waitFor()
  assert.match(await textOf(page.locator('#key-states .state').nth(1)), /allowed/)
  assert.equal((await fetch(`${service.url}/v1/take?policy=burst&key=alice`)).status, 429)
  assert.deepEqual(complaints, [])

  const other = await openPage(t, service.url)
  await shows(other.page, 'denied-total', '6')
  await other.page.locator('#key').fill('alice')
  await other.page.keyboard.press('Enter')
  await other.page.locator('#key-states .state').first().waitFor()
  assert.equal(await other.page.locator('#key-verbs').isVisible(), false)
  const change = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"policy":"burst","key":"alice"}' }
  assert.equal((await fetch(`${service.url}/v1/reset`, change)).status, 403)
})

longTest('a key of a list keeps its element and its focus while figures change and others pass it', async (t) => {
  const service = await runService(t, ADMIN, { ...OFTEN, clock: manualClock(0) })
  await take(service, 'alice', 3)
  await take(service, 'bob', 2)
  const { page, complaints } = await openPage(t, service.urls.get('admin') ?? assert.fail())
  const keys = () => ranking(page, 'demand').locator('bdi').allTextContents()
  const bob = ranking(page, 'demand').nth(1).locator('button')
  await bob.focus()
  await page.evaluate('document.activeElement.dataset.marked = "yes"')
  await take(service, 'bob', 5)
  await ranking(page, 'demand').first().filter({ hasText: 'bob' }).waitFor()
  assert.deepEqual(await keys(), ['bob', 'alice'])
  assert.equal(await page.evaluate('document.activeElement.dataset.marked'), 'yes')
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'bob')
  assert.equal(await page.locator('.policy').first().locator('[data-ranking="demand"] li').count(), 2)
  assert.deepEqual(complaints, [])
})

test('a page of another site cannot look up a key, and a wrong key is refused', async (t) => {
  const { url } = await runService(t)
  const ask = (body: string, headers: Record<string, string> = {}) =>
    fetch(`${url}/key`, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body }).then(({ status }) => status)
  assert.equal(await ask('{"key":"alice"}', { 'Sec-Fetch-Site': 'cross-site' }), 403)
  assert.equal(await ask('{"key":"alice"}', { 'Content-Type': 'text/plain' }), 415)
  assert.equal(await ask(`{"key":"${'k'.repeat(2_000)}"}`), 400)
  assert.equal(await ask('{"key":"alice"}'), 200)
})

longTest('a failed reload and the differences of a candidate are on the page, with faults for the admin alone', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [path, candidate] = [join(folder, 'live.yaml'), join(folder, 'next.yaml')]
  writeFileSync(path, `${ADMIN}candidate: next.yaml\n`)
  writeFileSync(candidate, TWO_POLICIES.replace('limit: 100, window: 1m, burst: 100', 'limit: 2, window: 1m'))
  const source = { path, read: () => readConfig(path) }
  const options = { ...OFTEN, clock: manualClock(0), source, log: createLog('silent'), watchMs: 3_600_000 }
  const service = await startService(source.read(), options)
  t.after(() => service.stop({ drainMs: 0, finishMs: 0 }))
  const admin = await openPage(t, service.urls.get('admin') ?? assert.fail())
  const phone = await openPage(t, service.url, { viewport: { width: 360, height: 740 }, colorScheme: 'dark' })
  await take(service, 'alice', 6)
  const row = admin.page.locator('.diff').first()
  await row.locator('[data-diff="deny"]').filter({ hasText: /^4/ }).waitFor()
  assert.match(await textOf(row), /^burst.*Same2 .*alice4$/)
  assert.equal(await phone.page.locator('.chip').first().filter({ hasText: 'alice' }).count(), 0)

  writeFileSync(path, 'policies: { burst: { algorithm: guess } }')
  await assert.rejects(async () => service.reloader?.reload('admin'))
  await admin.page.locator('#stale-faults').filter({ hasText: 'policies.burst.algorithm' }).waitFor()
  await phone.page.locator('#stale').filter({ hasText: 'see the log' }).waitFor()
  assert.equal(await phone.page.locator('#stale-faults').isVisible(), false)
  await phone.page.locator('#key').fill('k'.repeat(300))
  await phone.page.keyboard.press('Enter')
  await phone.page.locator('#key-states .state').nth(1).waitFor()
  assert.equal(await phone.page.evaluate('document.documentElement.scrollWidth'), 360)
  for (const selector of ['.badge', '#key-title', '.split-figures dt', '.chip bdi', '#stale-text', '.table-text']) {
    const contrast = await contrastOf(phone.page, selector)
    assert.ok(contrast >= 4.5, `${selector}: contrast ${contrast.toFixed(2)}`)
  }
  assert.deepEqual([admin.complaints, phone.complaints], [[], []])
})

longTest('the time of decisions is shown as percentiles, and tables with their memory', async (t) => {
  const { service, page } = await openAt(t)
  await take(service, 'alice', 20)
  await page
    .locator('#latency-p999')
    .filter({ hasText: /^[\d.]+ (ns|µs|ms)$/ })
    .waitFor()
  assert.match((await page.locator('#latency-chart').getAttribute('aria-label')) ?? '', /in the median/)
  assert.match(await textOf(page.locator('.table-text').first()), /^Table: .*% of room for 1.6M keys, .* [KM]iB$/)
})

longTest('in a region the page shows who holds what of each budget, and that the home is out', async (t) => {
  const [home, west] = await Promise.all([RedisProcess.start(), RedisProcess.start()])
  const ocean = await FaultProxy.before(home)
  t.after(async () => {
    await ocean.stop()
    await Promise.all([home, west].map((server) => server.stop()))
  })
  const policies = `burst: { algorithm: fixed-window, limit: 1000, window: day }\n  spaced: { algorithm: gcra, limit: 5, window: 1s, burst: 1 }`
  const yaml = `listen: { port: 0 }\npolicies:\n  ${policies}
storage: { redis: { url: "${west.url}", timeout: 5s }, home: { url: "${ocean.url}", region: west, share: 0.25, timeout: 5s } }
`
  const service = await runService(t, yaml, OFTEN)
  const { page, complaints } = await openPage(t, service.url)
  await take(service, 'alice', 3)
  const [first, second] = [page.locator('#region-policies .state').first(), page.locator('#region-policies .state').nth(1)]
  await first.filter({ hasText: '1 region, share 25%' }).waitFor()
  assert.match(await textOf(first), /^bursttokensholds tokens ahead of need[\d.,]+ tokens renewed a second/)
  assert.match(await textOf(second), /^spacedhomefewer than 20 tokens are not split/)
  assert.equal(await textOf(page.locator('#region-title')), 'Region west')
  assert.equal(await textOf(page.locator('#region-home')), 'home reachable')

  await page.locator('#key').fill('alice')
  // Tokens on their way to the region are neither here nor there.
  await until('what is left is shown', async () => {
    await page.locator('#key').press('Enter')
    return (await page.locator('#key-states').textContent())?.includes('997 of 1,000 left in this region and at the home') === true
  })
  assert.match(await textOf(page.locator('#key-states .state').nth(1)), /left at the home/)

  ocean.set({ kind: 'cut' })
  const pouring = setInterval(() => void take(service, 'bob').catch(() => {}), 20)
  t.after(() => clearInterval(pouring))
  await page.locator('#region-home').filter({ hasText: 'home out: the region goes on with its share' }).waitFor()
  await first.filter({ hasText: 'tokens, home out' }).waitFor()
  await page.setViewportSize({ width: 360, height: 740 })
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360)
  assert.deepEqual(complaints, [])
})

/** The first events of a page: the history, then one sample. */
async function firstEvents(url: string): Promise<string> {
  const stop = new AbortController()
  const response = await fetch(`${url}/events`, { signal: stop.signal })
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    if (/\n\ndata: .*\n\n/.test(text)) break
  }
  stop.abort()
  return text
}

/** WCAG 2.2's contrast ratio of an element's text against the nearest ground that is painted behind it. */
function contrastOf(page: Page, selector: string): Promise<number> {
  return page.evaluate(`(() => {
    const channels = (colour) => colour.match(/[\\d.]+/g).map(Number)
    const luminance = (colour) => {
      const [r, g, b] = channels(colour).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    const element = document.querySelector(${JSON.stringify(selector)})
    const bar = element.parentElement.querySelector('.bar')
    let behind = bar ?? element
    while (channels(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement
    const [low, high] = [luminance(getComputedStyle(element).color), luminance(getComputedStyle(behind).backgroundColor)].sort((a, b) => a - b)
    return (high + 0.05) / (low + 0.05)
  })()`)
}

interface Label {
  readonly text: string
  /** Where it ends, in points of the screen. */
  readonly right: number
  readonly canvasWidth: number
}

/** All labels that charts draw from now on, until there are some of both axes. */
const LABELS = `new Promise((resolve) => {
  const labels = []
  const { fillText } = CanvasRenderingContext2D.prototype
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const width = this.measureText(text).width
    const right = x + (this.textAlign === 'center' ? width / 2 : this.textAlign === 'right' ? 0 : width)
    if (this.canvas.closest('.policy')) labels.push({ text, right, canvasWidth: this.canvas.width })
    fillText.call(this, text, x, y)
    if (labels.length > 40) resolve(labels)
  }
})`

/** The labels at 360 pixels, where the service's clock stands at that time. */
async function labelsAt(t: TestContext, time: string): Promise<Label[]> {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse(time) })
  const { url } = await runService(t, undefined, { sampleMs: 50, clock: manualClock(0) })
  const { page } = await openPage(t, url, { viewport: { width: 360, height: 800 }, timezoneId: 'UTC', locale: 'en-US' })
  return page.evaluate(LABELS)
}

longTest('the labels of the axis of an idle policy are quarters, as its lines are', async (t) => {
  const labels = await labelsAt(t, '2026-01-01T12:00:30Z')
  const amounts = new Set(labels.map(({ text }) => text).filter((text) => !text.includes(':')))
  assert.deepEqual([...amounts], ['0', '0.25', '0.5', '0.75', '1'])
})

longTest('the last label of time is whole, however near to the edge, and midnight is 00:00:00', async (t) => {
  const labels = (await labelsAt(t, '2026-01-01T00:00:01Z')).filter(({ text }) => text.includes(':'))
  assert.deepEqual([...new Set(labels.map(({ text }) => text))], ['23:59:00', '00:00:00'])
  for (const { text, right, canvasWidth } of labels) assert.ok(right <= canvasWidth, `${text} ends at ${right} of ${canvasWidth}`)
})
