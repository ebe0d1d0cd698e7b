import { max, min } from './emission.js'
import { KeyedOracle } from './keyed-oracle.js'
import type { OracleBooking } from './oracle.js'
import type { FixedWindowSpec, PolicySpec } from './policy-spec.js'
import { type Window, type Windows, windowsOf } from './windows.js'

/** The last window in which something was charged, and how much. */
interface Counted {
  readonly window: Window
  readonly count: bigint
}

const PENALTY_LIMITS = 11n

/**
 * What a fixed window limiter must answer: one window and its count a key. A key whose window is later than that of now, as the
 * clock stepped back or it was reserved, is closed until its window begins.
 */
export class FixedWindowOracle extends KeyedOracle<Counted, FixedWindowSpec> {
  #windows: Windows

  /** `windows` stands in for those of the policy, until an update. */
  constructor(spec: FixedWindowSpec, windows = windowsOf(spec)) {
    super(spec)
    this.#windows = windows
  }

  protected override remaining(state: Counted | undefined, nowUs: bigint): bigint {
    const { window, count } = this.#stateAt(state, nowUs)
    return window.startUs > nowUs ? 0n : max(0n, this.#limit() - count)
  }

  protected override passesAtUs(state: Counted | undefined, cost: bigint, nowUs: bigint): bigint {
    const { window, count } = this.#stateAt(state, nowUs)
    return count + cost <= this.#limit() ? max(nowUs, window.startUs) : window.endUs
  }

  protected override freshAtUs(state: Counted | undefined, nowUs: bigint): bigint {
    const { window, count } = this.#stateAt(state, nowUs)
    return count > 0n ? window.endUs : max(nowUs, window.startUs)
  }

  protected override taken(state: Counted | undefined, cost: bigint, nowUs: bigint): Counted {
    const { window, count } = this.#stateAt(state, nowUs)
    return { window, count: count + cost }
  }

  /** Of the window at hand; where nothing was charged in it, nothing changes. */
  protected override refunded(state: Counted, tokens: bigint, nowUs: bigint): Counted | undefined {
    const { window, count } = this.#stateAt(state, nowUs)
    return count > 0n ? { window, count: max(0n, count - tokens) } : state
  }

  protected override penalized(state: Counted | undefined, tokens: bigint, nowUs: bigint): Counted {
    const { window, count } = this.#stateAt(state, nowUs)
    return { window, count: max(count, min(count + tokens, PENALTY_LIMITS * this.#limit())) }
  }

  protected override filled(state: Counted | undefined, tokens: bigint, nowUs: bigint): Counted {
    const { window, count } = this.#stateAt(state, nowUs)
    return { window, count: max(count, min(count + tokens, this.#limit())) }
  }

  protected override givenBack(state: Counted, { atUs }: OracleBooking, tokens: bigint, nowUs: bigint): Counted | undefined {
    const { window, count } = this.#stateAt(state, nowUs)
    if (window.startUs !== this.#windows(atUs).startUs || count === 0n) return state
    return { window, count: max(0n, count - tokens) }
  }

  /** In the same windows a key stays where it is; else what it has spent goes with it into the new window of now. */
  protected override adopt(spec: PolicySpec, nowUs: bigint): (state: Counted) => Counted | undefined {
    if (spec.algorithm !== 'fixed-window') throw new TypeError('a fixed window stays one')
    const sameWindows = isSame(this.spec, spec)
    const isSameLimit = this.spec.limit === spec.limit
    const oldLimit = this.#limit()
    const old = this.#windows
    this.spec = spec
    this.#windows = windowsOf(spec)
    return ({ window, count }) => {
      const here = this.#windows(nowUs)
      // Nothing is booked in the next window any more: the one before it is full.
      if (sameWindows && !isSameLimit && count === 0n && window.startUs === here.endUs)
        return { window: here, count: min(oldLimit, this.#limit()) }
      if (sameWindows) return { window, count: isSameLimit ? count : min(count, this.#limit()) }
      const spent = window.startUs >= old(nowUs).startUs ? count : 0n
      return spentIn(this.#windows(nowUs), min(spent, this.#limit()), nowUs)
    }
  }

  protected override sibling(): FixedWindowOracle {
    return new FixedWindowOracle(this.spec, this.#windows)
  }

  /** The window of now, or a later one that the key is in already. */
  #stateAt(state: Counted | undefined, nowUs: bigint): Counted {
    const window = this.#windows(nowUs)
    return state === undefined || state.window.startUs < window.startUs ? { window, count: 0n } : state
  }

  #limit(): bigint {
    return BigInt(this.spec.limit)
  }
}

/** Nothing spent in a window that has begun is full. */
function spentIn(window: Window, count: bigint, nowUs: bigint): Counted | undefined {
  return count === 0n && window.startUs <= nowUs ? undefined : { window, count }
}

function isSame(a: FixedWindowSpec, b: FixedWindowSpec): boolean {
  if (a.calendar === undefined || b.calendar === undefined) return a.calendar === b.calendar && a.windowMs === b.windowMs
  return a.calendar.unit === b.calendar.unit && a.calendar.timeZone === b.calendar.timeZone
}
