import type { CallRate } from '../../../sluicegate/dist/rate-table/call-rate.js'
import type { Random } from '../random.js'

/** A call of a rate table at a time. */
export interface RandomCall {
  readonly rate: CallRate
  readonly quantity: number
  readonly nowUs: number
}

const CALLS = 12
export const START_US = 1_700_000_000_000_000
const DAY_US = 86_400_000_000
/** Larger numbers are no exact doubles. */
const MOST_TOKENS = 2 ** 53 - 3
/** Rare, and long enough that the time base of a table in memory moves. */
const LONGEST_PAUSE_US = 30 * DAY_US

/** Some calls on one key, of one rate or two, from `fromUs` on. */
export function randomCalls(random: Random, fromUs: number = START_US): RandomCall[] {
  const rates = Array.from({ length: random.integer(1, 2) }, () => randomRate(random))
  let nowUs = fromUs
  return Array.from({ length: CALLS }, () => {
    const rate = random.pick(rates)
    nowUs += randomPauseUs(random, rate)
    return { rate, quantity: randomQuantity(random, rate), nowUs }
  })
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
