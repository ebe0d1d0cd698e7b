import { formatMs } from '../../policy/duration.js'
import type { Policy } from '../../policy/policy.js'
import { checkedWindowMs } from '../../policy/policy-options.js'
import { fixedWindow } from '../../policy/window-policy.js'
import { checkedPolicyName } from '../limiter-verbs.js'

/** What keys of a store begin with that makes its limiter. */
export const DEFAULT_PREFIX = 'rl:'
/** So many that nobody is denied here. */
const MOST_HITS = 1_000_000_000

/**
 * The policy of a limiter that only counts, which a store asks `create` for: windows of so many milliseconds. A primary of
 * `sluicegate/cluster` serves it.
 *
 * @param prefix of the store. One of its own is in the policy's name, by which a fleet knows it.
 * @throws {PolicyError} `WINDOW_INVALID`, `NAME_INVALID`
 * @example serveLimiter(countingPolicy(60_000, 'login:'), { cluster })
 */
export function countingPolicy(windowMs: number, prefix: string = DEFAULT_PREFIX): Policy {
  const window = checkedWindowMs(windowMs, 'windowMs')
  const name = `express-rate-limit-${formatMs(window)}`
  const isCommon = prefix === DEFAULT_PREFIX || prefix === ''
  return fixedWindow({ limit: MOST_HITS, window, name: isCommon ? name : checkedPolicyName('prefix', `${name}-${prefix}`) })
}
