import type { Awaitable } from '../awaitable.js'
import type { Decision } from '../decision.js'
import type { HotKeys } from '../hot-keys.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { Duration } from '../policy/duration.js'
import type { Policy } from '../policy/policy.js'
import type { QueueVerbs } from '../queue/work-queue.js'
import type { ShardLoads } from './shard-load.js'

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
  /** Calls that the store did not answer in time, not at all, or with an error, also one about the key alone. */
  readonly storeFailures: number
  /** Decisions made here, of a lease or of a denial that was still known. */
  readonly localDecisions: number
  /** Decisions made without the store, because it could not be reached. */
  readonly outageDecisions: number
  /** Of the calls that failed those that took too long. */
  readonly timeouts: number
  /** How often a server was given up for a while, after failures in a row. */
  readonly outages: number
  /** Answers, of those that came in time to count, that took longer than a lease: what they gave could not be spent any more. */
  readonly lateAnswers: number
  /** Tokens that callers got, from wherever. */
  readonly admittedTokens: number
  /**
   * Tokens that the store charged for takes, bookings and leases, as far as its answers came in time; those that came back are in it. Of
   * leases of `allOf` it is the average over its policies.
   */
  readonly chargedTokens: number
  /** Tokens that callers got without the store: all that the fleet can be over its policy by, as far as it is this process's doing. */
  readonly outageTokens: number
  /** Of these those that the store has been told of since; others came back by themselves, or are still to be told. */
  readonly accountedTokens: number
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
export interface FleetLimiter<Answer extends Decision = Decision> extends QueueVerbs {
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
   * Changes the policy of this process: tell each of the fleet. It keeps its name, by which it is known in the store. A key is carried over
   * when it is next touched under the new numbers: what it has spent counts, at most the new burst. While processes with the old and with
   * the new policy take turns, as in a deployment, whatever any of them lets pass is charged under both, until the old numbers were not
   * seen for an hour, or as long as what was spent under them counts: so nobody gets a fresh burst by it, and no version lets more pass
   * than if all had been its own. What this process holds of leases goes back, and what was booked comes back as it was booked.
   *
   * @throws {PolicyError} `ALGORITHM_CHANGE`, of `allOf` also of any of its policies.
   */
  update(policy: Policy): void
  stats(): FleetStats
  hotKeys(n?: number): HotKeys
  /** Which servers and hash slots this process asks most, and the `n` keys each that cause it. Default 10. */
  shards(n?: number): ShardLoads
  close(): void
  [Symbol.dispose](): void
}
