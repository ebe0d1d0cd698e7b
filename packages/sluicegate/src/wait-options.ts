import { checkedCost } from './arguments.js'
import { PolicyError } from './errors.js'
import type { Key } from './key.js'
import { checkOptions } from './options/option-checks.js'

/** What `limiter.wait` takes beside the key. */
export interface WaitOptions {
  /** Default 1. */
  readonly cost?: number
  /** Ends the wait: it rejects with the signal's reason, and what was held goes back. */
  readonly signal?: AbortSignal
  /** Denied at once when it would take longer; default as long as it takes. */
  readonly maxWaitMs?: number
}

/** What is asked of `wait`, checked; all but the key, which only the limiter knows how to check. */
export interface WaitRequest {
  readonly key: Key
  readonly cost: number
  /** `Infinity`: as long as it takes. */
  readonly maxWaitMs: number
  readonly signal: AbortSignal | undefined
}

const OPTIONS: readonly string[] = ['cost', 'signal', 'maxWaitMs'] satisfies (keyof WaitOptions)[]

/** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID` or `COST_INVALID` */
export function checkedWaitRequest(key: Key, options: WaitOptions): WaitRequest {
  checkOptions(options, OPTIONS, '{ maxWaitMs: 1000 }', 'wait()')
  const { cost = 1, maxWaitMs = Number.POSITIVE_INFINITY, signal } = options
  if (typeof maxWaitMs !== 'number' || !(maxWaitMs >= 0)) {
    throw new PolicyError('OPTION_INVALID', 'maxWaitMs', maxWaitMs, 'must be milliseconds >= 0')
  }
  if (signal !== undefined && (typeof signal?.aborted !== 'boolean' || typeof signal.addEventListener !== 'function')) {
    throw new PolicyError('OPTION_INVALID', 'signal', signal, 'must be an AbortSignal')
  }
  return { key: ownKey(key), cost: checkedCost(cost), maxWaitMs, signal }
}

/** The caller may change its array later. */
export function ownKey(key: Key): Key {
  return Array.isArray(key) ? [...key] : key
}
