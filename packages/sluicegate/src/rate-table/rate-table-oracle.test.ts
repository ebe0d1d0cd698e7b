import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CellReply, Random, RedisCell, shortOrLong } from 'sluicegate-testkit'
import { manualClock } from '../clock.js'
import type { CallRate } from './call-rate.js'
import { createRateTable } from './create-rate-table.js'
import type { Throttled } from './rate-table.js'

const HISTORIES = shortOrLong(8_000, 200_000)
const HISTORIES_PER_TABLE = 2_000
const CALLS = 12
const START_US = 1_700_000_000_000_000
const SEED = 20_261
const DAY_US = 86_400_000_000
/** Larger numbers are no exact doubles. */
const MOST_TOKENS = 2 ** 53 - 3
/** Rare, and long enough that the time base of the table moves. */
const LONGEST_PAUSE_US = 30 * DAY_US

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
    const rates = Array.from({ length: random.integer(1, 2) }, () => randomRate(random))
    const calls: string[] = []
    for (let call = 0; call < CALLS; call++) {
      const rate = random.pick(rates)
      nowUs += randomPauseUs(random, rate)
      clock.set(nowUs / 1000)
      const quantity = randomQuantity(random, rate)
      calls.push(`${nowUs}: ${JSON.stringify(rate)} ${quantity}`)
      const expected = cell.throttle(key, { ...rate, quantity, nowNs: BigInt(nowUs) * 1000n })
      const actual = numbersOf(table.throttle(key, rate, quantity))
      assert.deepEqual(actual, withinLimit(expected as CellReply), `seed ${seed}, history ${history}:\n${calls.join('\n')}`)
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

/** From a token a nanosecond to one in a year, and bursts up to what 400 days refill. */
function randomRate(random: Random): CallRate {
  const periodS = random.pick([1, 1, 2, 60, 60, 3600, 86_400, 2_592_000, 31_536_000, random.integer(1, 10_000_000)])
  const count = random.pick([
    1,
    7,
    30,
    100,
    3000,
    random.magnitude(1, 1000),
    random.magnitude(1, 1_000_000),
    random.magnitude(1, Math.min(periodS * 1e9, MOST_TOKENS)),
  ])
  const most = Math.floor((400 * 86_400 * count) / periodS) - 1
  const burst = random.pick([0, 1, 15, count - 1, random.integer(0, 100), random.magnitude(1, 1_000_000_000)])
  return { maxBurst: Math.max(0, Math.min(burst, most, MOST_TOKENS)), count, periodS }
}

function randomQuantity(random: Random, { maxBurst }: CallRate): number {
  return random.pick([1, 1, 1, 0, 2, maxBurst, maxBurst + 1, maxBurst + 2, random.integer(0, maxBurst + 1), 4_000_000_000])
}

function randomPauseUs(random: Random, { count, periodS }: CallRate): number {
  if (random.chance(1 / 2000)) return random.integer(0, LONGEST_PAUSE_US)
  const intervalUs = Math.ceil((periodS * 1e6) / count)
  return Math.min(random.pick([0, 0, 1, random.integer(0, 1000), random.integer(0, intervalUs), intervalUs, 3 * intervalUs]), DAY_US)
}
