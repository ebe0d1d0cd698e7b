import type { Awaitable } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import type { WITHIN } from '../layers/shadow-limiter.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'

/**
 * The methods of a limiter that middleware calls; in-memory and shared limiters have all of them. A thrown or rejected `StoreError` is an outage,
 * and so is an answer that is not a decision. Any other error is one of the application.
 */
export interface MiddlewareLimiter {
  readonly policy: Policy
  /** Of a shadow limiter: the limiter that decides and denies. */
  readonly [WITHIN]?: MiddlewareLimiter
  /** The policy in force for a key, where keys may have a policy of their own. */
  policyOf?(key: Key): Policy
  take(key: Key, cost?: number): Awaitable<Decision>
  /** What a take would decide. Called only where several limits apply; once it answered by a promise it is not called again. */
  peek(key: Key, cost?: number): Awaitable<Decision>
  refund(key: Key, tokens: number): Awaitable<Decision>
}
