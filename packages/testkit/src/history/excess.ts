import type { PolicySpec, RateSpec, SinglePolicySpec } from '../oracle/oracle.js'
import { type Windows, windowsOf } from '../oracle/window-oracles.js'

// The forms of "never over" for windows, without an oracle. One key, one policy, and only takes: a reset or a refund between them
// forgives what these count. Times are the clock's readings, in whatever order they came.

/** Looks for a window in which more than `limit` was admitted. */
export function firstWindowExcess(limit: number, windows: Windows, admissions: readonly Admission[]): Excess | undefined {
  return firstOverBudget(limit, admissions, (atUs) => Number(windows(BigInt(atUs)).startUs))
}

/** Looks for a position of a window of `windowUs` in which more than `budget` was admitted: the limit of a log, or one below twice the limit. */
export function firstPositionExcess(budget: number, windowUs: number, admissions: readonly Admission[]): Excess | undefined {
  return firstOverBudget(budget, admissions, (atUs) => atUs - windowUs + 1)
}

/** A moment at which demand went without tokens that a log had for it, and what was admitted in the window that ended then. */
interface Shortfall {
  readonly atUs: number
  readonly admitted: number
}

/**
 * Looks for a moment at which a log held back: demand was never met in full at any of `momentsUs`, and yet the window that ended with one
 * of them holds fewer than `limit`.
 */
export function firstShortfall(
  limit: number,
  windowUs: number,
  admissions: readonly Admission[],
  momentsUs: readonly number[],
): Shortfall | undefined {
  const sorted = inTime(admissions)
  const [into, outOf] = [new Tally(sorted), new Tally(sorted)]
  for (const atUs of [...momentsUs].sort((a, b) => a - b)) {
    const admitted = into.before(atUs + 1) - outOf.before(atUs - windowUs + 1)
    if (admitted < limit) return { atUs, admitted }
  }
  return undefined
}

/** The first admission that is over the budget, counted from where a window that it ends begins. */
function firstOverBudget(budget: number, admissions: readonly Admission[], startUs: (atUs: number) => number): Excess | undefined {
  const sorted = inTime(admissions)
  const before = new Tally(sorted)
  let admitted = 0
  for (const { atUs, cost } of sorted) {
    admitted += cost
    const inWindow = admitted - before.before(startUs(atUs))
    if (inWindow > budget) return { fromUs: sorted[before.counted]?.atUs ?? atUs, toUs: atUs, admitted: inWindow, budget }
  }
  return undefined
}

/** What was admitted before a moment, of moments that only grow. */
class Tally {
  readonly #sorted: readonly Admission[]
  #cost = 0
  counted = 0

  constructor(sorted: readonly Admission[]) {
    this.#sorted = sorted
  }

  before(us: number): number {
    for (let next = this.#sorted[this.counted]; next !== undefined && next.atUs < us; next = this.#sorted[++this.counted]) {
      this.#cost += next.cost
    }
    return this.#cost
  }
}

function inTime(admissions: readonly Admission[]): Admission[] {
  return [...admissions].sort((a, b) => a.atUs - b.atUs)
}

/**
 * Looks for an interval in which more was admitted than `burst + limit / window * length`, without any rounding.
 *
 * Every interval counts: for each admission as its end, the worst start so far is carried along, so that n admissions are
 * checked in n log n steps. Times are the clock's readings, in whatever order they came: a clock that steps back passes
 * through an interval twice and still gets its budget once. One key, one policy, and only takes: a reset or refund between
 * them forgives what this counts.
 *
 * @returns the first interval found, with its budget `burst + rate * length`; undefined when there is none.
 */
export function firstExcess(spec: RateSpec, admissions: readonly Admission[]): Excess | undefined {
  const { limit, windowUs, burst } = whole(spec)
  const inTime = [...admissions].sort((a, b) => a.atUs - b.atUs)
  let admitted = 0n
  // windowUs * (admitted before the interval) - limit * (its start): the lowest makes the tightest bound.
  let worst: { readonly level: bigint; readonly fromUs: number; readonly before: bigint } | undefined
  for (const { atUs, cost } of inTime) {
    const level = windowUs * admitted - limit * BigInt(atUs)
    if (worst === undefined || level < worst.level) worst = { level, fromUs: atUs, before: admitted }
    admitted += BigInt(cost)
    if (windowUs * admitted - limit * BigInt(atUs) - worst.level > windowUs * burst) {
      const budget = burst + (limit * BigInt(atUs - worst.fromUs)) / windowUs
      return { fromUs: worst.fromUs, toUs: atUs, admitted: Number(admitted - worst.before), budget: Number(budget) }
    }
  }
  return undefined
}

/**
 * The share of the budget that a caller got who asked all the time for `lengthUs`: admitted / floor(burst + rate * length),
 * as parts of a million, rounded down.
 */
export function shareOfBudget(spec: RateSpec, admitted: number, lengthUs: number): number {
  const { limit, windowUs, burst } = whole(spec)
  const budget = burst + (limit * BigInt(lengthUs)) / windowUs
  return Number((BigInt(admitted) * 1_000_000n) / budget)
}

function whole(spec: RateSpec): { limit: bigint; windowUs: bigint; burst: bigint } {
  return { limit: BigInt(spec.limit), windowUs: BigInt(Math.round(spec.windowMs * 1000)), burst: BigInt(spec.burst) }
}

/** A token that was spent between two times of the machine's clock, in microseconds. */
export interface Spent {
  readonly fromUs: number
  readonly toUs: number
}

/** More than may pass in an interval. */
interface SureExcess {
  readonly lengthUs: number
  readonly spent: number
  readonly budget: number
}

/**
 * An interval in which surely more was spent than the budget of its length, on a machine of any speed: of each token only two times are known
 * between which it was spent, and counted are those that lie within.
 */
export function surelyOver(spent: readonly Spent[], budgetOf: (lengthUs: number) => number): SureExcess | undefined {
  const inTime = [...spent].sort((a, b) => a.toUs - b.toUs)
  for (const { fromUs: beginUs } of inTime) {
    let count = 0
    for (const { fromUs, toUs } of inTime) {
      if (fromUs < beginUs) continue
      count++
      const lengthUs = toUs - beginUs
      if (count > budgetOf(lengthUs)) return { lengthUs, spent: count, budget: budgetOf(lengthUs) }
    }
  }
  return undefined
}

/** `burst + rate * length`. */
export function rateBudget({ limit, windowMs, burst }: RateSpec): (lengthUs: number) => number {
  return (lengthUs) => burst + (limit * lengthUs) / (windowMs * 1000)
}

/** `most` in any span shorter than a window, at any position; no bound for longer spans. */
export function positionBudget(most: number, windowMs: number): (lengthUs: number) => number {
  return (lengthUs) => (lengthUs < windowMs * 1000 ? most : Number.POSITIVE_INFINITY)
}

/** What holds in every interval, wherever windows begin. */
export function budgetOf(spec: SinglePolicySpec): (lengthUs: number) => number {
  switch (spec.algorithm) {
    case 'token-bucket':
    case 'gcra':
      return rateBudget(spec)
    case 'fixed-window':
      return positionBudget(2 * spec.limit, spec.windowMs)
    case 'sliding-window':
      return positionBudget(2 * spec.limit - 1, spec.windowMs)
    case 'sliding-log':
      return positionBudget(spec.limit, spec.windowMs)
    case 'concurrency':
      throw new RangeError('permits are held, not spent')
  }
}

/** One admitted request: the clock's reading when it passed, in whole microseconds, and its cost. */
export interface Admission {
  readonly atUs: number
  readonly cost: number
}

/** The interval that broke the budget: from one admission to another, both included. */
export interface Excess {
  readonly fromUs: number
  readonly toUs: number
  readonly admitted: number
  /** In whole tokens, rounded down. */
  readonly budget: number
}

/**
 * By how many tokens the worst interval is over `burst + limit / window * length`, 0 when none is: for what may be over by a stated bound.
 * In doubles. See {@link firstExcess} for what never may.
 */
export function worstExcess({ limit, windowMs, burst }: RateSpec, admissions: readonly Admission[]): number {
  const perUs = limit / (windowMs * 1000)
  let admitted = 0
  let lowest = Number.POSITIVE_INFINITY
  let worst = 0
  for (const { atUs, cost } of [...admissions].sort((a, b) => a.atUs - b.atUs)) {
    lowest = Math.min(lowest, admitted - perUs * atUs)
    admitted += cost
    worst = Math.max(worst, admitted - perUs * atUs - lowest - burst)
  }
  return worst
}

/**
 * By how many tokens the worst interval is surely over `burst + limit / window * length`, 0 when none is. As `surelyOver`, on histories of
 * any length: of each token only two times are known between which it was spent, and an interval counts those that lie within.
 */
export function worstSureExcess({ limit, windowMs, burst }: RateSpec, spent: readonly Spent[]): number {
  const perUs = limit / (windowMs * 1000)
  const starts = [...new Set(spent.map(({ fromUs }) => fromUs))].sort((a, b) => a - b)
  const indexOf = new Map(starts.map((fromUs, i) => [fromUs, i]))
  // For each start of an interval: tokens within it so far, plus what its start adds to the budget.
  const levels = new PrefixLevels(starts.map((fromUs) => perUs * (fromUs - (starts[0] ?? 0))))
  let worst = 0
  for (const { fromUs, toUs } of [...spent].sort((a, b) => a.toUs - b.toUs)) {
    // It lies in every interval that begins with it or before.
    levels.raise(indexOf.get(fromUs) as number)
    worst = Math.max(worst, levels.highest - perUs * (toUs - (starts[0] ?? 0)) - burst)
  }
  // Below it are roundings of doubles.
  return worst < 1e-6 ? 0 : worst
}

/** Numbers of which all up to some index are raised by one, and the highest of those that count; each in logarithmic time. */
class PrefixLevels {
  readonly #levels: readonly number[]
  readonly #size: number
  readonly #highest: Float64Array
  readonly #raised: Float64Array

  constructor(levels: readonly number[]) {
    this.#levels = levels
    this.#size = 2 ** Math.ceil(Math.log2(Math.max(1, levels.length)))
    this.#highest = new Float64Array(2 * this.#size).fill(Number.NEGATIVE_INFINITY)
    this.#raised = new Float64Array(2 * this.#size)
  }

  get highest(): number {
    return this.#highest[1] as number
  }

  /** Raises all up to `last`, which counts from now on. */
  raise(last: number): void {
    let node = this.#size + last
    this.#add(node)
    this.#highest[node] = (this.#levels[last] as number) + (this.#raised[node] as number)
    for (; node > 1; node >>= 1) {
      // Of two siblings the right one was raised in part: the left one lies before it.
      if (node % 2 === 1) this.#add(node - 1)
      this.#join(node >> 1)
    }
  }

  #add(node: number): void {
    this.#highest[node] = (this.#highest[node] as number) + 1
    this.#raised[node] = (this.#raised[node] as number) + 1
  }

  #join(node: number): void {
    this.#highest[node] =
      Math.max(this.#highest[2 * node] as number, this.#highest[2 * node + 1] as number) + (this.#raised[node] as number)
  }
}

/**
 * I1 in the form of the policy's algorithm, of all-of for each of its policies. One key, and only takes; where they are permits, no
 * releases: each is in flight for its time to live.
 */
export function firstOver(spec: PolicySpec, admissions: readonly Admission[]): Excess | undefined {
  switch (spec.algorithm) {
    case 'token-bucket':
    case 'gcra':
      return firstExcess(spec, admissions)
    case 'fixed-window':
      return firstWindowExcess(spec.limit, windowsOf(spec), admissions)
    case 'sliding-window':
      return (
        firstWindowExcess(spec.limit, windowsOf({ ...spec, algorithm: 'fixed-window' }), admissions) ??
        firstPositionExcess(2 * spec.limit - 1, windowUsOf(spec), admissions)
      )
    case 'sliding-log':
      return firstPositionExcess(spec.limit, windowUsOf(spec), admissions)
    case 'concurrency':
      return firstPositionExcess(spec.limit, windowUsOf(spec), forward(admissions))
    case 'all-of':
      return spec.parts.map((part) => firstOver(part, admissions)).find((excess) => excess !== undefined)
  }
}

function windowUsOf({ windowMs }: { readonly windowMs: number }): number {
  return Math.round(windowMs * 1000)
}

/** As a permit sees time, which never runs back. */
function forward(admissions: readonly Admission[]): Admission[] {
  let latestUs = Number.NEGATIVE_INFINITY
  return admissions.map(({ atUs, cost }) => {
    latestUs = Math.max(latestUs, atUs)
    return { atUs: latestUs, cost }
  })
}

/** A permit: when it was given, and when it came back, by release or by expiry. */
export interface Flight {
  readonly fromUs: number
  readonly untilUs: number
  readonly cost: number
}

/** A moment at which too many were in flight. */
export interface Crowding {
  readonly atUs: number
  readonly inFlight: number
}

/** Looks for a moment at which more than `limit` was in flight; one that ends then is not. */
export function firstCrowding(limit: number, flights: readonly Flight[]): Crowding | undefined {
  for (const { fromUs: atUs } of [...flights].sort((a, b) => a.fromUs - b.fromUs)) {
    const inFlight = flights.reduce((sum, { fromUs, untilUs, cost }) => (fromUs <= atUs && untilUs > atUs ? sum + cost : sum), 0)
    if (inFlight > limit) return { atUs, inFlight }
  }
  return undefined
}
