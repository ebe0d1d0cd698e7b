import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { fleetHoldMismatch, foundWith, LateAnswers, turnsPassed } from 'sluicegate-testkit/holds/fleet-history.js'
import { createLimiter } from '../create-limiter.js'
import type { ManualClock, Policy } from '../index.js'
import { StoredHolds } from '../shared/holds/stored-holds.js'
import { memoryStore } from '../store-testing/index.js'
import { casStore } from './index.js'
import { SwapBackend } from './swap-backend.js'

const HISTORIES = shortOrLong(20, 150)
/** A fault is found by one of so many. */
const UNTIL_FOUND = 100

/** What is wrong with a random history over a store that swaps. */
function mismatch(seed: number, mode: 'exact' | 'leased' = 'exact'): Promise<string | undefined> {
  const open = (clock: ManualClock) => {
    const store = casStore(memoryStore({ clock }))
    return {
      limiter: (policy: Policy) => createLimiter(policy, { store, clock, mode, outage: 'closed', timeout: 60_000 }),
      settled: turnsPassed,
    }
  }
  return fleetHoldMismatch(seed, open, { mode })
}

test(`processes that share a store spend no more than the policy, and what lost ones held is free again, in ${HISTORIES} random histories`, async () => {
  for (const seed of seedsFrom(1, HISTORIES)) assert.equal(await mismatch(seed), undefined)
})

test(`what is held and what is leased are within the policy together, in ${HISTORIES} random histories`, async () => {
  for (const seed of seedsFrom(1, HISTORIES)) assert.equal(await mismatch(seed, 'leased'), undefined)
})

test(`answers that come after their call was given up, in any order, let nobody spend too much, and leave nothing charged or held, in ${HISTORIES} random histories`, async (t) => {
  const { execute } = SwapBackend.prototype
  let late: LateAnswers | undefined
  t.mock.method(SwapBackend.prototype, 'execute', function (this: SwapBackend, ...asked: Parameters<typeof execute>) {
    const answer = execute.apply(this, asked)
    return late === undefined ? answer : late.of(this, answer)
  })
  for (const seed of seedsFrom(1, HISTORIES)) {
    const open = (clock: ManualClock) => {
      const store = casStore(memoryStore({ clock }))
      const answers = new LateAnswers(seed, clock)
      late = answers
      return {
        limiter: (policy: Policy) => createLimiter(policy, { store, clock, mode: 'exact', outage: 'closed', timeout: 100 }),
        settled: turnsPassed,
        calm: () => answers.calm(),
      }
    }
    assert.equal(await fleetHoldMismatch(seed, open, { isLate: true, updates: false }), undefined)
  }
})

type Move = typeof StoredHolds.prototype.move

/** Nothing too much passes with it, and what is missing may have been leased. */
const TOO_LITTLE = 'a report leaves the grant that it is of'

const FAULTS: Readonly<Record<string, () => PropertyDescriptorMap>> = {
  'what is held counts nowhere': () => ({ total: { get: () => 0 } }),
  'what was granted to a lost process is free': () => {
    const { ended } = StoredHolds.prototype
    return {
      ended: {
        value(this: StoredHolds, nowUs: number) {
          ended.call(this, nowUs)
          return []
        },
      },
    }
  },
  [TOO_LITTLE]: () => {
    const move: Move = StoredHolds.prototype.move
    return {
      move: {
        value(this: StoredHolds, us: number, held: number, granted: number) {
          move.call(this, us, held, Math.max(0, granted))
        },
      },
    }
  },
}

const MODES = Object.keys(FAULTS).flatMap((fault) => [
  [fault, 'exact'] as const,
  ...(fault === TOO_LITTLE ? [] : [[fault, 'leased'] as const]),
])

for (const [fault, mode] of MODES) {
  test(`a store where ${fault} would be found, ${mode}`, async () => {
    const planted = (FAULTS[fault] as () => PropertyDescriptorMap)()
    const found = await foundWith(StoredHolds.prototype, planted, seedsFrom(1, UNTIL_FOUND), (seed) => mismatch(seed, mode))
    assert.notEqual(found, undefined)
  })
}
