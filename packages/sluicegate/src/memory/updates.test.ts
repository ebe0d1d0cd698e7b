import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { CREW_ALGORITHMS, crewFor, policyOf, type StormReport, shortOrLong } from 'sluicegate-testkit'
import { createLimiter } from '../create-limiter.js'
import { concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import type { Limiter } from '../limiter.js'
import { manualClock } from '../time/clock.js'
import { createMemory, sectionAt } from './core-memory.js'
import { OpenCore } from './open-core.js'
import { PolicyChange, publishedPolicy } from './policy-record.js'

const START_MS = 1_789_000_000_000
const MIB = 2 ** 20

test('an update that changes no number changes nothing about a key: not what is booked ahead, not a penalty', () => {
  const policies: readonly Policy[] = [
    tokenBucket({ limit: 1, window: '1s', burst: 2 }),
    gcra({ limit: 1, window: '1s', burst: 1 }),
    fixedWindow({ limit: 2, window: '1s' }),
    slidingWindow({ limit: 2, window: '1s' }),
    slidingWindow({ limit: 100_000, window: '1s', name: 'wide' }),
    slidingLog({ limit: 2, window: '1s' }),
    slidingLog({ limit: 2, window: '1s', name: 'short' }),
  ]
  for (const policy of policies) {
    const [still, updated] = [0, 1].map(() => createLimiter(policy, { clock: manualClock(START_MS) })) as [Limiter, Limiter]
    for (const limiter of [still, updated]) {
      for (let i = 0; i < 5; i++) limiter.reserve('booked', policy.burst)
      limiter.take('penalized')
      limiter.penalize('penalized', 7 * policy.burst)
    }
    updated.update({ ...policy, name: 'another name' } as Policy)
    updated.update(policy)
    for (const key of ['booked', 'penalized']) assert.deepEqual(updated.peek(key), still.peek(key), `${policy.name}, ${key}`)
  }
})

test('waits keep their order over such an update, and no take passes between them', async () => {
  const clock = manualClock(START_MS)
  const policy = gcra({ limit: 1, window: '1s', burst: 1 })
  const limiter = createLimiter(policy, { clock })
  const passed: string[] = []
  limiter.take('k')
  for (let i = 0; i < 3; i++) void limiter.wait('k').then(() => passed.push(`waiter at ${clock.nowMs() - START_MS}`))
  limiter.update(policy)
  for (let second = 1; second <= 4; second++) {
    clock.advance(1000)
    await Promise.resolve()
    await new Promise((done) => setImmediate(done))
    if (limiter.take('k').allowed) passed.push(`take at ${clock.nowMs() - START_MS}`)
  }
  assert.deepEqual(passed, ['waiter at 1000', 'waiter at 2000', 'waiter at 3000', 'take at 4000'])
})

test('I6: changes there and back use the memory of two policies, however many they are', () => {
  const pairs: readonly (readonly [Policy, Policy])[] = [
    [slidingWindow({ limit: 60_000, window: '1m' }), slidingWindow({ limit: 70_000, window: '1m' })],
    [slidingLog({ limit: 1_000, window: '1h' }), slidingLog({ limit: 1_000, window: '30d' })],
    [concurrency({ limit: 10 }), concurrency({ limit: 20 })],
  ]
  for (const [one, other] of pairs) {
    const limiter = createLimiter(one, { clock: manualClock(START_MS), maxKeys: 100 })
    limiter.take('k')
    limiter.update(other)
    limiter.update(one)
    const { memoryBytes } = limiter.stats()
    for (let i = 0; i < 100; i++) limiter.update(i % 2 === 0 ? other : one)
    assert.equal(limiter.stats().memoryBytes, memoryBytes)
    assert.equal(limiter.peek('k').remaining, one.limit - 1)
  }
})

test('I6: a limit raised step by step takes a few times the memory of the last step', () => {
  const limiter = createLimiter(slidingLog({ limit: 10, window: '1h' }), { clock: manualClock(START_MS), maxKeys: 10 })
  limiter.take('k', 3)
  for (let limit = 11; limit <= 3_000; limit++) limiter.update(slidingLog({ limit, window: '1h' }))
  assert.equal(limiter.peek('k').remaining, 2_997)
  assert.ok(limiter.stats().memoryBytes < 4 * MIB, `${limiter.stats().memoryBytes} bytes`)
})

test('a previous count that an update has merged into the window does not come back, whatever else is changed', () => {
  const [wide, packed] = [slidingWindow({ limit: 100_000, window: '1m' }), slidingWindow({ limit: 60_000, window: '1m' })]
  const clock = manualClock(START_MS)
  const limiter = createLimiter(wide, { clock, maxKeys: 10 })
  limiter.take('k', 50_000)
  clock.advance(60_000)
  limiter.take('k')
  const { remaining } = limiter.peek('k')
  for (let i = 1; i <= 64; i++) {
    limiter.update(i % 2 === 0 ? wide : packed)
    if (i % 2 === 0) assert.equal(limiter.peek('k').remaining, remaining, `after ${i} updates`)
  }
})

test('nor since when a key owes nothing, or a block is over: a clock that steps back finds it as it would have been', () => {
  for (const make of [tokenBucket, gcra]) {
    const policy = make({ limit: 2, window: '1s' })
    const answers = [0, 3].map((updates) => {
      const clock = manualClock(START_MS)
      const limiter = createLimiter(policy, { clock })
      limiter.take('taken', 2)
      limiter.block('lifted', '100h')
      limiter.block('lifted', 0)
      clock.advance(24 * 3_600_000)
      for (let i = 0; i < updates; i++) limiter.update(policy)
      clock.advance(-12 * 3_600_000)
      return ['taken', 'lifted'].map((key) => limiter.take(key, 2))
    })
    assert.deepEqual(answers[0], answers[1])
    assert.ok(answers[1]?.every(({ allowed }) => allowed))
  }
})

const WORKERS = shortOrLong(2, 4)
const KEYS = 50
const TAKES = 5
const HOUR_MS = 3_600_000
const START_US = 1_789_000_000_000_000
/** More than any of these logs'. */
const TICK_US = 20_000
/** Under none of them does a token come back while the test runs. */
const WINDOWS_MS = [1, 59, 2, 97, 7].map((days) => days * 24 * HOUR_MS)
/** With each round an update and a take. */
const ROUNDS = shortOrLong(40, 300)

const crew = crewFor({ after }, WORKERS)

for (const { name, cost, specOf, keyOf } of CREW_ALGORITHMS) {
  test(`I1, I2 ${name}: a storm of updates from several threads gives no token, takes none and mixes no two policies`, async () => {
    const policies = WINDOWS_MS.map((windowMs, i) =>
      policyOf(specOf(TAKES, windowMs), { name: String.fromCharCode(97 + i).repeat(20 * (i + 1)) }),
    )
    const keys = Array.from({ length: KEYS }, (_, i) => keyOf(`key ${i}`))
    // Every reading is another one, as threads would have it.
    const clockUs = new BigInt64Array(new SharedArrayBuffer(8)).fill(BigInt(START_US))
    const clock = { nowMs: () => Number(Atomics.add(clockUs, 0, 1n)) / 1000 }
    const limiter = createLimiter(policies[0] as (typeof policies)[number], { clock, maxKeys: 100 })
    await crew.attach({ handle: limiter.handle(), clockUs, stepUs: 1 })
    const reports = (await crew.ask({ kind: 'storm', keys, cost, policies, rounds: ROUNDS })) as StormReport[]
    assert.deepEqual(
      reports.flatMap(({ torn }) => torn),
      [],
    )
    // Logs whose times are in coarse ticks are closed for less than one after each request.
    Atomics.add(clockUs, 0, BigInt(TICK_US))
    for (const [i, key] of keys.entries()) {
      let passed = reports.reduce((sum, { passed }) => sum + (passed[i] ?? 0), 0)
      while (limiter.take(key, cost).allowed) passed++
      assert.equal(passed, TAKES, `${key}`)
    }
  })
}

test('a writer of a policy may pause for any number of changes and spoils none of them', () => {
  const policyNamed = (name: string, limit: number): Policy => tokenBucket({ limit, window: '30d', burst: 5, name })
  const [first, second, third] = [policyNamed('a'.repeat(20), 1), policyNamed('b'.repeat(40), 2), policyNamed('c'.repeat(60), 7)]
  const host = { policyChanged: () => undefined, calendarWindowStart: () => 0, calendarWindowEnd: () => 0 }
  const { address, lines, end } = sectionAt(0, { maxKeys: 10, stride: 0 })
  const busy = new OpenCore(createMemory(end), address, host)
  busy.core.create(address, lines, false)
  new PolicyChange(busy, first).publish(1e12)
  const slow = new OpenCore(busy.memory, address, host)
  slow.core.attach(address)
  const block = slow.core.propose()
  for (let change = 1; change <= 200; change++) {
    new PolicyChange(busy, change % 2 === 0 ? first : second).publish(1e12 + change)
    const description = slow.description(block)
    for (let i = 0; i < third.name.length; i++) description.setUint8(29 + i, third.name.charCodeAt(i))
    assert.deepEqual(publishedPolicy(busy), change % 2 === 0 ? first : second, `change ${change}`)
  }
})
