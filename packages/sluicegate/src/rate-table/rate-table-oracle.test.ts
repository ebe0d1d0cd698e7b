import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CellReply, Random, RedisCell, shortOrLong } from 'sluicegate-testkit'
import { randomCalls, START_US } from 'sluicegate-testkit/twins/compare-twins.js'
import { manualClock } from '../time/clock.js'
import { createRateTable } from './create-rate-table.js'
import type { Throttled } from './rate-table.js'

const HISTORIES = shortOrLong(2_000, 12_000)
const HISTORIES_PER_TABLE = 2_000
const SEED = 20_261

test('random calls of any rates decide as redis-cell does, in all five numbers', () => {
  for (let run = 0; run < HISTORIES / HISTORIES_PER_TABLE; run++) compareHistories(SEED + run)
})

function compareHistories(seed: number): void {
  const clock = manualClock(START_US / 1000)
  using table = createRateTable({ clock })
  const cell = new RedisCell()
  const random = new Random(seed)
  let nowUs = START_US
  for (let history = 0; history < HISTORIES_PER_TABLE; history++) {
    const key = `key ${history}`
    const calls = randomCalls(random, nowUs)
    for (const [i, call] of calls.entries()) {
      nowUs = call.nowUs
      clock.set(nowUs / 1000)
      const expected = cell.throttle(key, { ...call.rate, quantity: call.quantity, nowNs: BigInt(nowUs) * 1000n })
      const actual = numbersOf(table.throttle(key, call.rate, call.quantity))
      assert.deepEqual(
        actual,
        withinLimit(expected as CellReply),
        `seed ${seed}, history ${history}: ${JSON.stringify(calls.slice(0, i + 1))}`,
      )
    }
  }
  assert.equal(table.stats().evictions + table.stats().refusals, 0)
}

/** The one difference: redis-cell divides whole microseconds, and so may report more tokens than there are. */
function withinLimit([limited, limit, remaining, retryAfterS, resetAfterS]: CellReply): CellReply {
  return [limited, limit, Math.max(0, Math.min(remaining, limit)), retryAfterS, resetAfterS]
}

function numbersOf({ limited, limit, remaining, retryAfterS, resetAfterS }: Throttled): CellReply {
  return [limited ? 1 : 0, limit, remaining, retryAfterS, resetAfterS]
}
