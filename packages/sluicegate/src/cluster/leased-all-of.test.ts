import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Admission, firstOver, Random, specOf } from 'sluicegate-testkit'
import { channelPair, fleet, START_MS, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { createLimiter } from '../create-limiter.js'
import { allOf, concurrency, type Decision, fixedWindow, levels, manualClock, slidingLog, tokenBucket } from '../index.js'
import { primary } from './primary.js'
import { serveLimiter } from './serve-limiter.js'

const USER = tokenBucket({ limit: 100, window: '1s', burst: 60, name: 'user' })
const TEAM = fixedWindow({ limit: 200, window: '1h', name: 'team' })
const BOTH = allOf([USER, TEAM], { name: 'both' })
const KEYS = ['u', 't'] as const

function requestsIn(messages: readonly unknown[], verb: string): number {
  const requests = messages.flatMap((message) => (Array.isArray(message) && Array.isArray(message[3]) ? message[3] : []))
  return requests.filter((request) => Array.isArray(request) && request[1] === verb).length
}

test('several policies are leased apart from the primary, and spent together', async () => {
  const { limiter, served, pair } = fleet(BOTH)
  await turns()
  const first = await Promise.all(Array.from({ length: 20 }, () => limiter.take(KEYS)))
  assert.ok(first.every(({ allowed, source, parts }) => allowed && source === 'lease' && parts?.length === 2))
  assert.deepEqual([requestsIn(pair.toPrimary, 'lease'), requestsIn(pair.toPrimary, 'take')], [2, 0])
  // A lease of 100 ms leaves room for the ten that flow back meanwhile.
  assert.deepEqual(
    served.limiter.peek(KEYS).parts?.map(({ remaining }) => remaining),
    [30, 180],
  )
  const other = await limiter.take(['v', 't'])
  assert.equal(other.allowed, true)
  await limiter.reset(KEYS)
  assert.deepEqual(
    served.limiter.peek(KEYS).parts?.map(({ remaining }) => remaining),
    [60, 200],
  )
})

test('I1: workers of one primary go over none of several policies, while each spends as late as it can', async () => {
  const policy = allOf([USER, TEAM, slidingLog({ limit: 90, window: '5s', name: 'all' })], { name: 'three' })
  let there = 0
  for (let seed = 1; seed <= 25; seed++) {
    const random = new Random(seed)
    const clock = manualClock(START_MS)
    const served = serveLimiter(policy, { clock })
    const workers = Array.from({ length: 3 }, () => {
      const pair = channelPair()
      served.serve(pair.worker)
      // What came too late to be spent is an outage, in which a share would come on top.
      return createLimiter(policy, { store: primary({ process: pair.parent }), clock, timeout: 60_000, outage: 'closed' })
    })
    await turns()
    const spent = new Map<string, Admission[]>()
    const count = (keys: readonly string[], cost: number): void => {
      for (const [part, key] of keys.entries()) {
        const name = `${part} ${key}`
        spent.set(name, [...(spent.get(name) ?? []), { atUs: Math.round(clock.nowMs() * 1000), cost }])
      }
    }
    // What the primary decides counts at its time, whenever the answer comes.
    const { limiter } = served
    const takeThere = limiter.take.bind(limiter)
    limiter.take = (keys, cost = 1) => {
      const decision = takeThere(keys, cost)
      if (decision.allowed) count(keys as readonly string[], cost)
      there++
      return decision
    }
    const taken = async (keys: readonly string[], cost: number): Promise<void> => {
      const { allowed, source } = await random.pick(workers).take(keys, cost)
      if (allowed && source === 'lease') count(keys, cost)
    }
    const takes: Promise<void>[] = []
    for (let i = 0; i < 400; i++) {
      takes.push(taken([random.pick(['a', 'b']), 'team', 'all'], random.pick([1, 1, 2, 7])))
      if (random.chance(0.3)) await turns(random.integer(1, 5))
      clock.advance(random.pick([0, 1, 5, 60, 99]))
    }
    await turns(60)
    await Promise.all(takes)
    for (const worker of workers) worker.close()
    assert.equal(spent.size, 4)
    for (const [name, admissions] of spent) {
      const part = policy.policies[Number(name[0])] as (typeof policy.policies)[number]
      assert.equal(firstOver(specOf(part), admissions), undefined, `seed ${seed}, ${name}`)
    }
  }
  assert.ok(there > 25)
})

test('a policy that denies costs the others no more than what was on its way', async () => {
  const { limiter, served, clock } = fleet(BOTH)
  await turns()
  let passed = 0
  for (let ms = 0; ms < 2000; ms++) {
    const answer = limiter.take(KEYS)
    if (answer instanceof Promise) await turns()
    if ((await answer).allowed) passed++
    clock.advance(1)
  }
  const left = served.limiter.peek('t').parts?.[1]?.remaining as number
  assert.ok(passed >= 190 && passed <= 200, `${passed}`)
  assert.ok(left + passed <= 200)
})

test('where one of them cannot be leased the primary decides each take', async () => {
  const { limiter, pair } = fleet(allOf([USER, concurrency({ limit: 3, ttl: '1h' })], { name: 'permits' }))
  await turns()
  const taken: Decision[] = []
  for (let i = 0; i < 4; i++) taken.push(await limiter.take('a'))
  assert.deepEqual(
    taken.map(({ allowed, source }) => `${allowed} ${source}`),
    ['true store', 'true store', 'true store', 'false store'],
  )
  assert.equal(requestsIn(pair.toPrimary, 'lease'), 0)
})

test('a larger cost is handed out whole or not at all, so that nothing is taken from the others for it', async () => {
  const { limiter, served, pair } = fleet(fixedWindow({ limit: 20, window: '1h', name: 'few' }))
  await turns()
  served.limiter.take('k', 12)
  const denied = await Promise.all([limiter.take('k', 10), limiter.take('k', 10)])
  assert.ok(denied.every(({ allowed }) => !allowed))
  assert.ok(requestsIn(pair.toPrimary, 'lease') >= 1)
  assert.equal(served.limiter.peek('k').remaining, 8)
  assert.equal((await limiter.take('k', 8)).allowed, true)
})

test('callers who come before the first message of the primary share a lease, as those who come later do', async () => {
  for (const policy of [BOTH, allOf([TEAM], { name: 'one' })]) {
    const { limiter, pair } = fleet(policy)
    const key = policy === BOTH ? KEYS : { team: 't' }
    const taken = await Promise.all(Array.from({ length: 40 }, () => limiter.take(key)))
    assert.ok(taken.every(({ allowed, source }) => allowed && source === 'lease'))
    assert.deepEqual([requestsIn(pair.toPrimary, 'take'), requestsIn(pair.toPrimary, 'lease')], [0, policy.policies.length])
  }
})

test('keys by name may come before the first message, and the primary may have the levels in another order', async () => {
  const { limiter, served } = fleet(levels({ team: TEAM, user: USER }, { name: 'both' }), {
    served: createLimiter(BOTH, { clock: manualClock(START_MS) }),
  })
  const key = { team: 't', user: 'u' }
  const early = limiter.take(key, 5)
  key.team = 'changed since'
  assert.equal((await early).allowed, true)
  assert.deepEqual(
    served.limiter.peek(['u', 't']).parts?.map(({ policy, remaining }) => [policy, remaining]),
    [
      ['user', 55],
      ['team', 195],
    ],
  )
  await assert.rejects(async () => fleet(BOTH).limiter.take({ team: 't' }), {
    code: 'KEY_INVALID',
    message: /one key for each of user, team/,
  })
})

test('who comes before the first message waits for it no longer than for an answer, and then decides without', async () => {
  const clock = manualClock(START_MS)
  const { parent } = channelPair()
  const limiter = createLimiter(BOTH, { store: primary({ process: parent }), clock, timeout: 100, outage: 'open' })
  const early = [limiter.take(KEYS), limiter.take({ team: 't', user: 'u' })]
  for (let ms = 0; ms < 200; ms += 10) {
    clock.advance(10)
    await turns()
  }
  const decisions = await Promise.all(early)
  assert.ok(decisions.every(({ allowed, source }) => allowed && source === 'outage'))
  assert.deepEqual([limiter.stats().admittedTokens, limiter.stats().outageTokens], [2, 2])
  await assert.rejects(async () => limiter.take(KEYS, 0), { code: 'COST_INVALID' })
  await assert.rejects(async () => limiter.take(['one'], 1), { code: 'KEY_INVALID' })
  limiter.close()
  await assert.rejects(async () => limiter.take(KEYS), { code: 'CLOSED' })
})
