import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { SharedOptions } from '../../../sluicegate/dist/index.js'
import { createLimiter, fixedWindow, type Policy, type SharedLimiter } from '../../../sluicegate/dist/index.js'
import { limitersOfTest } from '../redis/own-redis.js'
import { everyNth, IS_LONG_RUN } from '../run-length.js'
import { until } from '../servers/until.js'
import { answerCases } from './answer-cases.js'
import { endingCases } from './ending-cases.js'
import type { Harness, StartApp } from './harness.js'
import { promisedLimiter, Site } from './harness.js'
import { ask, openRequest } from './http-client.js'
import { optionCases } from './option-cases.js'

const perDay = (limit: number, name: string): Policy => fixedWindow({ limit, window: 'day', name })

/** Limits whose policy is chosen for each request. */
function policyCases<Request>({ name, header: headerOf }: Harness<Request>, start: StartApp<Request>): void {
  const userOf = (request: Request): string | undefined => headerOf(request, 'x-user')
  const as = (user: string, plan = 'free'): { headers: Record<string, string> } => ({ headers: { 'x-user': user, 'x-plan': plan } })
  // Made again for each request.
  const planOf = (request: Request): Policy => (headerOf(request, 'x-plan') === 'pro' ? perDay(3, 'pro') : perDay(1, 'free'))

  test(`${name}: the policy may be a function of the request, at once or later, and headers tell the one that answered`, async (t) => {
    for (const policy of [planOf, async (request: Request) => planOf(request)]) {
      const { port } = await start(t, { all: { policy, key: userOf } })
      const replies = []
      for (const [user, plan] of [
        ['ada', 'free'],
        ['ada', 'free'],
        ['bob', 'pro'],
        ['bob', 'pro'],
        ['ada', 'pro'],
      ] as const) {
        const { status, headers } = await ask(port, '/ok', as(user, plan))
        replies.push([status, String(headers['ratelimit-policy']).split(';')[0], String(headers.ratelimit).split(';')[1]])
      }
      assert.deepEqual(replies, [
        [200, '"free"', 'r=0'],
        [429, '"free"', 'r=0'],
        [200, '"pro"', 'r=2'],
        [200, '"pro"', 'r=1'],
        [200, '"pro"', 'r=2'],
      ])
    }
  })

  test(`${name}: a limiter may be made for each policy, once`, async (t) => {
    const made: string[] = []
    const limiter = (policy: Policy) => {
      made.push(policy.name)
      return promisedLimiter(createLimiter(policy))
    }
    const { port } = await start(t, { all: { policy: planOf, limiter, key: userOf } })
    const statuses = []
    for (const plan of ['free', 'free', 'pro', 'pro', 'pro', 'pro', 'free']) statuses.push((await ask(port, '/ok', as('ada', plan))).status)
    assert.deepEqual(statuses, [200, 429, 200, 200, 200, 429, 429])
    assert.deepEqual(made, ['free', 'pro'])
  })

  test(`${name}: a policy that cannot be found goes to the framework's own error handling`, async (t) => {
    const fails = (): never => {
      throw new Error('no such plan')
    }
    for (const [policy, message] of [
      [fails, /no such plan/],
      [async () => fails(), /no such plan/],
    ] as const) {
      const { port, site } = await start(t, { all: { policy, key: userOf } })
      const { status, text } = await ask(port, '/ok', as('ada'))
      assert.equal(status, 500)
      assert.match(text, message)
      assert.deepEqual([site.errors.length, site.handled], [1, 0])
    }
  })
}

const POLICY = fixedWindow({ name: 'fleet', limit: 10, window: 'day' })
async function store(t: TestContext) {
  const { server, limiter } = await limitersOfTest(t, true)
  return {
    limiter: (options: Partial<SharedOptions>): SharedLimiter => limiter(POLICY, { mode: 'exact', ...options }),
    stop: () => server.kill(),
  }
}

/** A limit held by Redis, and what happens without its server. */
function outageCases<Request>({ name }: Harness<Request>, start: StartApp<Request>): void {
  const modes = [
    [{ outage: 'open' }, undefined, 20, undefined],
    [{ outage: 'closed' }, undefined, 0, 503],
    [{ outage: 'local', share: 0.5 }, undefined, 5, 503],
    [{ outage: 'closed' }, 'open', 20, undefined],
    [{ outage: 'open' }, 'closed', 0, 503],
  ] as const

  test(`${name}: a limit of a fleet holds for parallel requests`, async (t) => {
    const { limiter } = await store(t)
    const { port, site } = await start(t, { all: limiter({}) })
    const replies = await Promise.all(Array.from({ length: 50 }, () => ask(port, '/ok')))
    assert.deepEqual([replies.filter(({ status }) => status === 200).length, site.handled], [10, 10])
    assert.ok(replies.every(({ status }) => status === 200 || status === 429))
  })

  for (const [i, [options, onOutage, passing, status]] of modes.entries()) {
    const choice = onOutage === undefined ? '' : `, overruled by onOutage '${onOutage}'`
    everyNth(i, modes.length)(`${name}: without its store, and outage '${options.outage}'${choice}, ${passing} of 20 pass`, async (t) => {
      const { limiter, stop } = await store(t)
      const { port, site } = await start(t, { all: { limiter: limiter(options), ...(onOutage && { onOutage }) } })
      assert.equal((await ask(port, '/ok')).status, 200)
      await stop()
      const replies = []
      for (let i = 0; i < 20; i++) replies.push(await ask(port, '/ok'))
      const passed = replies.filter((reply) => reply.status === 200)
      assert.equal(passed.length, passing)
      assert.ok(passed.every(({ headers }) => headers['ratelimit-policy'] !== undefined && headers.ratelimit === undefined))
      for (const reply of replies.filter((each) => each.status !== 200)) {
        assert.equal(reply.status, status)
        assert.ok(Number(reply.headers['retry-after']) >= 1)
        assert.match(JSON.parse(reply.text).type, /#temporary-reduced-capacity$/)
      }
      assert.deepEqual(site.errors, [])
    })
  }
}

/** Requests that are delayed before they go on, and clients that are banned. */
function delayCases<Request>({ name }: Harness<Request>, start: StartApp<Request>): void {
  test(`${name}: requests above the threshold are delayed, then pass; a client that disconnects frees its place`, async (t) => {
    const day = fixedWindow({ limit: 100, window: 'day', name: 'day' })
    let ms = 3_600_000
    let delays = 0
    const delay = (): number => {
      delays++
      return ms
    }
    const slowDown = { after: 1, delay, maxDelay: '1h', maxDelayed: 1 } as const
    const { port, site } = await start(t, { all: { policy: day, slowDown } })
    assert.equal((await ask(port, '/ok')).status, 200)
    assert.equal(delays, 0)
    const delayed = openRequest(port, '/ok')
    await until('it is delayed', () => delays === 1)
    const refused = await ask(port, '/ok')
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '3600'])
    assert.equal(site.handled, 1)
    delayed.hangUp()
    ms = 1
    await until('its place is free', async () => (await ask(port, '/ok')).status === 200)
    const { status, headers } = await ask(port, '/ok')
    assert.equal(status, 200)
    assert.match(String(headers.ratelimit), /r=9[67]/)
    assert.ok(delays > 2)
  })

  test(`${name}: a client that is denied again and again is banned`, async (t) => {
    const policy = fixedWindow({ limit: 1, window: 'day', name: 'day' })
    const { port } = await start(t, { all: createLimiter(policy, { banAfter: { denials: 2, within: '1m', for: '100d' } }) })
    const waits = []
    for (let i = 0; i < 4; i++) waits.push(Number((await ask(port, '/ok')).headers['retry-after'] ?? 0) > 86_400)
    assert.deepEqual(waits, [false, false, true, true])
  })
}

/**
 * Everything that an adapter has to do in its framework, over real sockets.
 *
 * @param isVariant whether another suite runs the same adapter, in another version or setting of its framework: a short run leaves out what
 * depends on the adapter alone.
 */
export function adapterSuite<Request>(harness: Harness<Request>, isVariant = false): void {
  const start: StartApp<Request> = async (t, limits) => {
    const site = new Site()
    const app = await harness.start(site, limits)
    t.after(() => app.close())
    return { ...app, site }
  }
  answerCases(harness, start)
  endingCases(harness, start)
  if (isVariant && !IS_LONG_RUN) return
  optionCases(harness, start)
  policyCases(harness, start)
  outageCases(harness, start)
  delayCases(harness, start)
}
