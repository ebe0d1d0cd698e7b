import type { Decision } from '../decision.js'
import type { Duration } from '../duration.js'
import type { HotKeys } from '../hot-keys.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { Policy } from '../policy.js'
import type { ShardLoads } from './shard-load.js'

/** At once where that is possible, else a promise. */
export type Awaitable<Value> = Value | Promise<Value>

/** A permit whose place is kept in a store: {@link Permit}, with answers that come from there. */
export interface FleetPermit extends Decision {
  /** Gives back what the permit holds. False when it held nothing any more. */
  release(): Promise<boolean>
  /** Renews the permit for another `ttl` from now. False when it had expired or was released. */
  heartbeat(): Promise<boolean>
  /** {@link FleetPermit.release} for `using`, without waiting for it. Should the store not be reached, the place comes back after `ttl`. */
  [Symbol.dispose](): void
  /** {@link FleetPermit.release} for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** Tokens booked ahead in a store: {@link Reservation}, with answers that come from there. */
export interface FleetReservation {
  readonly allowed: boolean
  readonly waitMs: number
  readonly decision: Decision
  settle(actualCost: number): Promise<Decision>
  cancel(): Promise<Decision>
}

/** A key whose names were made once. */
export interface FleetBoundKey<Answer extends Decision = Decision> {
  readonly key: Key
  take(cost?: number): Awaitable<Answer>
  peek(cost?: number): Awaitable<Decision>
}

/** Counters since the limiter was made, of this process alone. */
export interface FleetStats {
  /** Calls that were answered by the store. */
  readonly storeCalls: number
  /** Calls that the store did not answer in time, or not at all. */
  readonly storeFailures: number
  /** Decisions made here, of a lease or of a denial that was still known. */
  readonly localDecisions: number
  /** Decisions made without the store, because it could not be reached. */
  readonly outageDecisions: number
  /** Keys of which something is known here. */
  readonly leases: number
}

/**
 * A policy that a whole fleet shares: every verb of {@link Limiter}, each answering with its value or with a promise of it.
 *
 * Methods throw, or reject with, `PolicyError` on misuse, `CROSS_SLOT` among it, and `StoreError` `CLOSED` after `close()`. An outage
 * is no error of `take`, `peek`, `wait` and `reserve`, which then decide as the option `outage` says; the other verbs reject with
 * `StoreError` `OUTAGE`.
 */
export interface FleetLimiter<Answer extends Decision = Decision> {
  readonly policy: Policy
  take(key: Key, cost?: number): Awaitable<Answer>
  peek(key: Key, cost?: number): Awaitable<Decision>
  wait(key: Key, options?: WaitOptions): Promise<Answer>
  reserve(key: Key, cost: number): Promise<FleetReservation>
  refund(key: Key, tokens: number): Promise<Decision>
  penalize(key: Key, tokens: number): Promise<Decision>
  block(key: Key, duration: Duration): Promise<Decision>
  reset(key: Key): Promise<Decision>
  key(key: Key): FleetBoundKey<Answer>
  /**
   * Changes the policy of this process: tell each of the fleet. What a key has spent under the old numbers counts under the new ones, at
   * most the new burst. It keeps its name, by which it is known in the store.
   */
  update(policy: Policy): void
  stats(): FleetStats
  hotKeys(n?: number): HotKeys
  /** Which servers and hash slots this process asks most, and the `n` keys each that cause it. Default 10. */
  shards(n?: number): ShardLoads
  close(): void
  [Symbol.dispose](): void
}
