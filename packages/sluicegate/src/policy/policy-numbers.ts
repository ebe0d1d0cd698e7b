import { PolicyError } from '../errors.js'
import { formatMs } from '../time/duration.js'
import { type CalendarUnit, longestMs } from './calendar.js'
import type { Policy } from './policy.js'

/** A policy in the numbers that the core reads; see `memory-map.ts` and `encodings.ts` there. */
export interface PolicyNumbers {
  readonly encoding: Encoding
  /** Units of debt a microsecond, a token, and in all. Where tokens are simply counted, a token is a unit. */
  readonly unitsPerUs: number
  readonly unitsPerToken: number
  readonly capacity: number
  /** 0 for windows of the calendar, and where units say it all. */
  readonly windowUs: number
  /** Widths of the fields of a state word's value: a count, and the number of a window or the time of a request. */
  readonly countBits: number
  readonly numberBits: number
  /** What one step of that number stands for. */
  readonly tickUs: number
  /** Slots of a key beside its entry. */
  readonly slots: number
  /** Bytes of a key beside its entry. */
  readonly stride: number
  /** Of a window of the calendar its identity, otherwise 0. */
  readonly calendar: number
}

/** The encodings of a state word, by their names in the core. */
export const ENCODINGS = ['ARRIVAL', 'BUCKET', 'FIXED', 'SLIDING', 'WIDE', 'LOG', 'CONCURRENCY'] as const
export type Encoding = (typeof ENCODINGS)[number]

const VALUE_BITS = 56
/** Of the limit or burst, the deepest that a key goes into debt. */
export const DEEPEST_DEBT_BURSTS = 11
/** How far ahead a store keeps a booking, in microseconds, as lua/steps/bounds.lua has it: debt beyond it comes from a clock that stepped back. */
export const FURTHEST_US = 3_600_000_000
/** A packed word has 24 bits for the level, which may stand up to one tick of 1,024 microseconds above the capacity. */
const PACKED_LEVELS = 2 ** 24
const PACKED_TICK_US = 1024
const PACKED_RANGE_BITS = 42
/** Counters of 16 bits, and window numbers of 24, of which half last for the shortest window 21 days; beyond, the wide encoding. */
const PACKED_COUNT = 65_535
const PACKED_COUNT_BITS = 16
const PACKED_NUMBER_BITS = 24
const SHORTEST_PACKED_US = 220_000
const WIDE_COUNT_BITS = 34
/** The count of the window before has one word, with its number and the era. */
const WIDEST_COUNT_BITS = 43
const SHORT_COUNT_BITS = 20
/** What the numbers of windows reach at least, in windows and in microseconds: half of it bears a clock that is set back. */
const LEAST_NUMBER_BITS = 3
const LEAST_FIXED_US = 2 ** 22 * 1000
const LEAST_WIDE_US = 2 ** 21 * 1000
/** Windows of the calendar begin at whole minutes. */
const CALENDAR_TICK_US = 60_000_000
/** Windows that the numbers of a calendar reach, unless its ticks would be too long. */
const CALENDAR_WINDOWS = 7
/** The longest ticks. No window is shorter, even where its zone skipped a day, or hours: Vostok had one of 17 hours in 1994. */
const LONGEST_TICK_US: Readonly<Record<CalendarUnit, number>> = {
  day: 17 * 60 * CALENDAR_TICK_US,
  week: 2 ** 13 * CALENDAR_TICK_US,
  month: 2 ** 15 * CALENDAR_TICK_US,
  year: 2 ** 18 * CALENDAR_TICK_US,
  // Eight of them reach twice as far as its first window, which began in 1970: so that lies behind no time base.
  ever: 2 ** 25 * CALENDAR_TICK_US,
}
const READING_BITS = 47
const MOST_LOG_SLOTS = 100_001
const MOST_PERMITS = 10_000

/** The numbers of a policy. @param before those of the policy that it replaces: a log keeps their layout if it fits. */
export function numbersOf(policy: Policy, before?: PolicyNumbers): PolicyNumbers {
  switch (policy.algorithm) {
    case 'token-bucket':
    case 'gcra':
      return rate(policy)
    case 'fixed-window':
      return fixedWindow(policy)
    case 'sliding-window':
      return slidingWindow(policy)
    case 'sliding-log':
      return slidingLog(policy, before)
    default:
      return concurrency(policy, before)
  }
}

function rate(policy: Policy): PolicyNumbers {
  const { unitsPerUs, unitsPerToken, capacity } = emissionOf(policy)
  const packed = policy.algorithm === 'token-bucket' && capacity + PACKED_TICK_US * unitsPerUs < PACKED_LEVELS
  return {
    ...counting(policy),
    encoding: packed ? 'BUCKET' : 'ARRIVAL',
    unitsPerUs,
    unitsPerToken,
    capacity,
    windowUs: 0,
    numberBits: packed ? PACKED_RANGE_BITS : 0,
    tickUs: 1,
  }
}

function fixedWindow(policy: Policy): PolicyNumbers {
  const numbers = counting(policy)
  const countBits = bitsFor(deepestCount(policy.limit))
  const numberBits = VALUE_BITS - countBits
  const fixed = { ...numbers, encoding: 'FIXED' as const, countBits, numberBits }
  const { calendar } = policy
  if (calendar === undefined) {
    checkCountBits(policy, countBits, widestCount(numbers.windowUs, VALUE_BITS, LEAST_FIXED_US))
    return fixed
  }
  const tickUs = calendarTickUs(calendar.unit, numberBits)
  return { ...fixed, windowUs: 0, tickUs, calendar: identityOf(`${calendar.unit} ${calendar.timeZone}`) }
}

/** The most tokens that count in a window of this limit, penalties included; exact in a double. */
function deepestCount(limit: number): number {
  return Math.min(DEEPEST_DEBT_BURSTS * limit, Number.MAX_SAFE_INTEGER)
}

/** The shortest ticks whose numbers reach far enough. */
function calendarTickUs(unit: CalendarUnit, numberBits: number): number {
  const reachUs = CALENDAR_WINDOWS * longestMs(unit) * 1000
  let tickUs = CALENDAR_TICK_US
  while (tickUs < LONGEST_TICK_US[unit] && tickUs * 2 ** numberBits < reachUs) tickUs *= 2
  return Math.min(tickUs, LONGEST_TICK_US[unit])
}

/** The widest count beside numbers of windows that reach far enough, of `bits` in all. */
function widestCount(windowUs: number, bits: number, leastUs: number): number {
  let numberBits = LEAST_NUMBER_BITS
  while (windowUs * 2 ** numberBits < leastUs) numberBits++
  return bits - numberBits
}

/** @throws {PolicyError} `RANGE_UNSUPPORTED` */
function checkCountBits({ algorithm, limit, windowMs }: Policy, countBits: number, widest: number): void {
  if (countBits <= widest) return
  const most = Math.floor((2 ** widest - 1) / DEEPEST_DEBT_BURSTS)
  throw tooManyTokens(`${algorithm} of ${formatMs(windowMs)}`, limit, most, algorithm === 'fixed-window' ? '' : ', or take fixedWindow()')
}

function tooManyTokens(policy: string, limit: number, most: number, instead = ''): PolicyError {
  const mend = `take a longer window, or count in larger units${instead}`
  return new PolicyError('RANGE_UNSUPPORTED', 'limit', limit, `is more than a ${policy} counts exactly, which is ${most}: ${mend}`)
}

function slidingWindow(policy: Policy): PolicyNumbers {
  const numbers = counting(policy)
  const small = policy.limit <= PACKED_COUNT
  if (small && numbers.windowUs >= SHORTEST_PACKED_US) {
    return { ...numbers, encoding: 'SLIDING', countBits: PACKED_COUNT_BITS, numberBits: PACKED_NUMBER_BITS }
  }
  const countBits = small ? SHORT_COUNT_BITS : Math.max(WIDE_COUNT_BITS, bitsFor(deepestCount(policy.limit)))
  checkCountBits(policy, countBits, Math.min(WIDEST_COUNT_BITS, widestCount(numbers.windowUs, VALUE_BITS - 1, LEAST_WIDE_US)))
  // One bit is the seal.
  return { ...numbers, encoding: 'WIDE', countBits, numberBits: VALUE_BITS - 1 - countBits, stride: 8 }
}

function slidingLog(policy: Policy, before: PolicyNumbers | undefined): PolicyNumbers {
  const numbers = counting(policy)
  // One more: for what is over, but tells the cost so far.
  const slots = policy.limit + 1
  const countBits = bitsFor((DEEPEST_DEBT_BURSTS + 1) * policy.limit)
  const tickUs = logTickUs(numbers.windowUs, countBits)
  const fits =
    before !== undefined &&
    before.slots >= slots &&
    before.countBits >= countBits &&
    before.tickUs === tickUs &&
    tickUs === logTickUs(numbers.windowUs, before.countBits)
  if (fits) return { ...numbers, ...layoutOf(before) }
  const most = grown(slots, before?.slots ?? 0, MOST_LOG_SLOTS)
  return { ...numbers, encoding: 'LOG', countBits, numberBits: VALUE_BITS - countBits, tickUs, slots: most, stride: 8 + 8 * most }
}

/** Microseconds a tick of a log: the smallest power of two for which a window is an eighth of what a time can tell. */
function logTickUs(windowUs: number, countBits: number): number {
  const most = 2 ** (VALUE_BITS - countBits - 3)
  let tickUs = 1
  while (windowUs / tickUs > most) tickUs *= 2
  return tickUs
}

function concurrency(policy: Policy, before: PolicyNumbers | undefined): PolicyNumbers {
  const numbers = { ...counting(policy), encoding: 'CONCURRENCY' as const, numberBits: READING_BITS, tickUs: 1 }
  const slots = grown(policy.limit, before?.slots ?? 0, MOST_PERMITS)
  return { ...numbers, slots, stride: slots * 8 }
}

/** What policies that count tokens have in common. */
function counting({ limit, windowMs }: Policy): PolicyNumbers {
  const windowUs = Math.round(windowMs * 1000)
  return {
    encoding: 'FIXED',
    unitsPerUs: 1,
    unitsPerToken: 1,
    capacity: limit,
    windowUs,
    countBits: 0,
    numberBits: 0,
    tickUs: windowUs,
    slots: 0,
    stride: 0,
    calendar: 0,
  }
}

/** The slots after a change: never fewer than before, and at least 1.5 times as many if more, so that small steps do not exhaust the memory. */
function grown(slots: number, before: number, most: number): number {
  if (slots <= before) return before
  return Math.max(slots, Math.min(Math.ceil(before * 1.5), most))
}

function layoutOf({ encoding, countBits, numberBits, tickUs, slots, stride }: PolicyNumbers): Partial<PolicyNumbers> {
  return { encoding, countBits, numberBits, tickUs, slots, stride }
}

function bitsFor(most: number): number {
  let bits = 1
  // Logarithms round.
  while (2 ** bits <= most) bits++
  return bits
}

/** A hash that distinguishes calendars: FNV-1a. */
function identityOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/**
 * A policy in the integers that the core counts in. One *unit* is `1 / unitsPerUs` microseconds, and one token takes
 * `unitsPerToken` of them to come back, so a key's debt is a whole number of units.
 */
interface Emission {
  readonly unitsPerUs: number
  readonly unitsPerToken: number
  /** Debt of a key that has just spent its whole burst: `burst * unitsPerToken`. */
  readonly capacity: number
}

/** A full bucket's debt and the ten bursts of penalty below it stay exact in a double (and far inside a state word). */
const MAX_DEBT_UNITS = 2 ** 53
const MAX_DEBT_BURSTS = 12
/** Above it the time base would have to move more than four times a day, and could not bear a clock set back by 12 hours. */
const MAX_UNITS_PER_US = 834_000
const MAX_RATE_LOSS = 0.001

/**
 * The integers of a policy. Exact when `limit / gcd(limit, window in microseconds)` is small enough to be the number of
 * units a microsecond; otherwise the emission interval is rounded *up*, so that the rate is never above the policy's, and
 * the loss is the smallest that fits.
 *
 * @throws {PolicyError} `RANGE_UNSUPPORTED` when the burst takes decades to refill or more than 0.1 % would be lost.
 */
export function emissionOf(policy: Pick<Policy, 'limit' | 'windowMs' | 'burst'>): Emission {
  const { limit, burst } = policy
  const windowUs = Math.round(policy.windowMs * 1000)
  const refillUs = Math.ceil((windowUs / limit) * burst)
  const most = Math.min(MAX_UNITS_PER_US, Math.floor(MAX_DEBT_UNITS / (MAX_DEBT_BURSTS * refillUs + 1)))
  if (most < 1) {
    throw new PolicyError('RANGE_UNSUPPORTED', 'burst', burst, 'would take more than 23 years to refill at this limit and window: lower it')
  }
  const shared = gcd(limit, windowUs)
  const exact = { unitsPerUs: limit / shared, unitsPerToken: windowUs / shared }
  const { unitsPerUs, unitsPerToken } = exact.unitsPerUs <= most ? exact : roundedUp(limit, windowUs, most)
  if ((unitsPerToken * limit) / (unitsPerUs * windowUs) - 1 > MAX_RATE_LOSS) {
    const largest = windowUs * (burst === limit ? most : MAX_UNITS_PER_US)
    if (limit > largest) throw tooManyTokens(`rate over ${formatMs(policy.windowMs)}`, limit, largest, ', or take fixedWindow()')
    throw new PolicyError(
      'RANGE_UNSUPPORTED',
      'limit',
      limit,
      'loses more than 0.1 % to rounding with this window and burst: lower the burst, or round the limit',
    )
  }
  return { unitsPerUs, unitsPerToken, capacity: burst * unitsPerToken }
}

/** The better of two fractions `unitsPerToken / unitsPerUs` just above `windowUs / limit`, neither part above `most` units a microsecond. */
function roundedUp(limit: number, windowUs: number, most: number): { unitsPerUs: number; unitsPerToken: number } {
  const window = BigInt(windowUs)
  const tokens = BigInt(limit)
  const fine = { unitsPerUs: most, unitsPerToken: Number((window * BigInt(most) + tokens - 1n) / tokens) }
  const fewer = (window * BigInt(most)) / tokens
  const even = { unitsPerUs: Number((fewer * tokens) / window), unitsPerToken: Number(fewer) }
  if (even.unitsPerUs < 1) return fine
  return fine.unitsPerToken * even.unitsPerUs <= even.unitsPerToken * fine.unitsPerUs ? fine : even
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b)
}

/** `a * b / c` of whole numbers, rounded up; the product may be above 2^53. */
export function scaledUp(a: number, b: number, c: number): number {
  return a * b < 2 ** 52 ? Math.ceil((a * b) / c) : Number((BigInt(a) * BigInt(b) + BigInt(c) - 1n) / BigInt(c))
}
