import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from 'sluicegate-testkit'
import { turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { type HeldQuestion, HeldScripts } from 'sluicegate-testkit/redis/held-scripts.js'
import { proxiedServerOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { type ClientKind, clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import type { Permit } from '../decision/permit.js'
import { allOf, manualClock, slidingWindow } from '../index.js'
import type { Policy } from '../policy/policy.js'
import { concurrency, tokenBucket } from '../policy/single-policy.js'
import type { Operation } from '../shared/backend.js'
import { CallGuard } from '../shared/calls/call-guard.js'
import { GuardedBackend } from '../shared/calls/guarded-backend.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { encodingsOf } from '../shared/steps/policy-encoding.js'
import type { StepVerb } from '../shared/steps/step-answers.js'
import { StepBackend } from '../shared/steps/step-backend.js'
import { redis } from './redis.js'
import type { RedisClient } from './runner-for.js'

// Callers who go away, by their signal or because the store is too slow for them, leave nothing half spent.

const BURST = 100
/** Nothing comes back by itself while a test runs. */
const POLICY = tokenBucket({ limit: 1, window: '10d', burst: BURST, name: 'p' })
const PLACES = concurrency({ limit: 3, ttl: '1h', name: 'places' })
const KINDS = clientsForRun(SERVER_CLIENTS.filter(({ name, library }) => name === library))
const NO_HASTE = 60_000

const { server, proxy } = await proxiedServerOfFile()

let limiters = 0
function limiterOf(client: RedisClient, policy: Policy, options: Partial<SharedOptions> = {}): SharedLimiter {
  return createLimiter(policy, {
    store: redis(client, { prefix: `given-up ${++limiters}` }),
    mode: 'exact',
    outage: 'closed',
    timeout: NO_HASTE,
    ...options,
  })
}

async function left(limiter: SharedLimiter, key = 'k'): Promise<number> {
  const { remaining, source } = await limiter.peek(key)
  return source === 'store' ? remaining : Number.NaN
}

const isFull = (limiter: SharedLimiter, full: number) => async (): Promise<boolean> => (await left(limiter)) === full

for (const kind of KINDS) {
  test(`${kind.name}: who is aborted while the booking is on its way gets his reason, and the tokens go back`, async () => {
    await using open = await kind.open([proxy])
    const limiter = limiterOf(open.client, POLICY)
    await limiter.take('other')
    proxy.set({ kind: 'latency', delayMs: 50 })
    const controller = new AbortController()
    const waiting = limiter.wait('k', { cost: 7, signal: controller.signal })
    setTimeout(() => controller.abort(new Error('enough')), 20)
    await assert.rejects(waiting, /enough/)
    await until('the booking has been made and given back', isFull(limiter, BURST))
    assert.ok((await server.callsOf('evalsha')) > 0)
  })

  test(`${kind.name}: who is aborted while he sleeps gives back what was booked for him`, async () => {
    await using open = await kind.open([proxy])
    const limiter = limiterOf(open.client, tokenBucket({ limit: 10, window: '1h', burst: 5, name: 'slow' }))
    for (let i = 0; i < 5; i++) await limiter.take('k')
    const controller = new AbortController()
    const waiting = limiter.wait('k', { signal: controller.signal })
    const isBooked = async (): Promise<boolean> => (await limiter.peek('k')).retryAfterMs > 400_000
    await until('the next token is booked', isBooked)
    controller.abort(new Error('enough'))
    await assert.rejects(waiting, /enough/)
    await until('it is there for others', async () => !(await isBooked()))
  })

  test(`${kind.name}: a booking made after its caller got an outage decision is returned`, async () => {
    await using open = await kind.open([proxy])
    const limiter = limiterOf(open.client, POLICY, { timeout: 200 })
    await until('the store decides', isFull(limiter, BURST))
    proxy.set({ kind: 'latency', delayMs: 300 })
    const reservation = await limiter.reserve('k', 40)
    const decision = await limiter.wait('other', { cost: 30 })
    assert.deepEqual([reservation.allowed, decision.allowed, decision.source], [false, false, 'outage'])
    proxy.set({ kind: 'none' })
    await until('all is given back', async () => (await left(limiter)) === BURST && (await left(limiter, 'other')) === BURST)
  })

  test(`${kind.name}: a permit granted after its caller got an outage decision is released, long before its ttl`, async () => {
    await using open = await kind.open([proxy])
    const limiter = limiterOf(open.client, PLACES, { timeout: 200 })
    await until('the store decides', isFull(limiter, 3))
    proxy.set({ kind: 'latency', delayMs: 300 })
    const permit = (await limiter.take('k', 2)) as Permit<'later'>
    assert.deepEqual([permit.allowed, permit.source], [false, 'outage'])
    proxy.set({ kind: 'none' })
    await until('the places are free', isFull(limiter, 3))
  })

  test(`${kind.name}: tokens of a take whose answer is lost are charged once, and never spent`, async () => {
    await using open = await kind.open([proxy])
    const limiter = limiterOf(open.client, POLICY, { timeout: 200 })
    await until('the store decides', isFull(limiter, BURST))
    proxy.set({ kind: 'half-open' })
    const decisions = await Promise.all(Array.from({ length: 10 }, () => limiter.take('k')))
    assert.ok(decisions.every(({ allowed, source }) => !allowed && source === 'outage'))
    proxy.set({ kind: 'none' })
    await until('the store is back', async () => !Number.isNaN(await left(limiter)))
    const spent = BURST - (await left(limiter))
    assert.ok(spent <= limiter.stats().storeFailures, `${spent} charged`)
    assert.ok(spent <= 10)
  })

  test(`${kind.name}: tokens of a lost lease are never spent`, async () => {
    await using open = await kind.open([proxy])
    const policy = tokenBucket({ limit: 500, window: '1s', burst: 500, name: 'leased' })
    const limiter = limiterOf(open.client, policy, { mode: 'leased', timeout: 200 })
    await until('the store decides', async () => (await limiter.take('k')).source !== 'outage')
    await new Promise((resolve) => setTimeout(resolve, 300))
    proxy.set({ kind: 'half-open' })
    const decisions = await Promise.all(Array.from({ length: 50 }, () => limiter.take('k')))
    const { leases } = limiter.stats()
    assert.ok(leases <= 1)
    // What was in hand when the answers ceased to come may be spent, and was charged.
    const fromLease = decisions.filter(({ allowed }) => allowed)
    assert.ok(fromLease.every(({ source }) => source === 'lease'))
    assert.ok(limiter.stats().admittedTokens <= limiter.stats().chargedTokens)
  })

  test(`${kind.name}: who must wait for longer than he wants is denied, and nothing is booked`, async () => {
    await using open = await kind.open([proxy])
    const limiter = limiterOf(open.client, tokenBucket({ limit: 10, window: '1h', burst: 5, name: 'slow' }))
    for (let i = 0; i < 5; i++) await limiter.take('k')
    const before = await limiter.peek('k')
    const decisions = await Promise.all(Array.from({ length: 5 }, () => limiter.wait('k', { maxWait: 100 })))
    assert.ok(decisions.every(({ allowed, source }) => !allowed && source === 'store'))
    assert.ok((await limiter.peek('k')).retryAfterMs <= before.retryAfterMs)
  })
}

test('closing a limiter ends its waits, and returns their bookings', async () => {
  const kind = KINDS[0] as ClientKind
  await using open = await kind.open([proxy])
  const policy = tokenBucket({ limit: 10, window: '1h', burst: 5, name: 'slow' })
  const limiter = limiterOf(open.client, policy, { store: redis(open.client, { prefix: 'closed' }) })
  const other = limiterOf(open.client, policy, { store: redis(open.client, { prefix: 'closed' }) })
  for (let i = 0; i < 5; i++) await limiter.take('k')
  const waiting = limiter.wait('k')
  const isBooked = async (): Promise<boolean> => (await other.peek('k')).retryAfterMs > 400_000
  await until('the next token is booked', isBooked)
  limiter.close()
  await assert.rejects(waiting, { code: 'CLOSED' })
  await until('it is there for others', async () => !(await isBooked()))
})

const NOW_US = 5_000_000
const BUCKET = tokenBucket({ limit: 10, window: '1s' })
const PERMITS = concurrency({ limit: 5, ttl: '1m' })

/** What the store is asked after an answer that came when its caller had been given an outage. */
async function askedAfter(policy: Policy, operation: Operation, done = true): Promise<readonly HeldQuestion[]> {
  const clock = manualClock()
  const store = new HeldScripts()
  const backend = new StepBackend(store, encodingsOf(policy), (id) => `p${id}`)
  const guarded = new GuardedBackend(backend, new CallGuard(store, clock, 100), policy)
  const asked = assert.rejects(guarded.execute(operation), { code: 'OUTAGE' })
  clock.advance(100)
  await asked
  store.asked[0]?.answer(NOW_US, { done, debt: 9, waitUs: 700 })
  await turns()
  return store.asked.slice(1)
}

function reserve(): Operation {
  return { verb: 'reserve', key: 'k', cost: 3, id: 1, maxWaitUs: 1000 }
}

function take(): Operation {
  return { verb: 'take', key: 'k', cost: 3, id: 1 }
}

function verbsOf(questions: readonly HeldQuestion[]): readonly StepVerb[] {
  return questions.map(({ verb }) => verb)
}

test('a booking for a caller who has gone is cancelled as he would have done', async () => {
  const asked = await askedAfter(slidingWindow({ limit: 10, window: '1s' }), reserve())
  assert.deepEqual(verbsOf(asked), ['giveBack'])
  const back = asked[0]?.requests ?? []
  assert.deepEqual(
    back.map(({ booking }) => booking),
    [{ cost: 3, bookedUs: NOW_US, atUs: NOW_US + 700, debt: 9 }],
  )
  assert.deepEqual(
    back.map(({ key, tokens, mostUs }) => [key, tokens, mostUs]),
    [['k', 3, undefined]],
  )
})

test('a permit for a caller who has gone is released; of allOf only the permit', async () => {
  const asked = await askedAfter(allOf([BUCKET, PERMITS]), take())
  assert.deepEqual(verbsOf(asked), ['release'])
  assert.deepEqual(
    asked[0]?.requests.map(({ encoding, permit }) => `${encoding.name} ${permit}`),
    ['concurrency p1'],
  )
})

test('tokens of a take stay spent, and what was denied needs nothing', async () => {
  assert.deepEqual(await askedAfter(BUCKET, take()), [])
  assert.deepEqual(await askedAfter(BUCKET, reserve(), false), [])
  assert.deepEqual(await askedAfter(PERMITS, take(), false), [])
})

test('other operations are not taken back', async () => {
  const booked = {
    key: 'k',
    cost: 3,
    id: 1,
    allowed: true,
    waitUs: 0,
    order: 1,
    decision: { allowed: true, limit: 1, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, policy: 'p', source: 'store' },
  } as const
  const operations: readonly Operation[] = [
    { verb: 'peek', key: 'k', cost: 3 },
    { verb: 'refund', key: 'k', tokens: 3 },
    { verb: 'penalize', key: 'k', tokens: 3 },
    { verb: 'block', key: 'k', us: 3 },
    { verb: 'reset', key: 'k' },
    { verb: 'giveBack', key: 'k', charge: booked, tokens: 3 },
    { verb: 'release', key: 'k', cost: 3, id: 1 },
    { verb: 'heartbeat', key: 'k', cost: 3, id: 1 },
  ]
  for (const policy of [BUCKET, PERMITS]) {
    for (const operation of operations) assert.deepEqual(await askedAfter(policy, operation), [], operation.verb)
  }
})
