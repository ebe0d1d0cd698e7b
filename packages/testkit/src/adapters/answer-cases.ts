import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, fixedWindow, manualClock, tokenBucket } from '../../../sluicegate/dist/index.js'
import { address, apiKey } from '../../../sluicegate/dist/keys/index.js'
import type { Harness, StartApp } from './harness.js'
import { promisedLimiter } from './harness.js'
import { ask, crowded, singleSocket } from './http-client.js'

const REQUESTS = 50
/** How many of them pass. */
const PASSING = 41

/** What clients see of requests that pass and requests that do not. */
export function answerCases<Request>({ name, limitsUnknown, limitsOptions }: Harness<Request>, start: StartApp<Request>): void {
  test(`${name}: requests pass with headers, then are denied with a problem, and pass after Retry-After`, async (t) => {
    const clock = manualClock()
    const limiter = createLimiter(tokenBucket({ name: 'burst', limit: 2, window: '1h' }), { clock })
    const { port, site } = await start(t, { all: limiter })
    const first = await ask(port, '/ok')
    assert.deepEqual([first.status, first.text], [200, 'ok'])
    assert.equal(first.headers['ratelimit-policy'], '"burst";q=2;w=3600')
    assert.equal(first.headers.ratelimit, '"burst";r=1;t=1800')
    assert.equal(first.headers['retry-after'], undefined)
    await ask(port, '/ok')
    const denied = await ask(port, '/ok')
    assert.deepEqual([denied.status, site.handled], [429, 2])
    assert.equal(denied.headers['ratelimit-policy'], '"burst";q=2;w=3600')
    assert.equal(denied.headers.ratelimit, '"burst";r=0;t=1800')
    assert.equal(denied.headers['retry-after'], '1800')
    assert.match(denied.headers['content-type'] ?? '', /^application\/problem\+json/)
    assert.equal(denied.headers['cache-control'], 'no-store')
    assert.deepEqual(JSON.parse(denied.text), {
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Quota exceeded',
      status: 429,
      detail: 'Try again in 1800 seconds.',
      'violated-policies': ['burst'],
    })
    clock.advance(Number(denied.headers['retry-after']) * 1000)
    assert.equal((await ask(port, '/ok')).status, 200)
    assert.deepEqual(site.errors, [])
  })

  test(`${name}: a request without a key gets a problem and no stack`, async (t) => {
    const { port, site } = await start(t, {
      all: { policy: fixedWindow({ limit: 2, window: 'day' }), key: apiKey(), onMissingKey: 'deny' },
    })
    const denied = await ask(port, '/ok')
    assert.deepEqual([denied.status, denied.headers['www-authenticate'], site.handled], [401, 'ApiKey', 0])
    assert.match(denied.headers['content-type'] ?? '', /^application\/problem\+json/)
    assert.deepEqual(Object.keys(JSON.parse(denied.text)), ['type', 'title', 'status', 'detail'])
    assert.equal((await ask(port, '/ok', { headers: { 'x-api-key': 'a' } })).status, 200)
    assert.deepEqual(site.errors, [])
  })

  test(`${name}: the argument may be a policy, and the key is the address of the socket`, async (t) => {
    const { port } = await start(t, { all: fixedWindow({ limit: 2, window: 'day' }) })
    const headers = { 'x-forwarded-for': '203.0.113.1' }
    const statuses = [await ask(port, '/ok'), await ask(port, '/ok', { headers }), await ask(port, '/ok', { headers })]
    assert.deepEqual(
      statuses.map(({ status }) => status),
      [200, 200, 429],
    )
  })

  test(`${name}: behind a trusted proxy clients are counted separately`, async (t) => {
    const { port } = await start(t, { all: { policy: fixedWindow({ limit: 1, window: 'day' }), key: address({ trustedHops: 1 }) } })
    const from = (client: string) => ask(port, '/ok', { headers: { 'x-forwarded-for': `6.6.6.6, ${client}` } })
    assert.deepEqual(
      [await from('203.0.113.1'), await from('203.0.113.1'), await from('203.0.113.2')].map(({ status }) => status),
      [200, 429, 200],
    )
  })

  test(`${name}: HEAD is limited as GET is, and its denial has no body`, async (t) => {
    const { port } = await start(t, { all: fixedWindow({ limit: 2, window: 'day' }) })
    assert.equal((await ask(port, '/ok')).status, 200)
    const passed = await ask(port, '/ok', { method: 'HEAD' })
    assert.deepEqual([passed.status, passed.text], [200, ''])
    assert.match(passed.headers.ratelimit as string, /r=0/)
    const denied = await ask(port, '/ok', { method: 'HEAD' })
    assert.deepEqual([denied.status, denied.text], [429, ''])
    assert.ok(Number(denied.headers['retry-after']) > 0)
  })

  test(`${name}: OPTIONS is ${limitsOptions ? 'limited as others are' : 'answered before limits are asked'}`, async (t) => {
    const { port, site } = await start(t, { all: fixedWindow({ limit: 1, window: 'day' }) })
    await ask(port, '/ok', { method: 'OPTIONS' })
    const then = await ask(port, '/ok', { method: 'OPTIONS' })
    assert.equal(then.status === 429, limitsOptions)
    assert.deepEqual(site.errors, [])
  })

  test(`${name}: what is not found is ${limitsUnknown ? 'limited as well' : 'not limited'}`, async (t) => {
    const { port } = await start(t, { all: { policy: fixedWindow({ limit: 1, window: 'day' }), counts: 'failures' } })
    const first = await ask(port, '/nothing')
    assert.equal(first.status, 404)
    assert.equal(first.headers.ratelimit !== undefined, limitsUnknown)
    assert.equal((await ask(port, '/nothing')).status, limitsUnknown ? 429 : 404)
  })

  test(`${name}: a connection goes on after a denial, also of a request with a long body`, async (t) => {
    const { port } = await start(t, { all: fixedWindow({ limit: 1, window: 'day' }) })
    const agent = singleSocket()
    t.after(() => agent.destroy())
    let sockets = 0
    const connect = agent.createConnection.bind(agent)
    agent.createConnection = (...given) => {
      sockets++
      return connect(...given)
    }
    const body = 'x'.repeat(200_000)
    const replies = [
      await ask(port, '/ok', { agent }),
      await ask(port, '/ok', { agent, method: 'POST', body, headers: { 'content-length': body.length, 'content-type': 'text/plain' } }),
      await ask(port, '/ok', { agent }),
    ]
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 429, 429],
    )
    assert.equal(sockets, 1)
  })

  for (const [kind, later] of [
    ['at once', false],
    ['later', true],
  ] as const) {
    test(`${name}: of ${REQUESTS} parallel requests exactly as many pass as may, by a limiter that answers ${kind}`, async (t) => {
      const limiter = createLimiter(fixedWindow({ limit: PASSING, window: 'day' }))
      const { port, site } = await start(t, { all: later ? promisedLimiter(limiter) : limiter })
      const agent = crowded()
      t.after(() => agent.destroy())
      const replies = await Promise.all(Array.from({ length: REQUESTS }, () => ask(port, '/ok', { agent })))
      const passed = replies.filter(({ status }) => status === 200).length
      const denied = replies.filter(({ status }) => status === 429).length
      assert.deepEqual([passed, denied, site.handled], [PASSING, REQUESTS - PASSING, PASSING])
      assert.deepEqual(site.errors, [])
    })
  }
}
