import { PolicyError } from '../errors.js'
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

/** What a store takes of which the keys have names in a server. */
export interface StoreOptions {
  /**
   * Begins all keys in the store.
   *
   * @defaultValue `'sluicegate'`
   * @example redis(client, { prefix: 'eu' })
   */
  readonly prefix?: string
}

export function isStore(value: unknown): value is Store {
  return typeof (value as Partial<Store> | null | undefined)?.[LIMITER] === 'function'
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkStore(option: string, value: unknown): asserts value is Store {
  if (isStore(value)) return
  const isPromise = typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function'
  const mend = isPromise ? 'must not be a promise: await it' : 'must be a store, such as redis(client), postgres(pool) or casStore(mine)'
  throw new PolicyError('OPTION_INVALID', option, value, mend)
}
