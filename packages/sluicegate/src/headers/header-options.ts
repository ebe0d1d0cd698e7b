import { PolicyError } from '../errors.js'
import { checkFunction, checkOneOf, checkOptionNames } from '../options/option-checks.js'
import { RESET_MEANINGS, type ResetMeaning } from './header-formats.js'
import type { QuotaUnit } from './quota.js'

/** Drafts 8 to 10 are written as draft 11. `none`: only `Retry-After`. */
export type HeaderVersion = 'draft-11' | 'draft-10' | 'draft-9' | 'draft-8' | 'draft-7' | 'draft-6' | 'x-ratelimit' | 'none'

/** Which headers describe decisions, and how. */
export interface HeaderOptions {
  /** Default `draft-11`. */
  readonly version?: HeaderVersion
  /** With `x-ratelimit`: the meaning of its reset; default `epoch-seconds`. */
  readonly reset?: ResetMeaning
  /** With `draft-11`: what tokens are; default `requests`, which is not written. The unit of `concurrency` is always written. */
  readonly unit?: QuotaUnit
  /**
   * With `draft-11`: write a keyed hash of the key as `pk`. True for a secret of this process; for several processes 32 hexadecimal digits,
   * the same in all. Default false.
   */
  readonly partitionKey?: boolean | string
  /** Unix time in milliseconds, for resets that are moments; default `Date.now`. */
  readonly nowMs?: () => number
}

const HEADER_VERSIONS: readonly HeaderVersion[] = [
  'draft-11',
  'draft-10',
  'draft-9',
  'draft-8',
  'draft-7',
  'draft-6',
  'x-ratelimit',
  'none',
]
const UNITS: readonly QuotaUnit[] = ['requests', 'content-bytes', 'concurrent-requests']
const OPTIONS: readonly string[] = ['version', 'reset', 'unit', 'partitionKey', 'nowMs']
const SECRET = /^[0-9a-fA-F]{32}$/

/** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID` */
export function checkHeaderOptions(options: HeaderOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw new PolicyError('OPTION_INVALID', 'headers', options, "must be a version such as 'draft-11', or an object with options")
  }
  checkOptionNames(options, OPTIONS, 'headers')
  const { version, reset, unit, partitionKey, nowMs } = options
  checkOneOf('version', version, HEADER_VERSIONS)
  checkOneOf('reset', reset, RESET_MEANINGS)
  checkUnit(unit)
  if (partitionKey !== undefined && typeof partitionKey !== 'boolean' && !(typeof partitionKey === 'string' && SECRET.test(partitionKey))) {
    // The value may be a secret, even if it is invalid: it is not part of the error.
    throw new PolicyError('OPTION_INVALID', 'partitionKey', typeof partitionKey, 'must be true, false or 32 hexadecimal digits')
  }
  checkFunction('nowMs', nowMs, 'must be a function that reads Unix time in milliseconds')
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkUnit(unit: unknown): void {
  checkOneOf('unit', unit, UNITS)
}
