import type { Awaitable } from '../awaitable.js'
import type { Decision } from '../decision.js'
import type { WITHIN } from '../layers/shadow-limiter.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'

/**
 * What the edge asks of a limiter: those in the process and those of a fleet have it all. What throws, or rejects with, a `StoreError` is without its
 * store, as is what answers with no decision; any other error is one of the application.
 */
export interface EdgeLimiter {
  readonly policy: Policy
  /** Of a limiter in the shadow the one that decides and says no. */
  readonly [WITHIN]?: EdgeLimiter
  /** The policy in force for a key, where keys may have one of their own. */
  policyOf?(key: Key): Policy
  take(key: Key, cost?: number): Awaitable<Decision>
  /** What a take would answer. Of several limits those are asked that say so at once; one that answers by a promise is not asked again. */
  peek(key: Key, cost?: number): Awaitable<Decision>
  refund(key: Key, tokens: number): Awaitable<Decision>
}
