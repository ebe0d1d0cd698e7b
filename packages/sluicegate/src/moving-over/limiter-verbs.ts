import type { Awaitable } from '../awaitable.js'
import type { Decision } from '../decision.js'
import type { Key } from '../limiter.js'
import type { Duration } from '../policy/duration.js'
import type { Policy } from '../policy/policy.js'

/** What is asked of a limiter in the name of another library: those of this process and those of a fleet have it all. */
export interface LimiterVerbs {
  readonly policy: Policy
  /** The policy in force for a key, where keys may have one of their own. */
  policyOf?(key: Key): Policy
  take(key: Key, cost?: number): Awaitable<Decision>
  peek(key: Key, cost?: number): Awaitable<Decision>
  refund(key: Key, tokens: number): Awaitable<Decision>
  penalize(key: Key, tokens: number): Awaitable<Decision>
  block(key: Key, duration: Duration): Awaitable<Decision>
  reset(key: Key): Awaitable<Decision>
  close(): void
}
