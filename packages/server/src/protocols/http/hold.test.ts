import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { manualClock } from 'sluicegate'
import { readConfig } from 'sluicegate-config/read-config.js'
import { until } from 'sluicegate-testkit'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import { createLog } from '../../log.js'

const YAML = `
listen: { port: 0, admin: "127.0.0.1:0" }
policies:
  money: { algorithm: token-bucket, limit: 1000, window: 1m }
  month: { algorithm: fixed-window, limit: 100, window: month }
  jobs: { algorithm: concurrency, limit: 2, ttl: 30s }
`

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly headers: Headers
}

async function setUp(t: TestContext, yaml = YAML) {
  const clock = manualClock(0)
  const service = await runService(t, yaml, { clock })
  const post = async (path: string, value: unknown, more: Record<string, string> = {}, url = service.url): Promise<Answer> => {
    const headers = { 'content-type': 'application/json', ...more }
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(value) })
    return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> }
  }
  const left = async (policy = 'money', key = 'ada') => (await post('/v1/peek', { policy, key })).body.remaining
  const open = (more: object = {}) => post('/v1/open', { policy: 'money', key: 'ada', expect: 100, ...more })
  return { service, clock, post, left, open }
}

test('work opens with what it will probably cost, spends as it goes, and frees the rest at its close', async (t) => {
  const { post, left, open } = await setUp(t)
  const { status, body } = await open()
  assert.deepEqual([status, body.allowed, body.policy, body.held, body.affordable, body.ttlMs], [200, true, 'money', 100, 1000, 15_000])
  assert.equal(await left(), 900, 'others do not get what is held')
  const { hold } = body
  const added = await post('/v1/add', { hold, cost: 30 })
  assert.deepEqual([added.status, added.body], [200, { allowed: true, used: 30, held: 70, over: 0, affordable: 970 }])
  const closed = await post('/v1/close', { hold, cost: 45 })
  assert.deepEqual([closed.status, closed.body.used, closed.body.over, closed.body.remaining], [200, 45, 0, 955])
})

test('what does not fit is denied as a take: nothing is held, and the answer says when', async (t) => {
  const { open, left, post } = await setUp(t)
  await post('/v1/take', { policy: 'money', key: 'ada', cost: 950 })
  const denied = await open()
  assert.deepEqual([denied.status, denied.body.retryAfterMs, 'hold' in denied.body], [429, 3_000, false])
  assert.equal(denied.headers.get('retry-after'), '3')
  assert.deepEqual([(await open({ expect: 1001 })).status, await left()], [422, 50])
})

test('a piece that neither the hold nor free room covers is cut, waits or goes into debt, as the work said', async (t) => {
  const { open, post, clock } = await setUp(t)
  const cut = await open()
  const spent = await post('/v1/take', { policy: 'money', key: 'ada', cost: 900 })
  assert.equal(spent.status, 200)
  const { status, body } = await post('/v1/add', { hold: cut.body.hold, cost: 101 })
  assert.deepEqual([status, body.allowed, body.policy, body.retryAfterMs, body.used], [429, false, 'money', 60, 0])
  const later = await post('/v1/add', { hold: cut.body.hold, cost: 125 })
  assert.deepEqual([later.body.retryAfterMs, later.headers.get('retry-after')], [1_500, '2'])
  const finish = await post('/v1/open', { policy: 'money', key: 'bob', expect: 10, over: 'finish' })
  const debt = await post('/v1/add', { hold: finish.body.hold, cost: 1_100 })
  assert.deepEqual([debt.status, debt.body.over, debt.body.used], [200, 100, 1_100])
  const wait = await post('/v1/open', { policy: 'money', key: 'eve', expect: 10, over: 'wait' })
  assert.equal((await post('/v1/add', { hold: wait.body.hold, cost: 1_000 })).status, 200)
  const waiting = post('/v1/add', { hold: wait.body.hold, cost: 10, call: 2 })
  const repeated = post('/v1/add', { hold: wait.body.hold, cost: 10, call: 2 })
  // Both requests have arrived when a later one was answered.
  await post('/v1/peek', { policy: 'money', key: 'eve' })
  clock.advance(600)
  assert.deepEqual([(await waiting).status, (await repeated).body], [200, (await waiting).body])
})

test('beyond the most that it said, work is refused for ever', async (t) => {
  const { open, post } = await setUp(t)
  const { body } = await open({ most: 50 })
  assert.deepEqual([body.held, body.affordable], [50, 50])
  const { status, body: refused } = await post('/v1/add', { hold: body.hold, cost: 51 })
  assert.deepEqual([status, refused.allowed, refused.impossible, refused.retryAfterMs], [422, false, true, null])
  assert.equal((await post('/v1/add', { hold: body.hold, cost: 50 })).status, 200)
})

test('a repeated call receives the first answer and counts once', async (t) => {
  const { open, post, left } = await setUp(t)
  const { hold } = (await open()).body
  const first = await post('/v1/add', { hold, cost: 10, call: 1 })
  assert.deepEqual((await post('/v1/add', { hold, cost: 10, call: 1 })).body, first.body)
  const second = await post('/v1/add', { hold, cost: 10, call: 2 })
  assert.deepEqual([second.body.used, await left()], [20, 900])
  const late = await post('/v1/add', { hold, cost: 10, call: 1 })
  assert.deepEqual([late.status, late.body.code], [409, 'CALL_PASSED'])
  const closed = await post('/v1/close', { hold, cost: 30, call: 3 })
  assert.deepEqual((await post('/v1/close', { hold, cost: 30, call: 3 })).body, closed.body)
  assert.deepEqual((await post('/v1/add', { hold, cost: 10, call: 2 })).body, second.body, 'whose reply was lost')
  assert.equal(await left(), 970)
})

test('an open that is said again with the id of its caller receives the same hold, until that has spent', async (t) => {
  const { open, post, left, service } = await setUp(t)
  const id = crypto.randomUUID()
  const first = await open({ id })
  assert.deepEqual([(await open({ id })).body, await left(), service.engine.policy('money')?.holds.open], [first.body, 900, 1])
  const { hold } = (await open({ id, key: 'bob' })).body
  assert.notEqual(hold, first.body.hold)
  await post('/v1/add', { hold, cost: 0, call: 1 })
  await post('/v1/add', { hold: first.body.hold, cost: 1 })
  assert.deepEqual([(await open({ id })).body.code, (await open({ id, key: 'bob' })).body.code], ['CALL_PASSED', 'CALL_PASSED'])
  await post('/v1/close', { hold: first.body.hold })
  assert.equal((await open({ id })).body.code, 'HOLD_CLOSED')
  const later = crypto.randomUUID()
  assert.equal((await open({ id: later, expect: 1000 })).status, 429)
  assert.equal((await open({ id: later, expect: 999 })).status, 200, 'a denied open leaves nothing')
  for (const wrong of ['', 'x'.repeat(15), 'x'.repeat(201), 1, null, {}, [id]])
    assert.deepEqual([(await open({ id: wrong })).body.code, await left()], ['PARAMETER_INVALID', 0], JSON.stringify(wrong))
})

test('an open that is said again answers with what the hold has by then, and its own ttlMs', async (t) => {
  const { open, post, clock } = await setUp(t)
  const id = crypto.randomUUID()
  const { hold, affordable } = (await open({ id, ttlMs: 8_000 })).body
  await post('/v1/take', { policy: 'money', key: 'ada', cost: 300 })
  const again = (await open({ id, ttlMs: 60_000 })).body
  assert.deepEqual([again.hold, again.held, again.ttlMs, again.affordable], [hold, 100, 8_000, Number(affordable) - 300])
  clock.advance(10_000)
  const lapsed = (await open({ id })).body
  assert.deepEqual([lapsed.hold, lapsed.held, lapsed.ttlMs], [hold, 0, 8_000])
})

test('after its close a hold takes no more, and after its time nobody knows it', async (t) => {
  const { open, post, clock, left } = await setUp(t)
  const { hold } = (await open()).body
  await post('/v1/close', { hold, cost: 30 })
  for (const [path, value] of [
    ['/v1/add', { hold, cost: 1 }],
    ['/v1/close', { hold, cost: 40, call: 1 }],
  ] as const) {
    const { status, body } = await post(path, value)
    assert.deepEqual([status, body.code], [409, 'HOLD_CLOSED'], path)
  }
  clock.advance(15_000)
  for (const id of [hold, crypto.randomUUID()]) {
    const { status, body } = await post('/v1/add', { hold: id, cost: 1 })
    assert.deepEqual([status, body.code], [404, 'HOLD_UNKNOWN'])
  }
  assert.equal(await left(), 1000)
})

test('work that nobody renews lapses at no cost; heard of again it spends what is free, and is open again', async (t) => {
  const { service, open, post, clock } = await setUp(t)
  const { holds } = service.engine.policy('money') ?? assert.fail()
  const { hold } = (await open({ policy: 'month', ttlMs: 8_000 })).body
  const counts = (service.engine.policy('month') ?? assert.fail()).holds
  assert.deepEqual(counts, { open: 1, held: 100, spent: 0, over: 0, lapsed: 0, cut: 0 })
  assert.equal((await post('/v1/take', { policy: 'month', key: 'ada' })).status, 429)
  clock.advance(9_000)
  service.engine.sweep()
  assert.deepEqual(counts, { open: 0, held: 0, spent: 0, over: 0, lapsed: 1, cut: 0 })
  assert.equal((await post('/v1/take', { policy: 'month', key: 'ada', cost: 60 })).status, 200)
  assert.equal((await post('/v1/add', { hold, cost: 41 })).status, 429)
  assert.equal((await post('/v1/add', { hold, cost: 40 })).status, 200)
  assert.deepEqual(counts, { open: 1, held: 0, spent: 40, over: 0, lapsed: 1, cut: 1 })
  assert.equal(holds.open, 0)
  // The true cost is owed, however late it comes.
  const { body } = await post('/v1/close', { hold, cost: 50 })
  assert.deepEqual([body.used, body.over, counts.open, counts.over], [50, 10, 0, 10])
})

test('work counts as open for its time after each piece', async (t) => {
  const { service, open, post, clock } = await setUp(t)
  const { holds } = service.engine.policy('money') ?? assert.fail()
  const { hold } = (await open({ ttlMs: 8_000 })).body
  for (let i = 0; i < 3; i++) {
    clock.advance(5_000)
    service.engine.sweep()
    assert.equal((await post('/v1/add', { hold, cost: 1 })).status, 200)
  }
  assert.deepEqual([holds.open, holds.lapsed], [1, 0])
  clock.advance(9_000)
  service.engine.sweep()
  assert.deepEqual([holds.open, holds.lapsed], [0, 1])
})

test('what makes no sense is refused and spends nothing', async (t) => {
  const { open, post, left, service } = await setUp(t)
  const { hold } = (await open()).body
  const huge = 2 ** 53
  for (const cost of [-1, 0.5, huge, '1e3', null, {}, true, Number.NaN, -0.1]) {
    for (const path of ['/v1/add', '/v1/close']) {
      const { status, body } = await post(path, { hold, cost })
      assert.deepEqual([status, body.code], [400, 'COST_INVALID'], `${path} ${cost}`)
    }
    for (const option of ['expect', 'most']) assert.equal((await open({ [option]: cost })).status, 400, `${option} ${cost}`)
  }
  const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
  for (const path of ['open', 'add', 'close', 'take'])
    for (const of of ['"expect":1e400', '"most":1e400', '"cost":1e400', '"cost":-1e400']) {
      const named = path === 'add' || path === 'close' ? `"hold":"${hold}"` : '"policy":"money","key":"ada"'
      const response = await fetch(`${service.url}/v1/${path}`, { ...init, body: `{${named},${of}}` })
      assert.equal(response.status, 400, `${path} ${of}`)
    }
  for (const [more, code] of [
    [{ expect: 0 }, 'COST_INVALID'],
    [{ most: 0 }, 'COST_INVALID'],
    [{ ttlMs: 9 }, 'PARAMETER_INVALID'],
    [{ ttlMs: 3_600_001 }, 'PARAMETER_INVALID'],
    [{ over: 'never' }, 'PARAMETER_INVALID'],
    [{ over: 'wait', ttlMs: 60_001 }, 'PARAMETER_INVALID'],
    [{ cost: 1 }, 'PARAMETER_UNKNOWN'],
    [{ policy: 'jobs' }, 'POLICY_UNSUITABLE'],
    [{ key: ['a', 'b'] }, 'KEY_INVALID'],
  ] as const) {
    const { status, body } = await open(more)
    assert.deepEqual([status, body.code], [400, code], JSON.stringify(more))
  }
  // As of a store, which does not have these keys.
  const placed = `${'0'.repeat(32)}.${Buffer.from(JSON.stringify(['money', 'ada', null, 0])).toString('base64url')}`
  assert.equal((await post('/v1/add', { hold: placed, cost: 1 })).status, 404)
  for (const call of [0, -1, 1.5, '1', huge]) assert.equal((await post('/v1/add', { hold, cost: 1, call })).status, 400)
  for (const id of ['', 1, undefined, 'x'.repeat(12_001)]) assert.equal((await post('/v1/add', { hold: id, cost: 1 })).status, 400)
  assert.equal(await left(), 900)
})

test('work begins only where it leaves what its class must leave', async (t) => {
  const classes = 'priorities: { critical: 0%, sheddable: 40% }, default-priority: sheddable, max-priority: critical'
  const { post, open } = await setUp(t, YAML.replace('limit: 1000, window: 1m', `limit: 1000, window: 1m, ${classes}`))
  assert.equal((await open({ expect: 601 })).status, 422)
  assert.equal((await open({ expect: 600 })).status, 200)
  assert.equal((await open({ expect: 1 })).status, 429)
  const critical = { policy: 'money', key: 'ada', expect: 400, priority: 'critical' }
  assert.equal((await post('/v1/open', critical)).status, 200)
})

test('pages of other sites open, spend and close nothing', async (t) => {
  const { open, post, left } = await setUp(t)
  const { hold } = (await open()).body
  const fromOther = { 'sec-fetch-site': 'cross-site' }
  for (const [path, value] of [
    ['/v1/open', { policy: 'money', key: 'ada', expect: 100 }],
    ['/v1/add', { hold, cost: 10 }],
    ['/v1/close', { hold, cost: 10 }],
  ] as const)
    assert.deepEqual([(await post(path, value, fromOther)).body.code, await left()], ['CROSS_SITE', 900], path)
})

test('one key has at most 2,000 open holds; others find room', async (t) => {
  const { service, open } = await setUp(t, YAML.replace('limit: 1000', 'limit: 5000'))
  const served = service.engine.policy('money') ?? assert.fail()
  const asked = { expect: 1, most: Number.POSITIVE_INFINITY, ttlMs: 10_000, over: 'cut' } as const
  for (let i = 0; i < 2_000; i++) service.engine.holds.open(served, 'ada', asked, 0)
  const { status, body } = await open({ expect: 1 })
  assert.deepEqual([status, body.code], [503, 'TOO_MANY_HELD'])
  assert.equal((await open({ key: 'bob' })).status, 200)
})

const TOKENS = `${YAML}tokens:
  - { name: app, secret: app-token-0123456789, scope: decide }
`

test('with tokens work needs one of scope decide', async (t) => {
  const { post } = await setUp(t, TOKENS)
  const bearer = { authorization: 'Bearer app-token-0123456789' }
  const value = { policy: 'money', key: 'ada', expect: 1 }
  assert.equal((await post('/v1/open', value)).status, 401)
  const { body } = await post('/v1/open', value, bearer)
  for (const path of ['/v1/add', '/v1/close']) {
    assert.equal((await post(path, { hold: body.hold, cost: 1 })).status, 401)
    assert.equal((await post(path, { hold: body.hold, cost: 1 }, bearer)).status, 200)
  }
})

const LEVELS = `
listen: { port: 0 }
policies:
  money:
    levels:
      org: { algorithm: fixed-window, limit: 1000, window: month }
      user: { algorithm: token-bucket, limit: 100, window: 1m }
prices: { file: prices.yaml }
`
const PRICES = 'per: 1000\nmodels: { small: { input: 150, cached: 75, output: 600 }, free: { input: 0, output: 0 } }\n'

async function withPrices(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-prices-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'prices.yaml'), PRICES)
  const path = join(folder, 'gate.yaml')
  writeFileSync(path, LEVELS)
  const clock = manualClock(0)
  const service = await runService(t, readConfig(path), {
    clock,
    source: { path, read: () => readConfig(path) },
    watchMs: 10,
    log: createLog('silent'),
  })
  const post = async (route: string, value: unknown): Promise<Answer> => {
    const response = await fetch(service.url + route, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(value),
    })
    return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> }
  }
  return { service, post, clock, folder }
}

test('keys are given by the names of the levels, and a denial names the level', async (t) => {
  const { post } = await withPrices(t)
  const key = { org: 'acme', user: 'ada' }
  const open = (more: object) => post('/v1/open', { policy: 'money', key, expect: 60, ...more })
  assert.equal((await open({})).status, 200)
  const denied = await open({})
  assert.deepEqual([denied.status, denied.body.policy], [429, 'user'])
  assert.equal((await open({ key: { user: 'bob', org: 'acme' } })).status, 200, 'in any order')
  assert.deepEqual(
    ((await post('/v1/peek', { policy: 'money', key: ['acme', 'ada'] })).body.parts as { remaining: number }[]).map(
      ({ remaining }) => remaining,
    ),
    [880, 40],
  )
  for (const wrong of [{ org: 'acme' }, { org: 'acme', user: 'ada', team: 'x' }, { org: 'acme', team: 'x' }]) {
    const { status, body } = await open({ key: wrong })
    assert.deepEqual([status, body.code], [400, 'KEY_INVALID'], String(body.detail))
  }
  assert.equal((await open({ key: { org: 'acme', user: 1 } })).body.code, 'PARAMETER_INVALID')
})

test('what was used of a model costs its price: rounded once for a work, however small its pieces', async (t) => {
  const { post } = await withPrices(t)
  const key = { org: 'acme', user: 'ada' }
  const most = { model: 'small', input: 100, output: 50 }
  const { body } = await post('/v1/open', { policy: 'money', key, expect: { model: 'small', input: 100 }, most })
  // 100 of input cost 15, 50 of output 30.
  assert.deepEqual([body.held, body.affordable, body.affordableOutput], [15, 45, 50])
  const { hold } = body
  let used: unknown
  for (let i = 0; i < 50; i++) used = (await post('/v1/add', { hold, cost: { model: 'small', output: 1 }, call: i + 1 })).body.used
  assert.equal(used, 30)
  const closed = await post('/v1/close', { hold, cost: { model: 'small', input: 40, cached: 60, output: 50 } })
  assert.equal(closed.body.used, 6 + 5 + 30, '4.5 is rounded with the rest: 40.5')
  assert.equal((await post('/v1/take', { policy: 'money', key, cost: { model: 'small', output: 10 } })).body.remaining, 100 - 41 - 6)
  const { reservation } = (await post('/v1/reserve', { policy: 'money', key, cost: { model: 'small', output: 20 } })).body
  assert.equal((await post('/v1/settle', { reservation, cost: { model: 'small', output: 10 } })).body.remaining, 100 - 41 - 12)
  for (const cost of [
    { model: 'none' },
    { output: 1 },
    { model: 'small', output: -1 },
    { model: 'small', output: 0.5 },
    { model: 'small', tokens: 1 },
    [],
  ]) {
    for (const [path, value] of [
      ['/v1/add', { hold, cost }],
      ['/v1/take', { policy: 'money', key, cost }],
    ] as const) {
      const refused = await post(path, value)
      assert.deepEqual([refused.status, refused.body.code], [400, 'COST_INVALID'], JSON.stringify(value))
    }
  }
})

test('work of a model that is free opens, and costs nothing', async (t) => {
  const { post } = await withPrices(t)
  const key = { org: 'acme', user: 'ada' }
  const usage = { model: 'free', input: 100, output: 50 }
  const { status, body } = await post('/v1/open', { policy: 'money', key, expect: usage, most: usage })
  assert.deepEqual([status, body.held, 'affordableOutput' in body], [200, 1, false])
  assert.equal((await post('/v1/add', { hold: body.hold, cost: usage })).status, 200)
  assert.deepEqual((await post('/v1/close', { hold: body.hold, cost: usage })).body.used, 0)
  assert.equal((await post('/v1/peek', { policy: 'money', key })).body.remaining, 100)
})

test('other prices take effect without a restart, and a faulty file none', async (t) => {
  const { service, post, folder } = await withPrices(t)
  const key = { org: 'acme', user: 'ada' }
  const file = join(folder, 'prices.yaml')
  const peek = async () => (await post('/v1/peek', { policy: 'money', key, cost: { model: 'small', output: 100 } })).body.allowed
  assert.equal(await peek(), true)
  writeFileSync(file, 'per: 1000\nmodels: { small: { input: 150, output: 60000 } }\n')
  await until('the prices are in force', async () => (await peek()) === false)
  writeFileSync(file, 'per: 1000\nmodels: { small: { input: 150, output: 0.5 } }\n')
  await until('the fault is known', async () => (service.reloader?.state.failed ?? 0) > 0)
  assert.match(service.reloader?.state.fault ?? '', /prices\.yaml:2:\d+: models\.small\.output: must be an integer from 0/)
  assert.equal(await peek(), false)
})
