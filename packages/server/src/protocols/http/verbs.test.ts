import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { manualClock } from 'sluicegate'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import type { Service } from '../../service.js'

const YAML = `
listen: { port: 0, admin: "127.0.0.1:0" }
policies:
  burst: { algorithm: token-bucket, limit: 100, window: 1m }
  narrow: { algorithm: fixed-window, limit: 3, window: 1m }
  jobs: { algorithm: concurrency, limit: 2, ttl: 30s }
`

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

async function setUp(t: TestContext, yaml = YAML) {
  const clock = manualClock(0)
  const service = await runService(t, yaml, { clock })
  const post = (path: string, value: unknown, init: RequestInit = {}) => posted(service.url + path, value, init)
  const admin = (path: string, value: unknown, init: RequestInit = {}) => posted(adminOf(service) + path, value, init)
  const left = async (policy: string, key = 'alice') => (await post('/v1/peek', { policy, key })).body.remaining
  return { service, clock, post, admin, left }
}

function adminOf({ urls }: Service): string {
  return urls.get('admin') ?? assert.fail('there is no admin listener')
}

async function posted(url: string, value: unknown, init: RequestInit = {}): Promise<Answer> {
  const headers = { 'content-type': 'application/json', ...(init.headers as Record<string, string>) }
  const response = await fetch(url, { ...init, method: 'POST', headers, body: JSON.stringify(value) })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

test('a batch of all passes together or not at all, with one status', async (t) => {
  const { post, left } = await setUp(t)
  const takes = (cost: number) => [
    { policy: 'burst', key: 'alice', cost: 10 },
    { policy: 'narrow', key: 'alice', cost },
  ]
  const passed = await post('/v1/batch', { all: true, takes: takes(2) })
  assert.deepEqual([passed.status, passed.body.allowed], [200, true])
  assert.deepEqual([await left('burst'), await left('narrow')], [90, 1])
  const denied = await post('/v1/batch', { all: true, takes: takes(2) })
  assert.deepEqual([denied.status, denied.body.allowed], [429, false])
  assert.equal((await post('/v1/batch', { all: true, takes: takes(4) })).status, 422)
  assert.deepEqual([await left('burst'), await left('narrow')], [90, 1])
})

test('a batch without all decides each by itself, and looks where it should', async (t) => {
  const { post, left } = await setUp(t)
  const { status, body } = await post('/v1/batch', {
    takes: [
      { policy: 'narrow', key: 'alice', cost: 4 },
      { policy: 'burst', key: 'alice' },
      { policy: 'burst', key: 'bob', cost: 5, peek: true },
    ],
  })
  assert.equal(status, 200)
  assert.deepEqual(
    (body.decisions as { allowed: boolean }[]).map(({ allowed }) => allowed),
    [false, true, true],
  )
  assert.deepEqual([await left('burst'), await left('burst', 'bob')], [99, 100])
})

test('a batch with a mistake anywhere takes nothing', async (t) => {
  const { post, left } = await setUp(t)
  const good = { policy: 'burst', key: 'alice' }
  for (const [bad, status] of [
    [{ policy: 'burst', key: 'x'.repeat(1_025) }, 400],
    [{ policy: 'burst', key: ['a', 'b'] }, 400],
    [{ policy: 'burst', key: 'a', cost: 0 }, 400],
    [{ policy: 'nowhere', key: 'a' }, 404],
    [{ policy: 'jobs', key: 'a' }, 400],
    ['text', 400],
  ] as const) {
    for (const all of [true, false])
      assert.equal((await post('/v1/batch', { all, takes: [good, bad] })).status, status, JSON.stringify(bad))
  }
  assert.equal((await post('/v1/batch', { takes: Array.from({ length: 101 }, () => good) })).status, 400)
  assert.equal((await post('/v1/batch', { takes: [] })).status, 400)
  assert.equal(await left('burst'), 100)
})

test('a reservation is settled at its actual cost, below and above the estimate, once', async (t) => {
  const { post, left } = await setUp(t)
  const below = await post('/v1/reserve', { policy: 'burst', key: 'alice', cost: 40 })
  assert.deepEqual([below.status, below.body.remaining, below.body.ttlMs], [200, 60, 60_000])
  assert.equal((await post('/v1/settle', { reservation: below.body.reservation, cost: 10 })).status, 200)
  assert.equal(await left('burst'), 90)
  const above = await post('/v1/reserve', { policy: 'burst', key: 'alice', cost: 10 })
  assert.equal((await post('/v1/settle', { reservation: above.body.reservation, cost: 30 })).body.remaining, 60)
  for (const path of ['/v1/settle', '/v1/cancel']) {
    const again = await post(path, { reservation: above.body.reservation, ...(path === '/v1/settle' && { cost: 0 }) })
    assert.deepEqual([again.status, again.body.code], [404, 'RESERVATION_UNKNOWN'])
  }
  assert.equal(await left('burst'), 60)
})

test('a cancelled reservation gives all back; a lapsed one stays charged as declared', async (t) => {
  const { service, post, left, clock } = await setUp(t)
  const cancelled = await post('/v1/reserve', { policy: 'narrow', key: 'alice', cost: 3 })
  assert.equal((await post('/v1/cancel', { reservation: cancelled.body.reservation })).status, 200)
  assert.equal(await left('narrow'), 3)
  const lapsing = await post('/v1/reserve', { policy: 'narrow', key: 'alice', cost: 2, ttlMs: 5_000 })
  clock.advance(5_000)
  const { status } = await post('/v1/settle', { reservation: lapsing.body.reservation, cost: 0 })
  assert.deepEqual([status, await left('narrow')], [404, 1])
  assert.deepEqual([service.engine.reservations.size, service.engine.reservations.lapsed], [0, 1])
})

test('a reservation that does not fit is denied as a take, holds nothing and books nothing ahead', async (t) => {
  const { service, post, left } = await setUp(t)
  await post('/v1/take', { policy: 'burst', key: 'alice', cost: 95 })
  const { status, body } = await post('/v1/reserve', { policy: 'burst', key: 'alice', cost: 10 })
  assert.deepEqual([status, body.retryAfterMs, 'reservation' in body], [429, 3_000, false])
  assert.equal((await post('/v1/reserve', { policy: 'burst', key: 'alice', cost: 101 })).status, 422)
  assert.deepEqual([await left('burst'), service.engine.reservations.size], [5, 0])
})

test('open reservations of one key are bounded, and a refused one charges nothing', async (t) => {
  const { service, post, left } = await setUp(t, YAML.replace('limit: 100', 'limit: 5000'))
  const served = service.engine.policy('burst') ?? assert.fail()
  for (let i = 0; i < 1_000; i++) service.engine.reservations.reserve([{ policy: served, key: 'alice', cost: 1 }], 10_000)
  const { status, body } = await post('/v1/reserve', { policy: 'burst', key: 'alice', cost: 1 })
  assert.deepEqual([status, body.code, await left('burst')], [503, 'TOO_MANY_HELD', 4_000])
  assert.equal((await post('/v1/reserve', { policy: 'burst', key: 'bob', cost: 1 })).status, 200)
})

test('permits are taken, kept by heartbeats, released once, and end by themselves', async (t) => {
  const { post, clock } = await setUp(t)
  const take = (more: object = {}) => post('/v1/take', { policy: 'jobs', key: 'alice', ...more })
  const first = await take()
  assert.deepEqual([first.status, first.body.ttlMs, typeof first.body.permit], [200, 30_000, 'string'])
  const short = await take({ ttlMs: 5_000 })
  assert.equal(short.body.ttlMs, 5_000)
  assert.equal((await take()).status, 429)
  clock.advance(4_000)
  assert.equal((await post('/v1/heartbeat', { permit: short.body.permit })).status, 200)
  clock.advance(4_000)
  assert.equal((await take()).status, 429, 'the heartbeat kept it')
  clock.advance(2_000)
  assert.equal((await post('/v1/heartbeat', { permit: short.body.permit })).status, 404)
  assert.equal((await take()).status, 200, 'its time is over')
  assert.equal((await post('/v1/release', { permit: first.body.permit })).status, 200)
  assert.deepEqual((await post('/v1/release', { permit: first.body.permit })).body.code, 'PERMIT_UNKNOWN')
  assert.equal((await take()).status, 200)
  assert.equal((await take({ ttlMs: 30_001 })).status, 400, 'not longer than the policy says')
})

test('a gateway cannot take permits, which it could not give back', async (t) => {
  const { service } = await setUp(t)
  const response = await fetch(`${service.url}/v1/auth?policy=jobs&key=alice`)
  assert.deepEqual([response.status, ((await response.json()) as { code: string }).code], [400, 'POLICY_UNSUITABLE'])
})

test('the admin listener refunds, penalizes, blocks and resets; the other one refuses', async (t) => {
  const { post, admin, left } = await setUp(t)
  const key = { policy: 'burst', key: 'alice' }
  for (const [path, more, expected] of [
    ['/v1/penalize', { tokens: 30 }, 70],
    ['/v1/refund', { tokens: 10 }, 80],
    ['/v1/reset', {}, 100],
  ] as const) {
    const refused = await post(path, { ...key, ...more })
    assert.deepEqual([refused.status, refused.body.code], [403, 'ADMIN_ONLY'])
    assert.equal((await admin(path, { ...key, ...more })).status, 200)
    assert.equal(await left('burst'), expected)
  }
  assert.equal((await admin('/v1/block', { ...key, forMs: 60_000 })).body.allowed, false)
  assert.equal((await post('/v1/take', key)).status, 429)
  await admin('/v1/block', { ...key, forMs: 0 })
  assert.equal((await post('/v1/take', key)).status, 200)
})

const TOKENS = `${YAML}tokens:
  - { name: app, secret: app-token-0123456789, scope: decide }
  - { name: ops, secret: ops-token-0123456789, scope: admin }
`

test('with tokens each request needs one, changes one of scope admin, and probes none', async (t) => {
  const { service, post, admin } = await setUp(t, TOKENS)
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  const key = { policy: 'burst', key: 'alice' }
  assert.deepEqual((await post('/v1/take', key)).status, 401)
  assert.deepEqual((await post('/v1/take', key, bearer('app-token-012345678'))).status, 401)
  assert.deepEqual((await post('/v1/take', key, bearer('app-token-0123456789'))).status, 200)
  assert.deepEqual((await post('/v1/reset', key, bearer('app-token-0123456789'))).status, 403)
  assert.deepEqual((await post('/v1/reset', key, bearer('ops-token-0123456789'))).status, 200)
  assert.deepEqual((await admin('/v1/reset', key)).status, 401)
  assert.deepEqual((await admin('/v1/reset', key, bearer('app-token-0123456789'))).status, 403)
  assert.deepEqual((await admin('/v1/reset', key, bearer('ops-token-0123456789'))).status, 200)
  for (const path of ['/livez', '/readyz', '/startupz']) assert.equal((await fetch(service.url + path)).status, 200)
  for (const path of ['/metrics', '/', '/events']) assert.equal((await fetch(service.url + path)).status, 401)
  const basic = { headers: { authorization: `Basic ${Buffer.from('me:app-token-0123456789').toString('base64')}` } }
  const page = await fetch(service.url, basic)
  assert.equal(page.status, 200)
  await page.body?.cancel()
})

test('without tokens the admin listener answers only addresses and names of this machine', async (t) => {
  const { service } = await setUp(t)
  const { hostname, port } = new URL(adminOf(service))
  const { request } = await import('node:http')
  const status = (host: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const sent = request({ hostname, port, path: '/metrics', headers: { host } }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      sent.once('error', reject).end()
    })
  for (const host of ['localhost', `localhost:${port}`, '127.0.0.1', '[::1]:80']) assert.equal(await status(host), 200, host)
  for (const host of ['rebound.example', 'localhost.example:80', '127.0.0.1.example']) assert.equal(await status(host), 403, host)
})
