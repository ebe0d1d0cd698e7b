import type { Policy } from '../policy/policy.js'

// By `Symbol.for`, so that both forms of the package in one process know each other's stores.

/** Creates a limiter over a store. */
export const LIMITER: unique symbol = Symbol.for('sluicegate.limiter')
/** Opens a store for one limiter. */
export const OPEN: unique symbol = Symbol.for('sluicegate.open')

/**
 * Where several processes keep the budgets that they share: what `redis()`, `postgres()`, `casStore()`, `primary()`, `durableObjects()` and
 * `region()` return, for the option `store` of {@link createLimiter}. One may serve any number of limiters.
 */
export interface Store {
  /** What it is, for messages. */
  readonly name: string
  /** For the library. */
  readonly [LIMITER]: (policy: Policy, options: object) => unknown
  /** For the library. */
  readonly [OPEN]: unknown
}
