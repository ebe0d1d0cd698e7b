import type { Awaitable, When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import type { HotKeys } from '../decision/hot-keys.js'
import { type Reservation, TAKE, WAIT } from '../decision/reservation.js'
import { PolicyError } from '../errors.js'
import type { Hold, OpenOptions } from '../holds/hold.js'
import type { BoundKey, Key, Limiter, LimiterHandle, LimiterStats, ReserveOptions, WaitOptions } from '../limiter.js'
import { carryKey, holdsKey } from '../memory/carried-key.js'
import { following } from '../memory/memory-holds.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { closeQueueOf } from '../queue/create-queue.js'
import { shownAs } from '../shown.js'
import { sumOfStats } from '../sum-of-stats.js'
import type { Clock } from '../time/clock.js'
import type { Duration } from '../time/duration.js'
import { FollowingWaits } from './following-waits.js'
import { Layer, settling } from './layer.js'
import { type OverrideMap, OverrideTiers } from './override-map.js'
import { checkTier, checkTieredKey, contentOf, hotKeysOfAll, type Tier, TierTable } from './tier-table.js'
import { tieredSnapshot } from './tiered-snapshot.js'

/** What the handle of a {@link TieredLimiter} carries beside that of the limiter for its own policy. */
export interface TieredHandle<Answer extends Decision = Decision> extends LimiterHandle<Answer> {
  readonly tiers?: readonly Tier<LimiterHandle>[]
  /** Policies that stand for the own policy in `policyFor`. */
  readonly ownAs?: readonly Policy[]
}

/** What a {@link TieredLimiter} is made of. */
export interface TieredLimiterParts<Answer extends Decision> {
  /** Applies the own policy. */
  readonly own: Limiter<Answer>
  readonly ownAs: readonly Policy[]
  readonly tiers: readonly Tier<Limiter<Answer>>[]
  readonly policyFor: ((key: string) => Policy | undefined) | undefined
  readonly clock: Clock
  /** Makes the limiter of a policy that is not yet among the tiers; without it there are no others. */
  readonly make?: ((policy: Policy) => Limiter<Answer>) | undefined
  /** Policies of single keys, which come first, and what makes their limiters. */
  readonly overridden?: OverriddenParts<Answer> | undefined
}

interface OverriddenParts<Answer extends Decision> {
  readonly map: OverrideMap
  readonly make: (policy: Policy) => Limiter<Answer>
  /** Limiters of policies that keys had before a restart. */
  readonly restored: readonly Tier<Limiter<Answer>>[]
}

/** Whether a handle may say this of its tiers; their own handles are looked at where they are attached. */
export function areTiers(tiers: unknown, ownAs: unknown): boolean {
  // Spread, because `every` passes over holes.
  return Array.isArray(tiers) && [...tiers].every((tier) => isPolicy(tier?.policy)) && Array.isArray(ownAs) && [...ownAs].every(isPolicy)
}

/**
 * Several policies, each with its own limiter: a call goes to the limiter of the key's policy. A key that is not in that limiter's table may be
 * in another's, since it had another policy before: then it takes along what it has spent. So a key is in one table at most.
 */
export class TieredLimiter<Answer extends Decision> extends Layer<Answer> implements Limiter<Answer> {
  declare protected readonly inner: Limiter<Answer> & Layer<Answer>['inner']
  private readonly parts: TieredLimiterParts<Answer>
  private readonly table: TierTable<Limiter<Answer>>
  private readonly overridden: OverrideTiers<Limiter<Answer>> | undefined
  /** Where overrides, or another answer of `policyFor`, give a key another limiter. */
  private readonly waits: FollowingWaits<Limiter<Answer>>

  constructor(parts: TieredLimiterParts<Answer>) {
    super(parts.own)
    this.parts = parts
    this.table = new TierTable({
      option: 'policyFor',
      make: (policy) => this.made(policy),
      known: (policy) => (contentOf(policy) === contentOf(this.policy) ? this.inner : undefined),
    })
    for (const policy of parts.ownAs) this.table.name(policy, parts.own)
    for (const tier of parts.tiers) this.table.add(tier)
    const { overridden, clock, policyFor } = parts
    this.waits = new FollowingWaits((key) => this.tierOf(key), clock, policyFor !== undefined)
    if (overridden === undefined) return
    this.overridden = new OverrideTiers({
      make: ({ policy }) => {
        checkTier(policy, this.policy, 'overrides') // throws when closed
        return overridden.make(policy)
      },
      close: (limiter) => limiter.close(),
      isUsed: (content) => overridden.map.isUsed(content),
      known: overridden.restored.map(({ policy, counted }) => [contentOf(policy), counted]),
    })
    overridden.map.onChange = () => this.waits.changed()
  }

  override policyOf(key: Key): Policy {
    return this.tierOf(key).policy
  }

  take(key: Key, cost?: number): Answer {
    return this.limiterOf(key).take(key, cost)
  }

  peek(key: Key, cost?: number): Decision {
    return this.limiterOf(key).peek(key, cost)
  }

  async wait(key: Key, options?: WaitOptions): Promise<Answer> {
    return this.waits.wait(key, options, (limiter, own) => this.holding(limiter, key).wait(key, own))
  }

  /** What is settled returns to the limiter that charged, whatever the key's policy is by then. */
  [TAKE](key: Key, cost?: number): Awaitable<Reservation<When, Answer>> {
    return settling(this.limiterOf(key))[TAKE](key, cost)
  }

  async [WAIT](key: Key, options?: WaitOptions): Promise<Reservation<When, Answer>> {
    return this.waits.wait(key, options, (limiter, own) => settling(this.holding(limiter, key))[WAIT](key, own))
  }

  reserve(key: Key, cost: number, options?: ReserveOptions): Reservation {
    return this.limiterOf(key).reserve(key, cost, options)
  }

  /** Work goes on under the policy that its key has by then, with what it holds. */
  override open(key: Key, options: OpenOptions = {}): Hold {
    return following(this.limiterOf(key).open(key, options) as Hold, () => this.limiterOf(key))
  }

  refund(key: Key, tokens: number): Decision {
    return this.limiterOf(key).refund(key, tokens)
  }

  penalize(key: Key, tokens: number): Decision {
    return this.limiterOf(key).penalize(key, tokens)
  }

  block(key: Key, duration: Duration): Decision {
    return this.limiterOf(key).block(key, duration)
  }

  reset(key: Key): Decision {
    return this.limiterOf(key).reset(key)
  }

  /** `policyFor` is called for the key at each take and peek, not only here. */
  key(key: Key): BoundKey<Answer> {
    let limiter = this.limiterOf(key)
    let bound = limiter.key(key)
    const boundNow = (): BoundKey<Answer> => {
      const now = this.limiterOf(key)
      if (now !== limiter) {
        bound = now.key(key)
        limiter = now
      }
      return bound
    }
    const own: BoundKey<Answer> = { key, take: (cost) => boundNow().take(cost), peek: (cost) => boundNow().peek(cost) }
    return shownAs(own, 'BoundKey', this.toJSON())
  }

  /**
   * @throws {PolicyError} `OPTION_INVALID` with overrides, and when tiers are made as they come: those of one thread would be unknown to the
   * others.
   */
  override handle(): LimiterHandle<Answer> {
    const own = this.inner.handle()
    if (this.parts.overridden !== undefined) {
      throw new PolicyError('OPTION_INVALID', 'overrides', true, 'are of one thread: let policyFor ask what all threads share')
    }
    if (this.parts.make !== undefined) {
      const mend = 'must name beforehand what policyFor returns, or other threads would count apart'
      throw new PolicyError('OPTION_INVALID', 'policies', undefined, mend)
    }
    const tiers = this.table.tiers.map(({ policy, counted }) => ({ policy, counted: counted.handle() }))
    const handle: TieredHandle<Answer> = { ...own, ownAs: this.parts.ownAs, tiers }
    return shownAs(handle, 'LimiterHandle', {})
  }

  override stats(): LimiterStats {
    return sumOfStats(this.limiters())
  }

  override hotKeys(n?: number): HotKeys {
    return hotKeysOfAll(this.limiters(), n)
  }

  override snapshot(): Uint8Array {
    const snapshotOf = ({ policy, counted }: Tier<Limiter<Answer>>): Tier<Uint8Array> => ({ policy, counted: counted.snapshot() })
    const overridden = [...(this.overridden?.all ?? [])].map((counted) => snapshotOf({ policy: counted.policy, counted }))
    return tieredSnapshot({ own: this.inner.snapshot(), ownAs: this.parts.ownAs, tiers: this.table.tiers.map(snapshotOf), overridden })
  }

  override close(): void {
    closeQueueOf(this)
    for (const limiter of this.limiters()) limiter.close()
  }

  private limiters(): readonly Limiter<Answer>[] {
    return [this.inner, ...this.table.tiers.map(({ counted }) => counted), ...(this.overridden?.all ?? [])]
  }

  /** The limiter of the key's policy, with what the key has spent under another one. An override has its own account. */
  private limiterOf(key: Key): Limiter<Answer> {
    return this.holding(this.tierOf(key), key)
  }

  private holding(limiter: Limiter<Answer>, key: Key): Limiter<Answer> {
    if (!holdsKey(limiter, key) && !this.isOverride(limiter)) {
      const tiers = [this.inner, ...this.table.tiers.map(({ counted }) => counted)]
      // What waits there has booked goes back first.
      this.waits.keyChanged(key)
      carryKey(tiers, limiter, key)
    }
    return limiter
  }

  private isOverride(limiter: Limiter<Answer>): boolean {
    return [...(this.overridden?.all ?? [])].includes(limiter)
  }

  private tierOf(key: Key): Limiter<Answer> {
    checkTieredKey(key)
    const { policyFor, make, overridden } = this.parts
    const override = overridden?.map.of(key)
    if (override !== undefined) return (this.overridden as OverrideTiers<Limiter<Answer>>).of(override)
    const policy = policyFor?.(key)
    return policy === undefined ? this.inner : this.table.of(policy, make === undefined)
  }

  private made(policy: Policy): Limiter<Answer> {
    const own = this.policy // throws when closed
    checkTier(policy, own, 'policyFor')
    return (this.parts.make as (policy: Policy) => Limiter<Answer>)(policy)
  }
}

function isPolicy(policy: unknown): boolean {
  try {
    checkedPolicy(policy)
    return true
  } catch {
    return false
  }
}
