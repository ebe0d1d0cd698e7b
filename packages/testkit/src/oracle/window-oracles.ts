import { KeyedOracle } from './keyed-oracle.js'
import type { CalendarSpec, FixedWindowSpec, OracleBooking, PolicySpec, SlidingWindowSpec } from './oracle.js'
import { ceilDiv, deepestCount, floorDiv, max, min, toUs } from './oracle.js'

/** From the first microsecond of a window to the first of the next one. */
export interface Window {
  readonly startUs: bigint
  readonly endUs: bigint
}

/** The window that a moment is in. Windows follow each other without gap or overlap. */
export type Windows = (us: bigint) => Window

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

export function windowsOf({ windowMs, calendar }: FixedWindowSpec): Windows {
  return calendar === undefined ? alignedWindows(toUs(windowMs)) : calendarWindows(calendar)
}

/** Windows of one length, counted from the Unix epoch. */
export function alignedWindows(windowUs: bigint): Windows {
  return (us) => {
    const startUs = floorDiv(us, windowUs) * windowUs
    return { startUs, endUs: startUs + windowUs }
  }
}

/**
 * Days, weeks from Monday, months or years of UTC, or of Rome from 1996 on: there the clocks are an hour ahead of UTC, from the last
 * Sunday of March to that of October two, and change at 01:00 UTC, so that every day has its midnight once.
 */
export function calendarWindows({ unit, timeZone }: CalendarSpec): Windows {
  const aheadMs = timeZone === 'UTC' ? () => 0 : romeAheadMs
  return (us) => {
    const ms = Number(floorDiv(us, 1000n))
    const [first, next] = firstDays(unit, new Date(ms + aheadMs(ms)))
    return { startUs: midnightUs(first, aheadMs), endUs: midnightUs(next, aheadMs) }
  }
}

/** The first day of the unit that a date is in, and of the next one, as if they were of UTC. */
function firstDays(unit: CalendarSpec['unit'], date: Date): readonly [number, number] {
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  const sinceMonday = (date.getUTCDay() + 6) % 7
  switch (unit) {
    case 'day':
      return [Date.UTC(year, month, day), Date.UTC(year, month, day + 1)]
    case 'week':
      return [Date.UTC(year, month, day - sinceMonday), Date.UTC(year, month, day - sinceMonday + 7)]
    case 'month':
      return [Date.UTC(year, month), Date.UTC(year, month + 1)]
    case 'year':
      return [Date.UTC(year, 0), Date.UTC(year + 1, 0)]
  }
}

function midnightUs(localMs: number, aheadMs: (ms: number) => number): bigint {
  return BigInt(localMs - aheadMs(localMs - 2 * HOUR_MS)) * 1000n
}

function romeAheadMs(ms: number): number {
  const year = new Date(ms).getUTCFullYear()
  return ms >= lastSundayMs(year, 2) && ms < lastSundayMs(year, 9) ? 2 * HOUR_MS : HOUR_MS
}

/** 01:00 UTC on the last Sunday of a month of 31 days. */
function lastSundayMs(year: number, month: number): number {
  const lastMs = Date.UTC(year, month, 31)
  return lastMs - new Date(lastMs).getUTCDay() * DAY_MS + HOUR_MS
}

/** The last window in which something was charged, and how much. */
interface Counted {
  readonly window: Window
  readonly count: bigint
}

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
    return { window, count: max(count, min(count + tokens, deepestCount(this.#limit()))) }
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
      // What a closed key has spent in this window is not known: all of it.
      const spent = window.startUs > nowUs ? max(count, oldLimit) : window.startUs === old(nowUs).startUs ? count : 0n
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

/** The number of a window since the Unix epoch, its count, and that of the window before. */
interface Counts {
  readonly number: bigint
  readonly previous: bigint
  readonly current: bigint
}

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
    const deepest = deepestCount(this.#limit())
    const most = this.#words() === 'packed' ? min(deepest, PACKED_MOST) : deepest
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
    if (counts.number === this.#numberOf(atUs)) return counts.current > 0n ? lessened(counts, tokens) : state
    // Of one that is not due yet others may lie behind.
    const isBehind = counts.number === this.#numberOf(atUs) + 1n && atUs > nowUs && !this.#isWide()
    return isBehind ? { ...counts, previous: max(0n, counts.previous - tokens) } : state
  }

  /** Over the same windows a key stays where it is; else what it has used counts as spent in the new window of now. */
  protected override adopt(spec: PolicySpec, nowUs: bigint): (state: Counts) => Counts | undefined {
    if (spec.algorithm !== 'sliding-window') throw new TypeError('a sliding window stays one')
    const old = this.copy() as SlidingWindowOracle
    this.spec = spec
    const limit = this.#limit()
    const isSame = old.#limit() === limit && old.#windowUs() === this.#windowUs() && old.#words() === this.#words()
    if (isSame) return (state) => state
    if (old.#windowUs() === this.#windowUs() && (spec.isSaved || old.#words() === this.#words())) {
      const here = this.#numberOf(nowUs)
      const isOpened = limit !== old.#limit() && (spec.isSaved || !this.#isWide())
      return (state) => {
        const { number, previous, current } = isOpened ? old.#openedEmpty(state, nowUs, here) : state
        return { number, previous: min(previous, limit), current: min(current, limit) }
      }
    }
    return (state) => {
      const counts = old.#stateAt(state, nowUs)
      const isAhead = old.#startUs(counts) > nowUs
      const used = isAhead ? max(counts.previous + counts.current, old.#limit()) : old.#usedIn(counts, nowUs)
      return used === 0n ? undefined : { number: this.#numberOf(nowUs), previous: 0n, current: min(used, limit) }
    }
  }

  protected override sibling(): SlidingWindowOracle {
    return new SlidingWindowOracle(this.spec)
  }

  /**
   * A key that waits for a window in which nothing is booked any more, full at this moment: no more counts of the window before than passed
   * beside what is known.
   */
  #openedEmpty(state: Counts, nowUs: bigint, here: bigint): Counts {
    const { number, previous, current } = state
    const limit = this.#limit()
    if (current === 0n && number === here + 2n && previous === 0n) return { number: here, previous: 0n, current: limit }
    if (current > 0n || number !== here + 1n) return state
    const room = ceilDiv(max(0n, limit - previous) * this.#windowUs(), (here + 1n) * this.#windowUs() - nowUs)
    return { number: here, previous: min(limit, room), current: previous }
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
    if (this.#limit() > PACKED_MOST) return `wide ${max(34n, BigInt(deepestCount(this.#limit()).toString(2).length))}`
    return this.#windowUs() < PACKED_WINDOW_US ? 'short' : 'packed'
  }

  /** The count before has a word of its own. */
  #isWide(): boolean {
    return this.#words().startsWith('wide') || this.#words() === 'short'
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
