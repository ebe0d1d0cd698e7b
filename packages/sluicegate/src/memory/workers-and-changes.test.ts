import assert from 'node:assert/strict'
import { after } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { CREW_ALGORITHMS, crewFor, everyNth, longTest, oracleFor, policyOf, Random } from 'sluicegate-testkit'
import { createLimiter, gcra, manualClock, tokenBucket } from '../index.js'

// Threads at work while something else changes under them: the time base, the policy, the keys in the table.

const WORKERS = 4
const START_MS = 1_789_000_000_000
const HOUR_MS = 3_600_000
/** The number of updates that make a storm. The workers are asked for more rounds until it is reached. */
const ENOUGH = 40
const MOST_ROUNDS = 50

const crew = crewFor({ after }, WORKERS)

longTest('I1, I2: while the time base moves, hour after hour, workers admit what the oracle does', async () => {
  // A prime: the finest units there are, whose time base moves every few hours. That of the other forms moves in workers.test.ts.
  const spec = { limit: 999_983, windowMs: 366 * 24 * HOUR_MS, burst: 5000 }
  for (const policyOf of [gcra, tokenBucket]) {
    const clock = manualClock(START_MS)
    const limiter = createLimiter(policyOf({ limit: spec.limit, window: spec.windowMs, burst: spec.burst }), { clock, maxKeys: 100 })
    const oracle = oracleFor({ algorithm: 'gcra', ...spec })
    await crew.attach({ handle: limiter.handle() })
    const random = new Random(4)
    const keys = Array.from({ length: 10 }, (_, i) => `key ${i}`)
    for (const key of keys) assert.deepEqual(limiter.take(key, spec.burst).allowed, oracle.take(key, spec.burst, clock.nowMs()).allowed)
    for (let round = 0; round < 20; round++) {
      clock.advance(random.integer(0, 10 * HOUR_MS))
      const passed = (await crew.ask({ kind: 'take', keys, rounds: 300 })) as number[][]
      for (const [i, key] of keys.entries()) {
        let expected = 0
        while (expected < WORKERS * 300 && oracle.take(key, 1, clock.nowMs()).allowed) expected++
        assert.equal(sumOf(passed, i), expected, `round ${round}, ${key}`)
      }
    }
  }
})

// In a short run each algorithm has two of the four at most, by turns.
for (const [i, { name, cost, specOf, keyOf }] of CREW_ALGORITHMS.entries()) {
  everyNth(i, 6)(`I1, I2 ${name}: a storm of updates that change nothing gives no token and takes none`, async () => {
    const spec = specOf(200, HOUR_MS)
    const limiter = createLimiter(policyOf(spec), { clock: manualClock(START_MS), maxKeys: 20 * MOST_ROUNDS })
    await crew.attach({ handle: limiter.handle() })
    let updates = 0
    for (let round = 0; updates < ENOUGH; round++) {
      assert.ok(round < MOST_ROUNDS, `${updates} updates`)
      const keys = Array.from({ length: 20 }, (_, i) => keyOf(`round ${round} key ${i}`))
      const taking = crew.ask({ kind: 'take', keys, rounds: 250, cost })
      await meanwhile(taking, () => limiter.update(policyOf(spec, { name: `update ${updates++}` })))
      const passed = (await taking) as number[][]
      for (const i of keys.keys()) assert.equal(sumOf(passed, i), 200)
    }
    assert.equal(limiter.stats().contentions, 0)
  })

  everyNth(i + 1, 6)(
    `I1, I2 ${name}: updates to less and back to more, in a race, give at most what they take off, and take nothing`,
    async () => {
      const [much, less] = [200, 120]
      const [looser, tighter] = [policyOf(specOf(much, HOUR_MS)), policyOf(specOf(less, HOUR_MS))]
      const limiter = createLimiter(looser, { clock: manualClock(START_MS), maxKeys: 20 * MOST_ROUNDS })
      await crew.attach({ handle: limiter.handle() })
      // A key that spent more than the new limit has spent the new limit. Requests and permits stay what they were.
      const isForgiving = ['token-bucket', 'gcra', 'fixed-window', 'sliding-window'].includes(looser.algorithm)
      let cuts = 0
      for (let round = 0; cuts < ENOUGH; round++) {
        assert.ok(round < MOST_ROUNDS, `${cuts} times tighter and looser`)
        const keys = Array.from({ length: 20 }, (_, i) => keyOf(`round ${round} key ${i}`))
        const before = cuts
        const taking = crew.ask({ kind: 'take', keys, rounds: 250, cost })
        await meanwhile(taking, () => {
          limiter.update(tighter)
          limiter.update(looser)
          cuts++
        })
        const passed = (await taking) as number[][]
        const most = isForgiving ? much + (cuts - before) * (much - less) : much
        for (const [i, key] of keys.entries()) {
          let all = sumOf(passed, i)
          while (limiter.take(key, cost).allowed) all++
          assert.ok(all >= much && all <= most, `${key}: ${all} of ${most}`)
        }
      }
      assert.equal(limiter.stats().contentions, 0)
    },
  )

  everyNth(i, 6)(
    `I7 ${name}: in a crowd of workers with ever new keys, those in debt and those blocked are never let through`,
    async () => {
      const limiter = createLimiter(policyOf(specOf(5, HOUR_MS)), { clock: manualClock(START_MS), maxKeys: 60 })
      const abusers = Array.from({ length: 20 }, (_, i) => keyOf(`abuser ${i}`))
      for (const [i, key] of abusers.entries()) {
        if (i % 2 === 0) limiter.penalize(key, 30 * cost)
        else limiter.block(key, '1h')
      }
      await crew.attach({ handle: limiter.handle() })
      for (let round = 0; round < 5; round++) {
        const newcomers = Array.from({ length: 200 }, (_, i) => keyOf(`round ${round} newcomer ${i}`))
        const passed = (await crew.ask({ kind: 'take', keys: [...newcomers, ...abusers], rounds: 2, cost })) as number[][]
        for (const i of abusers.keys()) assert.equal(sumOf(passed, newcomers.length + i), 0, `abuser ${i}`)
      }
      assert.ok(limiter.stats().evictions > 100)
    },
  )

  everyNth(i + 1, 6)(`I1 ${name}: what evictions in a crowd give away is at most what was forgotten`, async () => {
    const limiter = createLimiter(policyOf(specOf(6, HOUR_MS)), { clock: manualClock(START_MS), maxKeys: 40 })
    await crew.attach({ handle: limiter.handle() })
    const keys = Array.from({ length: 200 }, (_, i) => keyOf(`key ${i}`))
    const passed = (await crew.ask({ kind: 'take', keys, rounds: 10, cost })) as number[][]
    const tokens = cost * keys.reduce((all, _, i) => all + sumOf(passed, i), 0)
    const { evictions } = limiter.stats()
    // A key that may be forgotten would still pass a take of 1: it owes at most the limit less one.
    assert.ok(tokens <= keys.length * 6 * cost + evictions * (6 * cost - 1), `${tokens} passed, ${evictions} evictions`)
    assert.ok(evictions > 0)
  })
}

/** Again and again, until the work is done. */
async function meanwhile(work: Promise<unknown>, act: () => void): Promise<void> {
  let isDone = false
  const done = work.finally(() => {
    isDone = true
  })
  while (!isDone) {
    act()
    await nextTurn()
  }
  await done
}

/** What all workers passed on one key. */
function sumOf(passed: readonly (readonly number[])[], key: number): number {
  return passed.reduce((sum, byKey) => sum + (byKey[key] ?? 0), 0)
}
