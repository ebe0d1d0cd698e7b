import { KeyedOracle } from './keyed-oracle.js'
import type { OracleBooking, PolicySpec, SlidingLogSpec } from './oracle.js'
import { ceilDiv, max, min, toUs } from './oracle.js'

const STATE_BITS = 56

/**
 * The declared rounding of a log's times: 56 bits hold a time and a sum of costs up to twelve limits, and an eighth of all times must
 * span the window. The tick is the smallest power of two microseconds that does.
 */
export function logTickUs({ limit, windowMs }: SlidingLogSpec): bigint {
  const windowUs = Math.round(windowMs * 1000)
  const timeBits = STATE_BITS - (12 * limit).toString(2).length
  let tickUs = 1
  while (windowUs / tickUs > 2 ** (timeBits - 3)) tickUs *= 2
  return BigInt(tickUs)
}

/** A request that passed, at a time rounded up to the tick. */
interface Entry {
  readonly atUs: bigint
  readonly cost: bigint
}

/** Oldest first. */
type Log = readonly Entry[]

const PENALTY_LIMITS = 11n

/**
 * What a sliding log limiter must answer: a list of what passed a key. An entry counts until a window after its time. A key whose
 * newest entry lies ahead of now, as the clock stepped back or it was reserved, is closed until then.
 */
export class SlidingLogOracle extends KeyedOracle<Log, SlidingLogSpec> {
  protected override remaining(log: Log = [], nowUs: bigint): bigint {
    return this.#opensUs(log, nowUs) > nowUs ? 0n : max(0n, this.#limit() - this.#used(log, nowUs))
  }

  /** Nothing comes back but by the end of an entry. */
  protected override passesAtUs(log: Log = [], cost: bigint, nowUs: bigint): bigint {
    const opensUs = this.#opensUs(log, nowUs)
    const live = this.#live(log, opensUs)
    let used = live.reduce((sum, entry) => sum + entry.cost, 0n)
    if (used + cost <= this.#limit()) return opensUs
    for (const entry of live) {
      used -= entry.cost
      if (used + cost <= this.#limit()) return this.#endUs(entry)
    }
    throw new RangeError('an impossible cost never passes')
  }

  protected override freshAtUs(log: Log = [], nowUs: bigint): bigint {
    const fromUs = max(nowUs, log.at(-1)?.atUs ?? nowUs)
    const newest = this.#live(log, fromUs).findLast(({ cost }) => cost > 0n)
    return newest === undefined ? this.#opensUs(log, nowUs) : this.#endUs(newest)
  }

  protected override taken(log: Log = [], cost: bigint, nowUs: bigint): Log {
    return [...log, { atUs: this.#stored(nowUs), cost }]
  }

  /** The newest first, of those that still count. The newest time stays, and what is left of a request counts from there. */
  protected override refunded(log: Log, tokens: bigint, nowUs: bigint): Log {
    return this.#lessened(log, tokens, nowUs, () => true)
  }

  /**
   * Down to ten limits below empty. Where the log has no room for another entry, or is ahead, the newest gains the tokens.
   */
  protected override penalized(log: Log = [], tokens: bigint, nowUs: bigint): Log | undefined {
    const storedUs = this.#stored(nowUs)
    const newest = log.at(-1)
    const atUs = max(storedUs, newest?.atUs ?? storedUs)
    const cost = min(tokens, PENALTY_LIMITS * this.#limit() - this.#used(log, max(nowUs, newest?.atUs ?? nowUs)))
    if (cost <= 0n) return log
    if (
      newest === undefined ||
      (storedUs > newest.atUs && this.#live(log, nowUs).filter(({ cost }) => cost > 0n).length < this.spec.limit)
    ) {
      return [...log, { atUs, cost }]
    }
    return [...log.slice(0, -1), { atUs, cost: newest.cost + cost }]
  }

  protected override givenBack(log: Log, booking: OracleBooking, tokens: bigint, nowUs: bigint): Log {
    const newestUs = log.at(-1)?.atUs
    return newestUs === this.#stored(booking.atUs) ? this.#lessened(log, tokens, nowUs, ({ atUs }) => atUs === newestUs) : log
  }

  /** Entries stay, as the new policy stores times; those that ended under the old one never come back. */
  protected override adopt(spec: PolicySpec, nowUs: bigint): (log: Log) => Log {
    if (spec.algorithm !== 'sliding-log') throw new TypeError('a log stays one')
    const old = this.copy() as SlidingLogOracle
    this.spec = spec
    const isSame = old.#limit() === this.#limit() && old.spec.windowMs === spec.windowMs && old.#tickUs() === this.#tickUs()
    if (isSame) return (log) => log
    const isWider = this.#limit() > old.#limit() || old.spec.windowMs !== spec.windowMs
    // A log that is ahead is read as of its newest; where nothing is booked ahead any more, it is one that is full at the change.
    return (log) =>
      isWider && old.#isEmptyAhead(log, nowUs)
        ? [{ atUs: this.#stored(old.#stored(nowUs)), cost: old.#limit() }]
        : old.#live(log, max(nowUs, log.at(-1)?.atUs ?? nowUs)).map(({ atUs, cost }) => ({ atUs: this.#stored(atUs), cost }))
  }

  protected override sibling(): SlidingLogOracle {
    return new SlidingLogOracle(this.spec)
  }

  /** The first moment, now or later, at which a request would not be stored before the newest. */
  #opensUs(log: Log, nowUs: bigint): bigint {
    const newest = log.at(-1)
    return newest === undefined ? nowUs : max(nowUs, newest.atUs - this.#tickUs() + 1n)
  }

  #isEmptyAhead(log: Log, nowUs: bigint): boolean {
    const storedUs = this.#stored(nowUs)
    const newest = log.at(-1)
    return newest !== undefined && newest.atUs > storedUs && log.every(({ atUs, cost }) => cost === 0n || atUs <= storedUs)
  }

  #lessened(log: Log, tokens: bigint, nowUs: bigint, counts: (entry: Entry) => boolean): Log {
    const newest = log.at(-1)
    if (newest === undefined) return log
    const fromUs = max(nowUs, newest.atUs)
    if (this.#used(log, fromUs) === 0n) return log
    const less = lessened(log, tokens, (entry) => this.#endUs(entry) > fromUs && counts(entry))
    // What is left of a request in part counts from the newest's time; with nothing left there, its time stays.
    const last = less.at(-1)
    const isPart = last !== undefined && last.atUs < newest.atUs && !log.includes(last)
    return isPart ? [...less.slice(0, -1), { atUs: newest.atUs, cost: last.cost }] : this.#withTime(less, newest.atUs)
  }

  #withTime(log: Log, atUs: bigint): Log {
    return log.at(-1)?.atUs === atUs ? log : [...log, { atUs, cost: 0n }]
  }

  #used(log: Log, us: bigint): bigint {
    return this.#live(log, us).reduce((sum, { cost }) => sum + cost, 0n)
  }

  #live(log: Log, us: bigint): Log {
    const lastsUs = this.#endUs({ atUs: 0n, cost: 0n })
    return log.filter(({ atUs }) => atUs + lastsUs > us)
  }

  /** When it is over: moments, too, are rounded up to ticks, so that it takes a tick more than the window to be sure. */
  #endUs({ atUs }: Entry): bigint {
    const tickUs = this.#tickUs()
    const windowUs = toUs(this.spec.windowMs)
    return tickUs === 1n ? atUs + windowUs : atUs + ceilDiv(windowUs, tickUs) * tickUs + 1n
  }

  #stored(us: bigint): bigint {
    return ceilDiv(us, this.#tickUs()) * this.#tickUs()
  }

  #tickUs(): bigint {
    return this.spec.tickUs === undefined ? logTickUs(this.spec) : BigInt(this.spec.tickUs)
  }

  #limit(): bigint {
    return BigInt(this.spec.limit)
  }
}

/** Without the newest `tokens` of those entries that count; what is down to nothing is gone. */
function lessened(log: Log, tokens: bigint, counts: (entry: Entry) => boolean): Log {
  let left = tokens
  const kept: Entry[] = []
  for (const entry of log.toReversed()) {
    const back = counts(entry) ? min(left, entry.cost) : 0n
    left -= back
    if (back === 0n && entry.cost > 0n) kept.unshift(entry)
    else if (back < entry.cost) kept.unshift({ atUs: entry.atUs, cost: entry.cost - back })
  }
  return kept
}
