import type { Policy } from '../../policy/policy.js'
import { checkedWindowMs } from '../../policy/policy-options.js'
import { fixedWindow } from '../../policy/window-policy.js'
import { formatMs } from '../../time/duration.js'
import { checkedPolicyName } from '../limiter-verbs.js'

/** The default prefix of keys. */
export const DEFAULT_PREFIX = 'rl:'
/** A limit that is never reached. */
const MOST_HITS = 1_000_000_000

/**
 * The policy of a limiter that only counts, for the option `create` of a store: windows of `windowMs` milliseconds. A primary of
 * `sluicegate/cluster` serves it.
 *
 * @param prefix of the store. If it is not the default it is part of the policy's name, which identifies it in a shared store.
 * @throws {PolicyError} `WINDOW_INVALID`, `NAME_INVALID`
 * @example serveLimiter(countingPolicy(60_000, 'login:'), { cluster })
 */
export function countingPolicy(windowMs: number, prefix: string = DEFAULT_PREFIX): Policy {
  const window = checkedWindowMs(windowMs, 'windowMs')
  const name = `express-rate-limit-${formatMs(window)}`
  const isCommon = prefix === DEFAULT_PREFIX || prefix === ''
  return fixedWindow({ limit: MOST_HITS, window, name: isCommon ? name : checkedPolicyName('prefix', `${name}-${prefix}`) })
}
