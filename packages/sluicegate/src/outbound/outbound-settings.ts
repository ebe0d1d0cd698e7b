import { type Clock, preciseClock } from '../clock.js'
import { PolicyError } from '../errors.js'
import { checkOptions } from '../policy/policy-options.js'
import type { OutboundOptions } from './outbound-options.js'
import type { PaceSettings } from './pace.js'

const MAX_BACKOFF_MS = 60_000
const EXAMPLE = '{ policy: tokenBucket({ limit: 10, window: "1s" }) }'
const FUNCTIONS = ['policyFor', 'key', 'priority', 'retry', 'onWait', 'onRetry', 'onThrottle', 'random'] as const
const OTHERS = ['policy', 'limiter', 'clock'] as const
const NUMBERS = {
  concurrency: { otherwise: Number.POSITIVE_INFINITY, least: 1, most: Number.POSITIVE_INFINITY, isWhole: true },
  bodyStallMs: { otherwise: 30_000, least: 1, most: Number.POSITIVE_INFINITY, isWhole: false },
  maxWaitMs: { otherwise: Number.POSITIVE_INFINITY, least: 0, most: Number.POSITIVE_INFINITY, isWhole: false },
  maxPauseMs: { otherwise: 300_000, least: 0, most: Number.POSITIVE_INFINITY, isWhole: false },
  maxWaiting: { otherwise: 10_000, least: 1, most: 1_000_000, isWhole: true },
  maxKeys: { otherwise: 10_000, least: 1, most: 1_000_000, isWhole: true },
  attempts: { otherwise: 5, least: 1, most: 100, isWhole: true },
  maxTotalMs: { otherwise: 120_000, least: 0, most: Number.POSITIVE_INFINITY, isWhole: false },
  backoffMs: { otherwise: 1_000, least: 1, most: MAX_BACKOFF_MS, isWhole: false },
  jitter: { otherwise: 0.1, least: 0, most: 1, isWhole: false },
  recoverMs: { otherwise: 20_000, least: 100, most: 3_600_000, isWhole: false },
  freeShare: { otherwise: 0.5, least: 0, most: 1, isWhole: false },
} as const

/** Options with all defaults filled in. */
export interface OutboundSettings extends Record<keyof typeof NUMBERS, number> {
  readonly given: OutboundOptions
  readonly clock: Clock
  readonly random: () => number
  readonly pace: PaceSettings
}

/** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID`, `POLICY_INVALID` */
export function outboundSettings(options: OutboundOptions): OutboundSettings {
  if (Array.isArray(options)) throw new PolicyError('OPTION_INVALID', 'options', options, `must be an object such as ${EXAMPLE}`)
  checkOptions(options, [...Object.keys(NUMBERS), ...FUNCTIONS, ...OTHERS], EXAMPLE, 'limitedFetch() and limited()')
  const numbers = numbersIn(options)
  for (const name of FUNCTIONS) {
    if (options[name] !== undefined && typeof options[name] !== 'function') {
      throw new PolicyError('OPTION_INVALID', name, options[name], 'must be a function')
    }
  }
  const { policy, policyFor, limiter, clock = preciseClock(), random = Math.random } = options
  if (typeof clock?.nowMs !== 'function') throw new PolicyError('CLOCK_INVALID', 'clock', clock, 'must have nowMs()')
  if (limiter !== undefined) {
    if (typeof limiter?.wait !== 'function') {
      throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'must be a limiter such as createLimiter(policy)')
    }
    if (policy !== undefined || policyFor !== undefined) {
      throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'has its own policies: give one or the other')
    }
  }
  const { backoffMs, jitter, recoverMs, freeShare } = numbers
  return {
    ...numbers,
    given: options,
    clock,
    random,
    pace: { backoffMs, maxBackoffMs: MAX_BACKOFF_MS, jitter, recoverMs, freeShare, random },
  }
}

function numbersIn(options: OutboundOptions): Record<keyof typeof NUMBERS, number> {
  const names = Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]
  return Object.fromEntries(names.map((name) => [name, checkedNumber(name, options[name])])) as Record<keyof typeof NUMBERS, number>
}

function checkedNumber(name: keyof typeof NUMBERS, value: unknown): number {
  const { otherwise, least, most, isWhole } = NUMBERS[name]
  if (value === undefined) return otherwise
  if (typeof value === 'number' && value >= least && value <= most && (!isWhole || Number.isInteger(value) || value === most)) return value
  throw new PolicyError('OPTION_INVALID', name, value, `must be ${isWhole ? 'an integer' : 'a number'} from ${least} to ${most}`)
}
