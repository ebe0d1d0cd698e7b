import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crewFor } from 'sluicegate-testkit'
import { allOf, createLimiter, fixedWindow, gcra, manualClock, slidingLog, slidingWindow, tokenBucket } from './index.js'

// Several policies at once, from several threads: who checks all of them first and updates them then, unlocked, lets too many through.

const WORKERS = 4
const START_MS = 1_789_000_000_000

test('I1: threads that take from several policies at once admit what the tightest of them allows, and not one more', async (t) => {
  const clock = manualClock(START_MS)
  const parts = [
    tokenBucket({ limit: 60, window: '1s', burst: 60 }),
    fixedWindow({ limit: 50, window: '1s' }),
    slidingWindow({ limit: 70, window: '1s' }),
    slidingLog({ limit: 55, window: '1s' }),
    gcra({ limit: 80, window: '1s', burst: 80 }),
  ]
  const limiter = createLimiter(allOf(parts), { clock, maxKeys: 100 })
  const crew = crewFor(t, WORKERS, { handle: limiter.handle() })
  const keys = Array.from({ length: 20 }, (_, i) => `key ${i}`)
  for (let round = 0; round < 10; round++) {
    const passed = (await crew.ask({ kind: 'take', keys, rounds: 40 })) as number[][]
    for (const i of keys.keys()) {
      // Where threads race for one key a take may be denied in vain, so fewer may pass now; the rest has to be there still.
      const inRace = sum(passed.map((byKey) => byKey[i] ?? 0))
      assert.ok(inRace <= 50, `${inRace} passed`)
      let rest = 0
      while (limiter.take(keys[i] as string).allowed) rest++
      assert.equal(inRace + rest, 50, `round ${round}, key ${i}`)
    }
    // Until nothing of this round counts any more, in any of them.
    clock.advance(3000)
  }
})

test('I4: what threads are denied is charged to no policy', async (t) => {
  const clock = manualClock(START_MS)
  const parts = [
    fixedWindow({ limit: 100_000, window: '1h' }),
    tokenBucket({ limit: 10, window: '1h' }),
    slidingLog({ limit: 1000, window: '1h' }),
  ]
  const limiter = createLimiter(allOf(parts), { clock, maxKeys: 100 })
  const crew = crewFor(t, WORKERS, { handle: limiter.handle() })
  const passed = (await crew.ask({ kind: 'take', keys: ['hot'], rounds: 2000 })) as number[][]
  let all = sum(passed.flat())
  while (limiter.take('hot').allowed) all++
  assert.equal(all, 10)
  assert.deepEqual(
    limiter.peek('hot').parts?.map(({ remaining }) => remaining),
    [99_990, 0, 990],
  )
})

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0)
}
