import { PolicyError } from './errors.js'
import { type Duration, toMs } from './policy/duration.js'

/** In UTF-16 units. */
export const MAX_KEY_LENGTH = 1024
const MAX_INT32 = 2 ** 31 - 1
const MAX_BLOCK_MS = 100 * 366 * 86_400_000

/** What strings {@link isKey} asks for, in words. */
export const KEY_WORDS = `of 1 to ${MAX_KEY_LENGTH} characters`

export function isKey(key: unknown): key is string {
  return typeof key === 'string' && key.length > 0 && key.length <= MAX_KEY_LENGTH
}

/** @throws {PolicyError} `KEY_INVALID` */
export function checkKey(key: unknown): asserts key is string {
  if (!isKey(key)) throw new PolicyError('KEY_INVALID', 'key', key, `must be a string ${KEY_WORDS}`)
}

/**
 * The cost, at most what fits 32 bits: above 1,000,000,000 none can pass anyway.
 *
 * @throws {PolicyError} `COST_INVALID`
 */
export function checkedCost(cost: unknown): number {
  return Math.min(checkedTokens(cost, 'cost'), MAX_INT32)
}

/**
 * Tokens to give or take, at most what a double counts exactly: no debt comes near it.
 *
 * @throws {PolicyError} `COST_INVALID`
 */
export function checkedTokens(tokens: unknown, option = 'tokens'): number {
  if (typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 1) return Math.min(tokens, Number.MAX_SAFE_INTEGER)
  throw new PolicyError('COST_INVALID', option, tokens, 'must be an integer >= 1')
}

/**
 * What a request really cost.
 *
 * @throws {PolicyError} `COST_INVALID`
 */
export function checkActualCost(actualCost: unknown): void {
  if (typeof actualCost === 'number' && Number.isInteger(actualCost) && actualCost >= 0) return
  throw new PolicyError('COST_INVALID', 'actualCost', actualCost, 'must be an integer >= 0')
}

/**
 * How many of the top keys are wanted.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function checkedTop(n: unknown): number {
  if (typeof n === 'number' && Number.isInteger(n) && n >= 0) return n
  throw new PolicyError('OPTION_INVALID', 'n', n, 'must be an integer >= 0')
}

/**
 * How long to block, to the nearest microsecond as readings are; only 0 itself is none.
 *
 * @throws {PolicyError} `DURATION_INVALID`
 */
export function blockUs(duration: Duration): number {
  const ms = toMs(duration, 'duration')
  if (ms > MAX_BLOCK_MS) throw new PolicyError('DURATION_INVALID', 'duration', duration, 'must be at most 100 years')
  return ms > 0 ? Math.max(1, Math.round(ms * 1000)) : 0
}
