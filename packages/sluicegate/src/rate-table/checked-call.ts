import { PolicyError } from '../errors.js'
import type { CallRate } from './call-rate.js'
import type { Throttled } from './rate-table.js'

/** In UTF-16 units. Tables store no keys: the bound is for the time that hashing takes. */
const MAX_KEY_LENGTH = 16_384

/** @throws {PolicyError} `KEY_INVALID` */
export function checkCallKey(key: string): void {
  if (typeof key === 'string' && key.length <= MAX_KEY_LENGTH) return
  throw new PolicyError('KEY_INVALID', 'key', key, `must be a string of at most ${MAX_KEY_LENGTH} characters`)
}

/** @throws {PolicyError} `COST_INVALID` */
export function checkQuantity(quantity: number): void {
  if (Number.isInteger(quantity) && quantity >= 0) return
  throw new PolicyError('COST_INVALID', 'quantity', quantity, 'must be an integer >= 0')
}

/** What a table has found, in whole units, truncated. */
export interface CallFigures {
  readonly limited: boolean
  /** Of the longest debt, what is left; negative if the key owes more. */
  readonly leftUs: number
  /** Until the same call passes; -1 if it never does. Of no meaning if it passed. */
  readonly lateMs: number
  readonly owedMs: number
}

/** The five numbers. A part of a second counts as one from a millisecond on; redis-cell divides whole microseconds. */
export function throttled({ maxBurst }: CallRate, intervalNs: number, { limited, leftUs, lateMs, owedMs }: CallFigures): Throttled {
  const limit = maxBurst + 1
  const left = Math.trunc(leftUs / Math.trunc(intervalNs / 1000))
  return {
    limited,
    limit,
    remaining: left > 0 ? Math.min(left, limit) : 0,
    retryAfterS: !limited || lateMs < 0 ? -1 : Math.ceil(lateMs / 1000),
    resetAfterS: Math.ceil(owedMs / 1000),
  }
}
