import { ceilDiv, floorDiv, max, min, toUs } from './emission.js'
import { KeyedOracle } from './keyed-oracle.js'
import type { OracleBooking } from './oracle.js'
import type { PolicySpec, SlidingWindowSpec } from './policy-spec.js'

/** The number of a window since the Unix epoch, its count, and that of the window before. */
interface Counts {
  readonly number: bigint
  readonly previous: bigint
  readonly current: bigint
}

const PENALTY_LIMITS = 11n
/** Counters of 16 bits, where limit and window allow them. */
const PACKED_MOST = 65_535n
const PACKED_WINDOW_US = 220_000n

/**
 * What a sliding window limiter must answer: two counts a key, the previous one weighted by how much of its window the sliding
 * window still covers, rounded up. A key whose window is later than that of now is closed until its window begins.
 */
export class SlidingWindowOracle extends KeyedOracle<Counts, SlidingWindowSpec> {
  protected override remaining(state: Counts | undefined, nowUs: bigint): bigint {
    const counts = this.#stateAt(state, nowUs)
    return this.#startUs(counts) > nowUs ? 0n : max(0n, this.#limit() - this.#usedIn(counts, nowUs))
  }

  protected override passesAtUs(state: Counts | undefined, cost: bigint, nowUs: bigint): bigint {
    let counts = this.#stateAt(state, nowUs)
    let fromUs = max(nowUs, this.#startUs(counts))
    for (;;) {
      const passesUs = this.#passesInUs(counts, cost, fromUs)
      if (passesUs !== undefined) return passesUs
      fromUs = this.#endUs(counts)
      counts = this.#stateAt(counts, fromUs)
    }
  }

  protected override freshAtUs(state: Counts | undefined, nowUs: bigint): bigint {
    const counts = this.#stateAt(state, nowUs)
    if (counts.current > 0n) return this.#endUs(counts) + this.#windowUs()
    return counts.previous > 0n ? this.#endUs(counts) : max(nowUs, this.#startUs(counts))
  }

  protected override taken(state: Counts | undefined, cost: bigint, nowUs: bigint): Counts {
    const counts = this.#stateAt(state, nowUs)
    return { ...counts, current: counts.current + cost }
  }

  /** Of the window at hand; where nothing was charged in it, nothing changes. */
  protected override refunded(state: Counts, tokens: bigint, nowUs: bigint): Counts | undefined {
    const counts = this.#stateAt(state, nowUs)
    return counts.current > 0n ? lessened(counts, tokens) : state
  }

  protected override penalized(state: Counts | undefined, tokens: bigint, nowUs: bigint): Counts {
    const counts = this.#stateAt(state, nowUs)
    const most = this.#words() === 'packed' ? min(PENALTY_LIMITS * this.#limit(), PACKED_MOST) : PENALTY_LIMITS * this.#limit()
    return { ...counts, current: max(counts.current, min(counts.current + tokens, most)) }
  }

  protected override filled(state: Counts | undefined, tokens: bigint, nowUs: bigint): Counts {
    const counts = this.#stateAt(state, nowUs)
    const leftUs = this.#endUs(counts) - max(nowUs, this.#startUs(counts))
    // Full to the fraction of a token.
    const room = this.#limit() - counts.current - floorDiv(counts.previous * leftUs, this.#windowUs())
    return { ...counts, current: counts.current + max(0n, min(tokens, room)) }
  }

  protected override givenBack(state: Counts, { atUs }: OracleBooking, tokens: bigint, nowUs: bigint): Counts | undefined {
    const counts = this.#stateAt(state, nowUs)
    return counts.number === this.#numberOf(atUs) && counts.current > 0n ? lessened(counts, tokens) : state
  }

  /** Over the same windows a key stays where it is; else what it has used counts as spent in the new window of now. */
  protected override adopt(spec: PolicySpec, nowUs: bigint): (state: Counts) => Counts | undefined {
    if (spec.algorithm !== 'sliding-window') throw new TypeError('a sliding window stays one')
    const old = this.copy() as SlidingWindowOracle
    this.spec = spec
    const limit = this.#limit()
    const isSame = old.#limit() === limit && old.#windowUs() === this.#windowUs() && old.#words() === this.#words()
    if (isSame) return (state) => state
    if (old.#windowUs() === this.#windowUs() && old.#words() === this.#words()) {
      const here = this.#numberOf(nowUs)
      const isWide = this.#words() === 'wide' || this.#words() === 'short'
      return ({ number, previous, current }) =>
        current === 0n && number === here + 1n && limit !== old.#limit() && !isWide
          ? // Nothing is booked in the next window any more: the one before it is full.
            { number: here, previous: min(old.#limit(), limit), current: min(previous, limit) }
          : { number, previous: min(previous, limit), current: min(current, limit) }
    }
    return (state) => {
      const counts = old.#stateAt(state, nowUs)
      const used = old.#startUs(counts) > nowUs ? counts.previous + counts.current : old.#usedIn(counts, nowUs)
      return used === 0n ? undefined : { number: this.#numberOf(nowUs), previous: 0n, current: min(used, limit) }
    }
  }

  protected override sibling(): SlidingWindowOracle {
    return new SlidingWindowOracle(this.spec)
  }

  /** The counts as the window of now sees them, or those of a later one that the key is in already. */
  #stateAt(state: Counts | undefined, nowUs: bigint): Counts {
    const number = this.#numberOf(nowUs)
    if (state !== undefined && state.number >= number) return state
    return { number, previous: state?.number === number - 1n ? state.current : 0n, current: 0n }
  }

  /** At a moment of the window that they are of. */
  #usedIn(counts: Counts, us: bigint): bigint {
    return counts.current + ceilDiv(counts.previous * (this.#endUs(counts) - us), this.#windowUs())
  }

  /** The first moment of that window, from `fromUs` on, at which the cost passes. */
  #passesInUs(counts: Counts, cost: bigint, fromUs: bigint): bigint | undefined {
    const room = this.#limit() - counts.current - cost
    if (room < 0n) return undefined
    // ceil(previous * left / window) <= room  <=>  left <= floor(room * window / previous)
    const most = counts.previous === 0n ? this.#windowUs() : (room * this.#windowUs()) / counts.previous
    const passesUs = max(fromUs, this.#endUs(counts) - most)
    return passesUs < this.#endUs(counts) ? passesUs : undefined
  }

  #numberOf(us: bigint): bigint {
    return floorDiv(us, this.#windowUs())
  }

  #startUs({ number }: Counts): bigint {
    return number * this.#windowUs()
  }

  #endUs({ number }: Counts): bigint {
    return (number + 1n) * this.#windowUs()
  }

  /** How counts are written; where that changes, a key goes over as to other windows. */
  #words(): string {
    if (this.spec.isUnpacked) return 'unpacked'
    if (this.#limit() > PACKED_MOST) return 'wide'
    return this.#windowUs() < PACKED_WINDOW_US ? 'short' : 'packed'
  }

  #windowUs(): bigint {
    return toUs(this.spec.windowMs)
  }

  #limit(): bigint {
    return BigInt(this.spec.limit)
  }
}

/** Also with nothing left in it the window stays. */
function lessened(counts: Counts, tokens: bigint): Counts {
  return { ...counts, current: max(0n, counts.current - tokens) }
}
