import { KeyedOracle, type Tokens } from './keyed-oracle.js'
import type { OracleBooking, PolicySpec } from './oracle.js'
import { ceilDiv, type ExactEmission, exactEmission, max, min, type RateSpec } from './oracle.js'

/** The theoretical arrival time: when the key's debt is paid, in units. */
type Arrival = bigint

const MAX_PENALTY_BURSTS = 10n
/** So far ahead a store books at least. */
const FURTHEST_US = 3_600_000_000n

/**
 * What a token bucket or GCRA limiter must answer: one theoretical arrival time a key, and the declared rounding of the emission
 * interval ({@link exactEmission}). The arrival time stays when the clock steps back, so a key waits longer by the step and no more.
 */
export class RateOracle extends KeyedOracle<Arrival, RateSpec> {
  #emission: ExactEmission

  constructor(spec: RateSpec) {
    super(spec)
    this.#emission = accepted(spec)
  }

  protected override most(): number {
    return this.spec.burst
  }

  protected override remaining(arrival: Arrival | undefined, nowUs: bigint): bigint {
    const { capacity, perToken } = this.#emission
    return max(0n, capacity - this.#debt(arrival, nowUs)) / perToken
  }

  protected override passesAtUs(arrival: Arrival | undefined, cost: bigint, nowUs: bigint): bigint {
    const { q, capacity, perToken } = this.#emission
    return nowUs + ceilDiv(max(0n, this.#debt(arrival, nowUs) + cost * perToken - capacity), q)
  }

  protected override freshAtUs(arrival: Arrival | undefined, nowUs: bigint): bigint {
    return nowUs + ceilDiv(this.#debt(arrival, nowUs), this.#emission.q)
  }

  protected override taken(arrival: Arrival | undefined, cost: bigint, nowUs: bigint): Arrival {
    return this.#arrival(nowUs, this.#debt(arrival, nowUs) + cost * this.#emission.perToken)
  }

  /** Stops at full: a key without debt stays as it is. */
  protected override refunded(arrival: Arrival, tokens: bigint, nowUs: bigint): Arrival {
    const debt = this.#debt(arrival, nowUs)
    return debt > 0n ? this.#arrival(nowUs, max(0n, debt - tokens * this.#emission.perToken)) : arrival
  }

  /** Down to ten bursts below empty; a key further down, after a step back, stays where it is. */
  protected override penalized(arrival: Arrival | undefined, tokens: bigint, nowUs: bigint): Arrival {
    const { perToken, capacity } = this.#emission
    const debt = this.#debt(arrival, nowUs)
    return this.#arrival(nowUs, max(debt, min(capacity * (MAX_PENALTY_BURSTS + 1n), debt + tokens * perToken)))
  }

  protected override filled(arrival: Arrival | undefined, tokens: bigint, nowUs: bigint, beyond: Tokens): Arrival {
    const { perToken, capacity } = this.#emission
    const debt = this.#debt(arrival, nowUs)
    const most = min(deepestOf(this.#emission), capacity + ceilDiv(beyond.units * perToken, beyond.perToken))
    return this.#arrival(nowUs, max(debt, min(most, debt + tokens * perToken)))
  }

  protected override beyond(arrival: Arrival | undefined, nowUs: bigint): Tokens {
    const { perToken, capacity } = this.#emission
    return { units: max(0n, this.#debt(arrival, nowUs) - capacity), perToken }
  }

  /** No debt from now on. A later step back finds the key paid up at this moment, not before it. */
  protected override afterReset(arrival: Arrival, nowUs: bigint): Arrival {
    return this.#debt(arrival, nowUs) > 0n ? this.#arrival(nowUs, 0n) : arrival
  }

  /** Where the booking left the key. */
  protected override noteOf(arrival: Arrival): bigint {
    return arrival
  }

  protected override measureOf(): string {
    const { q, perToken, capacity } = this.#emission
    return `${q} ${perToken} ${capacity}`
  }

  /**
   * Before its time a booking comes back whole, if no booking followed it: each later one that still stands owes a token more, while one that
   * was cancelled leaves less than flows back in a microsecond, which is gone as well then. From its time on only what cannot have flowed
   * back by itself, and nothing while later bookings wait.
   */
  protected override givenBack(arrival: Arrival, booking: OracleBooking, tokens: bigint, nowUs: bigint): Arrival {
    const { q, perToken, capacity } = this.#emission
    const { note = arrival, atUs, bookedUs = atUs, cost = 0n } = booking
    const debt = this.#debt(arrival, nowUs)
    const whole = cost * perToken
    const isAhead = atUs > bookedUs && nowUs < atUs
    const wanted = isAhead ? (tokens === cost ? whole : 0n) : min(tokens * perToken, whole - max(0n, nowUs - atUs) * q)
    const mayBe = isAhead ? arrival - note < min(perToken, q) : debt <= capacity
    const owed = isAhead ? min(debt, this.#debt(note, nowUs)) : debt
    return wanted > 0n && mayBe && debt > 0n ? this.#arrival(nowUs, max(0n, owed - wanted)) : arrival
  }

  /** What each key has spent stays spent, at most the new burst, a fraction of a token rounded up to the new units; with the numbers of before all stays. */
  protected override adopt(spec: PolicySpec | RateSpec, nowUs: bigint): (arrival: Arrival) => Arrival {
    if (!('burst' in spec)) throw new TypeError('a rate stays a rate')
    const old = this.#emission
    const next = accepted(spec)
    const before = this.measureOf()
    this.spec = spec
    this.#emission = next
    if (this.measureOf() === before) return (arrival) => arrival
    return (arrival) => {
      const spent = ceilDiv(max(0n, arrival - nowUs * old.q) * next.perToken, old.perToken)
      return this.#arrival(nowUs, min(spec.keepsAll ? deepestOf(next) : next.capacity, spent))
    }
  }

  protected override sibling(): RateOracle {
    return new RateOracle(this.spec)
  }

  #debt(arrival: Arrival | undefined, nowUs: bigint): bigint {
    return arrival === undefined ? 0n : max(0n, arrival - nowUs * this.#emission.q)
  }

  #arrival(nowUs: bigint, debt: bigint): Arrival {
    return nowUs * this.#emission.q + debt
  }
}

function deepestOf({ q, capacity }: ExactEmission): bigint {
  return max(capacity * (MAX_PENALTY_BURSTS + 1n), capacity + FURTHEST_US * q)
}

function accepted(spec: RateSpec): ExactEmission {
  const emission = exactEmission(spec)
  if (emission === undefined) throw new RangeError(`no exact form for ${JSON.stringify(spec)}`)
  return emission
}
