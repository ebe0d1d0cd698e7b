import { PolicyError } from './errors.js'
import { checkFunction, checkInteger, checkNumber, checkOptions } from './options/option-checks.js'
import { checkedWindowMs } from './policy/policy-options.js'
import { DAY_MS, type Duration, toMs } from './time/duration.js'

/** When a key is banned, and for how long. */
export interface BanOptions {
  /**
   * Denied takes of a key within `within` that ban it, 1 to 1,000.
   *
   * @defaultValue required
   * @example { denials: 10, within: '1m', for: '15m' }
   */
  readonly denials: number
  /**
   * The time in which the denials are counted, 1 ms to 366 days.
   *
   * @defaultValue required
   * @example { denials: 10, within: '1m', for: '15m' }
   */
  readonly within: Duration
  /**
   * The length of the first ban, 1 ms to 366 days.
   *
   * @defaultValue required
   * @example { denials: 10, within: '1m', for: '15m' }
   */
  readonly for: Duration
  /**
   * The factor by which each further ban of a key is longer, 1 to 1,000.
   *
   * @defaultValue `1`
   * @example { denials: 10, within: '1m', for: '15m', factor: 2 }
   */
  readonly factor?: number
  /**
   * The longest ban. A ban that began more than twice as long ago is forgotten.
   *
   * @defaultValue 24 h, or `for` if that is longer
   * @example { denials: 10, within: '1m', for: '15m', factor: 2, max: '6h' }
   */
  readonly max?: Duration
  /**
   * Called with each ban that this process decides. What it throws becomes a warning of the process.
   *
   * @defaultValue none
   * @example { denials: 10, within: '1m', for: '15m', onBan: ({ key, forMs }) => console.log(key, forMs) }
   */
  readonly onBan?: (ban: BanEvent) => void
}

/** Published on `sluicegate:ban`: a key was blocked after too many denials. */
export interface BanEvent {
  readonly policy: string
  readonly key: string
  /** Milliseconds. */
  readonly forMs: number
  /** The number of this ban among those of the key that this process remembers. */
  readonly bans: number
}

/** The checked option. */
export interface BanRule {
  readonly denials: number
  readonly withinMs: number
  readonly forMs: number
  readonly factor: number
  readonly maxMs: number
  readonly onBan: ((ban: BanEvent) => void) | undefined
}

const NAMES: readonly string[] = ['denials', 'within', 'for', 'factor', 'max', 'onBan'] satisfies (keyof BanOptions)[]
const LONGEST_MS = 366 * DAY_MS

/** @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`, `DURATION_INVALID`, `WINDOW_INVALID` */
export function checkedBan(given: BanOptions | undefined): BanRule | undefined {
  if (given === undefined) return undefined
  const options = checkOptions(given, NAMES, "{ denials: 10, within: '1m', for: '15m' }", 'banAfter', 'banAfter')
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
