import type { Awaitable } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import type { DecisionCounts } from '../decision/decision-counts.js'
import type { Hold, OpenOptions } from '../holds/hold.js'
import type { HoldsById } from '../holds/holds-by-id.js'
import type { Key, KeysByName, LimiterVerbs } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { ShardLoads } from './calls/shard-load.js'
import type { RegionStats } from './region-stats.js'

/** Counters of this process since the limiter was created. */
export interface SharedStats {
  /** What callers of this process were answered, by the name of the policy. */
  readonly decisions: Readonly<Record<string, DecisionCounts>>
  /** Calls that the backend answered. */
  readonly storeCalls: number
  /** Calls that timed out, were lost or failed, including errors about one key alone. */
  readonly storeFailures: number
  /** Decisions made in this process, from a lease or a cached denial. */
  readonly localDecisions: number
  /** Decisions made in this process during an outage. */
  readonly outageDecisions: number
  /** Failed calls that timed out. */
  readonly timeouts: number
  /** How often the circuit of a server opened after consecutive failures. */
  readonly outages: number
  /** Servers whose circuit is open: calls failed in a row, the last of them in the last half minute. */
  readonly openCircuits: number
  /** Answers within the timeout that took longer than a lease, so that their tokens had expired. */
  readonly lateAnswers: number
  /** Tokens that callers got, from any source. */
  readonly admittedTokens: number
  /**
   * Tokens that the backend charged for takes, reservations and leases whose answers came in time. Returned tokens are not subtracted. For
   * leases of `allOf` it is the average over the policies.
   */
  readonly chargedTokens: number
  /** Tokens that callers got during outages: the most by which this process can take the fleet over its policy. */
  readonly outageTokens: number
  /** Those of them that were charged at the backend since. The others came back by themselves or are still to be charged. */
  readonly accountedTokens: number
  /** Keys with a lease or a cached denial in this process. */
  readonly leases: number
  /**
   * Limiters that share the policy, this one included, as the store last counted them; 0 while that is unknown, and where `share` or
   * `outage` says what decides in an outage. Of several policies it is the most, and with tiers that of the limiter's own policy.
   */
  readonly nodes: number
  /** The part of the budget that this process may spend in an outage: 1 with `outage: 'open'`, 0 with `closed`. */
  readonly share: number
  /** Of a limiter whose budget has its home in another region's store. */
  readonly region?: RegionStats
}

/**
 * A limiter whose budget several processes share in a store: every verb of {@link Limiter}, with promises, or decisions at once where tokens
 * are leased.
 *
 * Methods throw, or reject with, `PolicyError` on misuse (including `CROSS_SLOT`), and `StoreError` `CLOSED` after `close()`. In an outage
 * `take`, `peek`, `wait` and `reserve` decide as the option `outage` says; the other verbs reject with `StoreError` `OUTAGE`.
 */
export interface SharedLimiter<Answer extends Decision = Decision> extends LimiterVerbs<Answer, 'later', Key | KeysByName> {
  /**
   * Changes the policy of this process; call it in each process. The policy keeps its name, which is part of its keys.
   *
   * - A key migrates when it is next touched under the new numbers. What it has spent stays spent, up to the new burst.
   * - While processes with the old and the new policy run side by side, as in a deployment, every admitted token is charged under both, until
   *   the old numbers were not seen for an hour or as long as what was spent under them counts. So no key gets a fresh burst, and no version
   *   admits more than if all tokens were its own.
   * - Tokens leased by this process go back. Of what was charged before, nothing is returned any more.
   *
   * @throws {PolicyError} `ALGORITHM_CHANGE`, of `allOf` also of any of its policies.
   */
  update(policy: Policy): void
  /**
   * {@link Limiter.open} over the store: what is held counts for all processes. The store grants tokens of a hold to this process, so `add` answers at once
   * while these last, else with a promise. `close` resolves in an outage, too; a hold of which the store hears nothing ends by itself.
   *
   * @example
   * const work = await limiter.open('ada', { most: 4_096 })
   * if (!work.allowed) return busy(work.retryAfterMs)
   * for await (const piece of answer) if (!(await work.add(piece.tokens))) break
   * await work.close()
   */
  open(key: Key | KeysByName, options?: OpenOptions): Promise<Hold<Awaitable<boolean>, 'later'>>
  /**
   * The same work by ids, for callers that come to any process, such as HTTP requests. Absent with tiers and other layers; a primary and Durable Objects refuse it.
   *
   * @example
   * const id = randomBytes(16).toString('hex')
   * const { isDone } = await limiter.byId.open('ada', id, { expect: 200 })
   * await limiter.byId.add('ada', id, 30, 1) // in any process
   */
  readonly byId?: HoldsById
  stats(): SharedStats
  /** The `n` servers and hash slots that this process calls most, and the `n` keys that cause it for each. Default 10. */
  shards(n?: number): ShardLoads
}
