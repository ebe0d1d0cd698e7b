import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from 'sluicegate'
import { readRateLimitFields } from 'sluicegate-testkit/service/rate-limit-fields.js'
import { runService, TWO_POLICIES } from 'sluicegate-testkit/service/running-service.js'

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

async function ask(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, init)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> }
}

function post(url: string, value: unknown): Promise<Answer> {
  return ask(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) })
}

test('1,000 requests at once against a burst of 100: exactly 100 are allowed', async (t) => {
  const { url, engine } = await runService(t, undefined, { clock: manualClock(0) })
  const answers = await Promise.all(Array.from({ length: 1_000 }, () => ask(`${url}/v1/take?policy=burst&key=alice`)))
  const statuses = answers.map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 100)
  assert.equal(statuses.filter((status) => status === 429).length, 900)
  assert.deepEqual(engine.policy('burst')?.counts, { allowed: 100, denied: 900, impossible: 0, peeks: 0 })
})

test('an allowed take is 200 with the decision and the RateLimit fields', async (t) => {
  const { url } = await runService(t, undefined, { clock: manualClock(0) })
  const { status, headers, body } = await ask(`${url}/v1/take?policy=burst&key=alice&cost=50`)
  assert.equal(status, 200)
  assert.equal(headers.get('content-type'), 'application/json')
  assert.deepEqual(body, {
    allowed: true,
    policy: 'burst',
    limit: 100,
    remaining: 50,
    retryAfterMs: 0,
    resetAfterMs: 30_000,
    source: 'memory',
  })
  assert.deepEqual(readRateLimitFields(headers), { name: 'burst', q: 100, w: 60, r: 50, t: 30 })
  assert.equal(headers.has('retry-after'), false)
})

test('a denied take is 429 with Retry-After, and at that time the same request passes', async (t) => {
  const clock = manualClock(0)
  const { url } = await runService(t, undefined, { clock })
  const take = `${url}/v1/take?policy=burst&key=alice&cost=60`
  await ask(take)
  const { status, headers, body } = await ask(take)
  assert.equal(status, 429)
  assert.equal(body.allowed, false)
  assert.equal(body.retryAfterMs, 12_000)
  assert.equal(headers.get('retry-after'), '12')
  assert.ok(readRateLimitFields(headers).t <= 12)
  clock.advance(11_999)
  assert.equal((await ask(take)).status, 429)
  clock.advance(1)
  assert.equal((await ask(take)).status, 200)
})

test('a denial of less than a second has Retry-After: 1', async (t) => {
  const { url } = await runService(t, undefined, { clock: manualClock(0) })
  await ask(`${url}/v1/take?policy=spaced&key=alice`)
  const { status, headers, body } = await ask(`${url}/v1/take?policy=spaced&key=alice`)
  assert.deepEqual([status, body.retryAfterMs, headers.get('retry-after')], [429, 200, '1'])
})

test('an impossible cost is 422, null in JSON, without Retry-After, and charges nothing', async (t) => {
  const { url } = await runService(t, undefined, { clock: manualClock(0) })
  const { status, headers, body } = await ask(`${url}/v1/take?policy=burst&key=alice&cost=101`)
  assert.equal(status, 422)
  assert.deepEqual([body.allowed, body.retryAfterMs, body.impossible, body.remaining], [false, null, true, 100])
  assert.equal(headers.has('retry-after'), false)
  readRateLimitFields(headers)
})

test('a take can be posted as JSON', async (t) => {
  const { url } = await runService(t, undefined, { clock: manualClock(0) })
  const { status, body } = await post(`${url}/v1/take`, { policy: 'burst', key: 'älice/€', cost: 7 })
  assert.deepEqual([status, body.remaining], [200, 93])
  const same = await ask(`${url}/v1/peek?policy=burst&key=${encodeURIComponent('älice/€')}`)
  assert.equal(same.body.remaining, 93, 'it is the same key in a query string')
})

test('a key of 1,024 units passes in every form', async (t) => {
  const { url } = await runService(t, undefined, { clock: manualClock(0) })
  for (const [i, key] of ['x'.repeat(1_024), '€'.repeat(1_024), '😀'.repeat(512)].entries()) {
    assert.equal((await ask(`${url}/v1/take?policy=burst&key=${encodeURIComponent(key)}`)).status, 200)
    assert.equal((await post(`${url}/v1/take`, { policy: 'burst', key })).body.remaining, 98, `key ${i}`)
  }
})

test('a peek takes nothing and is always 200', async (t) => {
  const { url } = await runService(t, undefined, { clock: manualClock(0) })
  const peek = `${url}/v1/peek?policy=burst&key=alice`
  for (let i = 0; i < 3; i++) assert.equal((await ask(`${peek}&cost=100`)).body.allowed, true)
  await ask(`${url}/v1/take?policy=burst&key=alice&cost=100`)
  const { status, headers, body } = await post(`${url}/v1/peek`, { policy: 'burst', key: 'alice' })
  assert.deepEqual([status, body.allowed, body.retryAfterMs], [200, false, 600])
  assert.equal(headers.has('retry-after'), false)
  assert.equal((await ask(`${peek}&cost=101`)).body.impossible, true)
})

test('keys are limited each by itself, and policies too', async (t) => {
  const { url } = await runService(t, undefined, { clock: manualClock(0) })
  for (const key of ['alice', 'bob', '__proto__', 'constructor']) {
    assert.equal((await ask(`${url}/v1/take?policy=spaced&key=${key}`)).status, 200)
    assert.equal((await ask(`${url}/v1/take?policy=spaced&key=${key}`)).status, 429)
    assert.equal((await ask(`${url}/v1/take?policy=burst&key=${key}`)).status, 200)
  }
})

test('an outage is 503 and no denial', async (t) => {
  // Without the page only requests use the engine. Closing it here causes the outage; in production only the service closes it.
  const { url, engine } = await runService(t, `${TWO_POLICIES}dashboard: { keys: off }\n`)
  engine.close()
  const { status, body } = await ask(`${url}/v1/take?policy=burst&key=alice`)
  assert.deepEqual([status, body.code], [503, 'OUTAGE'])
})

test('the probes and the metrics answer GET and HEAD', async (t) => {
  const { url } = await runService(t)
  for (const [path, text] of [
    ['/livez', 'ok\n'],
    ['/readyz', 'ready\n'],
    ['/startupz', 'started\n'],
    ['/healthcheck', 'OK'],
  ]) {
    const response = await fetch(url + path)
    assert.deepEqual([response.status, response.headers.get('cache-control'), await response.text()], [200, 'no-store', text])
    const head = await fetch(url + path, { method: 'HEAD' })
    assert.deepEqual([head.status, await head.text()], [200, ''])
  }
  await ask(`${url}/v1/take?policy=burst&key=alice`)
  const metrics = await (await fetch(`${url}/metrics`)).text()
  assert.match(metrics, /^sluicegate_decisions_total\{policy="burst",outcome="allowed"\} 1$/m)
})

test('a page of another site cannot take tokens through its visitor’s browser', async (t) => {
  const { url, engine } = await runService(t)
  const { status, body } = await ask(`${url}/v1/take?policy=burst&key=alice`, { headers: { 'sec-fetch-site': 'cross-site' } })
  assert.deepEqual([status, body.code], [403, 'CROSS_SITE'])
  assert.equal(engine.policy('burst')?.counts.allowed, 0)
})
