import { PolicyError } from './errors.js'
import { checkFunction, checkInteger, checkNumber, checkOptions } from './options/option-checks.js'
import { type Duration, toMs } from './policy/duration.js'
import { checkedWindowMs } from './policy/policy-options.js'

/** When a key is banned, and for how long. */
export interface BanOptions {
  /** So many takes of a key that are denied, 1 to 1,000 ... */
  readonly denials: number
  /** ... within that time, 1 ms to 366 days, ... */
  readonly within: Duration
  /** ... block the key for that time, 1 ms to 366 days. */
  readonly for: Duration
  /** How many times as long the next ban of a key is, 1 to 1,000; default 1. */
  readonly factor?: number
  /** The longest ban; default 24 h, or `for` where that is longer. A ban that began more than twice as long ago is forgotten. */
  readonly max?: Duration
  /** Told of each ban that this process decides. What it throws is a warning of the process. */
  readonly onBan?: (ban: BanEvent) => void
}

/** Published on `sluicegate:ban`: a key was blocked because too many of its takes were denied. */
export interface BanEvent {
  readonly policy: string
  readonly key: string
  /** Milliseconds. */
  readonly forMs: number
  /** How many bans of this key this is, of those that are remembered here. */
  readonly bans: number
}

/** The same, read. */
export interface BanRule {
  readonly denials: number
  readonly withinMs: number
  readonly forMs: number
  readonly factor: number
  readonly maxMs: number
  readonly onBan: ((ban: BanEvent) => void) | undefined
}

const NAMES: readonly string[] = ['denials', 'within', 'for', 'factor', 'max', 'onBan'] satisfies (keyof BanOptions)[]
const DAY_MS = 86_400_000
const LONGEST_MS = 366 * DAY_MS

/** @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`, `DURATION_INVALID`, `WINDOW_INVALID` */
export function checkedBan(options: BanOptions | undefined): BanRule | undefined {
  if (options === undefined) return undefined
  checkOptions(options, NAMES, "{ denials: 10, within: '1m', for: '15m' }")
  const { denials, factor = 1, onBan } = options
  checkInteger('banAfter.denials', denials, 1, 1_000)
  checkNumber('banAfter.factor', factor, 1, 1_000)
  checkFunction('banAfter.onBan', onBan)
  const forMs = checkedLengthMs(options.for, 'banAfter.for')
  const maxMs = options.max === undefined ? Math.max(forMs, DAY_MS) : checkedLengthMs(options.max, 'banAfter.max')
  if (maxMs < forMs) throw new PolicyError('OPTION_INVALID', 'banAfter.max', options.max, 'must be as long as `for`, or longer')
  return { denials, withinMs: checkedWindowMs(options.within, 'banAfter.within'), forMs, factor, maxMs, onBan }
}

function checkedLengthMs(length: Duration, option: string): number {
  const ms = toMs(length, option)
  if (ms >= 1 && ms <= LONGEST_MS) return ms
  throw new PolicyError('DURATION_INVALID', option, length, 'must be from 1 ms to 366 days')
}
