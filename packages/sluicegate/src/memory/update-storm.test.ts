import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { CREW_ALGORITHMS, crewFor, policyOf, type StormReport, shortOrLong } from 'sluicegate-testkit'
import { createLimiter, type Policy, tokenBucket } from '../index.js'
import { createMemory, sectionAt } from './core-memory.js'
import { OpenCore } from './open-core.js'
import { PolicyChange, publishedPolicy } from './policy-record.js'

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
  const busy = new OpenCore(createMemory(end, false), address, host)
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
