import type { OracleKey } from '../oracle/oracle.js'
import { type AlgorithmName, type FixedWindowSpec, mostCost, type PolicySpec, type SinglePolicySpec } from '../oracle/oracle.js'
import { windowsOf } from '../oracle/window-oracles.js'
import { Random } from '../random.js'
import type { Place, Sequence, Step } from './draws.js'
import { DAY_MS, finerThanUs, HOUR_MS, LARGE_SEEDS, LAST_MS, MOST_ENDS, MOST_KEYS, randomBlockMs, randomCost, YEAR_MS } from './draws.js'
import { nextPolicy, randomPolicyOf } from './random-policy.js'
import { CERTAIN_MS, randomRateGapMs, rateSequenceOf } from './rate-sequences.js'

/**
 * How long until the next step of a sequence that stands at `atMs`: often to an edge of the policy, such as the end of a window or
 * the time at which what was asked at one of `pastMs` ends. Negative: the clock steps back.
 */
function randomGapMs(random: Random, policy: SinglePolicySpec, atMs: number, pastMs: readonly number[]): number {
  if ('burst' in policy) return randomRateGapMs(random, policy)
  const { windowMs } = policy
  const edgeMs = random.pick([0, 0, 0, -0.001, 0.001, 1, -1, 0.004])
  switch (random.integer(0, 11)) {
    case 0:
    case 1:
    case 2:
      return 0
    case 3:
      return random.magnitude(1, 1000) / 1000
    case 4:
      return random.fraction() * windowMs
    case 5: // the clock steps back
      return -random.pick([
        0.001,
        1,
        1000,
        random.fraction() * windowMs,
        windowMs,
        random.fraction() * 3 * windowMs,
        random.fraction() * HOUR_MS,
      ])
    case 6: // to just before the window
      return startOfWindowMs(policy, atMs) - atMs - 0.001
    case 7:
      return random.chance(0.2) ? random.fraction() * 10 * YEAR_MS : random.fraction() * 40 * DAY_MS
    case 8:
    case 9:
      return endOfWindowMs(policy, atMs) - atMs + edgeMs
    case 10:
      return random.integer(1, 3) * windowMs + edgeMs
    default:
      return random.pick(pastMs) + windowMs + edgeMs - atMs
  }
}

function startOfWindowMs(policy: Exclude<SinglePolicySpec, { burst: number }>, atMs: number): number {
  return Number(windowAt(policy, atMs).startUs) / 1000
}

function endOfWindowMs(policy: Exclude<SinglePolicySpec, { burst: number }>, atMs: number): number {
  return Number(windowAt(policy, atMs).endUs) / 1000
}

function windowAt(policy: Exclude<SinglePolicySpec, { burst: number }>, atMs: number): ReturnType<ReturnType<typeof windowsOf>> {
  const spec: FixedWindowSpec = { ...policy, algorithm: 'fixed-window' }
  return windowsOf(spec)(BigInt(Math.round(atMs * 1000)))
}

/** From here on the oracle knows its calendars. */
const CALENDARS_MS = Date.UTC(2000, 0)
/** Every form of a key's state reaches so far back behind the latest reading under a policy, or this many windows up to a quarter. */
const FURTHEST_BACK_MS = 1_000_000
const FURTHEST_BACK_WINDOWS = 3

/** The sequence that belongs to a seed: always the same one. Without an algorithm one of a rate that only knows the plain verbs. */
export function sequenceOf(seed: number, algorithm?: AlgorithmName): Sequence {
  return algorithm === undefined ? rateSequenceOf(seed) : new Sequencer(seed, algorithm).sequence()
}

/** Makes one sequence with all verbs. */
class Sequencer {
  readonly #random: Random
  readonly #first: PolicySpec
  readonly #calendars: boolean
  /** Only then several keys and blocks, see {@link CERTAIN_MS}. */
  readonly #forward: boolean
  readonly #keys: readonly OracleKey[]
  readonly #ends: number
  /** Which of several permits that expire together loses by a refund is the store's affair: then no two do. */
  readonly #mayRefund: boolean
  #policy: PolicySpec
  #atMs: number
  #latestMs: number
  /** When the policy was set, and how many bookings were asked for before. */
  #sinceMs: number
  #bookedBefore = 0
  readonly #bookings: number[] = []
  #permits = 0
  readonly #pastMs: number[] = []

  constructor(seed: number, algorithm: AlgorithmName) {
    const random = new Random(seed)
    this.#random = random
    this.#calendars = random.chance(0.4)
    this.#first = randomPolicyOf(random, algorithm, this.#calendars)
    this.#policy = this.#first
    const startsMs = this.#calendars
      ? [1_789_000_000_000, CALENDARS_MS + DAY_MS + random.fraction() * 30 * YEAR_MS]
      : [2 * HOUR_MS, 1_789_000_000_000, random.fraction() * 30 * YEAR_MS, HOUR_MS + random.fraction() * 1000]
    this.#atMs = random.pick(startsMs)
    this.#latestMs = this.#atMs
    this.#sinceMs = this.#atMs
    this.#forward = random.chance(0.5)
    this.#mayRefund = algorithm !== 'concurrency' || (this.#forward && random.chance(0.5))
    this.#keys = Array.from({ length: this.#forward ? random.integer(1, MOST_KEYS) : 1 }, (_, i) => this.#randomKey(i))
    this.#ends = random.integer(1, MOST_ENDS)
  }

  sequence(): Sequence {
    const length = this.#random.integer(5, 40)
    return { policy: this.#first, steps: Array.from({ length }, (_, i) => this.#nextStep(i === 0)) }
  }

  #nextStep(isFirst: boolean): Step {
    this.#move(isFirst)
    const place = { atMs: this.#atMs, key: this.#random.pick(this.#keys), end: this.#random.integer(0, this.#ends - 1) }
    const step = this.#randomStep(place)
    if (step.verb === 'update') this.#policy = step.policy
    if (step.verb === 'update' || isFirst) {
      this.#sinceMs = this.#atMs
      this.#latestMs = this.#atMs
      this.#bookedBefore = this.#bookings.length
    }
    if (step.verb === 'reserve') this.#bookings.push(step.cost)
    if (step.verb === 'take') this.#permits++
    return step
  }

  #move(isFirst: boolean): void {
    const random = this.#random
    const gapMs = isFirst ? 0 : randomGapMs(random, random.pick(partsOf(this.#policy)), this.#atMs, this.#pastMs)
    const leastMs = this.#first.algorithm === 'concurrency' && this.#mayRefund ? 0.002 : gapMs
    const nextMs = Math.round((this.#atMs + Math.max(gapMs, leastMs)) * 1000) / 1000 + finerThanUs(random)
    this.#atMs = Math.min(LAST_MS, Math.max(this.#earliestMs(), nextMs))
    this.#latestMs = Math.max(this.#latestMs, this.#atMs)
    this.#pastMs.push(this.#atMs)
  }

  #earliestMs(): number {
    if (this.#forward) return this.#latestMs
    const isLarge = this.#random.seed >= LARGE_SEEDS
    const furthestMs = partsOf(this.#policy).map((part) => {
      if ('burst' in part) return this.#latestMs - this.#sinceMs < CERTAIN_MS ? this.#latestMs - this.#sinceMs + HOUR_MS : 0
      if (isLarge && 'calendar' in part && part.calendar !== undefined) return DAY_MS
      return Math.max(FURTHEST_BACK_MS, Math.min(FURTHEST_BACK_WINDOWS * part.windowMs, YEAR_MS / 4))
    })
    return Math.max(this.#latestMs - Math.min(...furthestMs), this.#calendars ? CALENDARS_MS : 0)
  }

  #randomStep(place: Place): Step {
    const random = this.#random
    const most = mostCost(this.#policy)
    const die = random.integer(0, 99)
    if (die < 10) return this.#laterStep(place) ?? { ...place, verb: 'peek', cost: 1 }
    if (die < 20) return { ...place, verb: 'reserve', cost: randomCost(random, most) }
    if (die < 28) return { ...place, verb: 'peek', cost: randomCost(random, most) }
    if (die < 33 && this.#mayRefund) return { ...place, verb: 'refund', tokens: randomCost(random, most) }
    if (die < 38) return { ...place, verb: 'penalize', tokens: randomCost(random, most * 4) }
    if (die < 41 && this.#forward) return { ...place, verb: 'block', durationMs: randomBlockMs(random, longestMs(this.#policy)) }
    if (die < 43) return { ...place, verb: 'reset' }
    if (die < 47 && this.#isNear()) return { ...place, verb: 'update', policy: nextPolicy(random, this.#policy, this.#calendars) }
    return { ...place, verb: 'take', cost: randomCost(random, most) }
  }

  /** A key that is ahead, by a step back or a booking, may be further ahead than another policy can tell. */
  #isNear(): boolean {
    const isBooked = this.#bookings.length > this.#bookedBefore
    return this.#latestMs - this.#atMs <= FURTHEST_BACK_MS && (!isBooked || longestMs(this.#policy) <= HOUR_MS)
  }

  /** To what was booked or given before. */
  #laterStep(place: Place): Step | undefined {
    const random = this.#random
    if (this.#policy.algorithm === 'concurrency' && this.#permits > 0 && random.chance(0.8)) {
      return { ...place, verb: random.pick(['release', 'release', 'heartbeat']), permit: random.integer(0, this.#permits - 1) }
    }
    // What a booking of a rate owes is in units of its own policy: an update ends that.
    const oldest = partsOf(this.#policy).some((part) => 'burst' in part) ? this.#bookedBefore : 0
    if (oldest >= this.#bookings.length) return undefined
    const booking = random.integer(oldest, this.#bookings.length - 1)
    const cost = this.#bookings[booking] as number
    if (random.chance(0.4)) return { ...place, verb: 'cancel', booking }
    return { ...place, verb: 'settle', booking, actual: random.pick([0, cost - 1, cost, cost + 1, random.magnitude(1, 2 * cost)]) }
  }

  /** With all-of one for all parts, or one for each. */
  #randomKey(i: number): OracleKey {
    const { algorithm } = this.#first
    if (algorithm !== 'all-of' || this.#random.chance(0.5)) return `key ${i}`
    return partsOf(this.#first).map(() => `key ${this.#random.integer(0, MOST_KEYS - 1)}`)
  }
}

function partsOf(policy: PolicySpec): readonly SinglePolicySpec[] {
  return policy.algorithm === 'all-of' ? policy.parts : [policy]
}

function longestMs(policy: PolicySpec): number {
  return Math.max(...partsOf(policy).map(({ windowMs }) => windowMs))
}
