import type { Awaitable, When } from '../awaitable.js'
import { ignore } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import type { HotKeys } from '../decision/hot-keys.js'
import { type Reservation, TAKE, WAIT } from '../decision/reservation.js'
import { PolicyError } from '../errors.js'
import type { AnyHold, OpenOptions } from '../holds/hold.js'
import { type KeysByName, keyInOrder, ownKey } from '../key.js'
import type { BoundKey, Key, LimiterHandle, ReserveOptions, WaitOptions } from '../limiter.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { closeQueueOf } from '../queue/create-queue.js'
import { shownAs } from '../shown.js'
import type { Clock } from '../time/clock.js'
import type { Duration } from '../time/duration.js'
import { FollowingWaits } from '../waiting/following-waits.js'
import { type InnerLimiter, Layer, settling } from './layer.js'
import { type Override, OverrideTiers } from './override-map.js'
import { checkTier, checkTieredKey, contentOf, hotKeysOfAll, type Tier, TierTable } from './tier-table.js'
import { tieredSnapshot } from './tiered-snapshot.js'

/** What the handle of a {@link TieredLimiter} in memory carries beside that of the limiter for its own policy. */
export interface TieredHandle<Answer extends Decision = Decision> extends LimiterHandle<Answer> {
  readonly tiers?: readonly Tier<LimiterHandle>[]
  /** Policies that stand for the own policy in `policyFor`. */
  readonly ownAs?: readonly Policy[]
}

/** A limiter of one of the policies, in memory or over a store. */
export type TierLimiter<Answer extends Decision> = Layer<Answer>['inner']

/** What a {@link TieredLimiter} is made of. */
export interface TieredLimiterParts<Answer extends Decision> {
  /** Applies the own policy. */
  readonly own: InnerLimiter<Answer>
  readonly ownAs: readonly Policy[]
  readonly tiers: readonly Tier<InnerLimiter<Answer>>[]
  readonly policyFor: ((key: string) => Policy | undefined) | undefined
  /** Over a store, in place of `policyFor`: the policy of all keys of a call. */
  readonly planFor?: ((key: Key | KeysByName) => Policy | undefined) | undefined
  readonly clock: Clock
  /** Makes the limiter of a policy that is not yet among the tiers; without it there are no others. */
  readonly make?: ((policy: Policy) => InnerLimiter<Answer>) | undefined
  /** The limiter of a policy that is not among the tiers, beside the own one, from the limiters that there are. */
  readonly known?: ((policy: Policy, limiters: readonly TierLimiter<Answer>[]) => TierLimiter<Answer> | undefined) | undefined
  /** Policies of single keys, which come first, and what makes their limiters. */
  readonly overridden?: OverriddenParts<Answer> | undefined
  /** The counters of all limiters, that of the own policy first. */
  readonly sum: (limiters: readonly TierLimiter<Answer>[]) => object
  /** The servers of all limiters; absent in memory. */
  readonly shards?: (limiters: readonly TierLimiter<Answer>[], n: number | undefined) => unknown
  /** In memory: whether a limiter has the key, and what brings it what the key has spent in one of the others. */
  readonly carry?: Carrying<Answer>
}

interface Carrying<Answer extends Decision> {
  holds(limiter: TierLimiter<Answer>, key: Key): boolean
  bring(from: readonly TierLimiter<Answer>[], to: TierLimiter<Answer>, key: Key): void
  /** A hold that follows its key. */
  follow(hold: AnyHold, limiterOf: () => TierLimiter<Answer>): AnyHold
}

interface OverriddenParts<Answer extends Decision> {
  readonly map: {
    onChange: () => void
    of(key: string): Override | undefined
    isUsed(content: string): boolean
    /** Over a store a promise while they are not current. */
    refreshed?(): Promise<void> | undefined
  }
  readonly make: (override: Override) => InnerLimiter<Answer>
  /** Limiters of policies that keys had before a restart. */
  readonly restored: readonly Tier<InnerLimiter<Answer>>[]
}

/** Whether a handle may say this of its tiers; their own handles are looked at where they are attached. */
export function areTiers(tiers: unknown, ownAs: unknown): boolean {
  // Spread, because `every` passes over holes.
  return Array.isArray(tiers) && [...tiers].every((tier) => isPolicy(tier?.policy)) && Array.isArray(ownAs) && [...ownAs].every(isPolicy)
}

/**
 * Several policies, each with its own limiter, in memory or over a store: a call goes to the limiter of the key's policy. In memory a key that
 * is not in that limiter's table may be in another's, since it had another policy before: then it takes along what it has spent. So a key is in
 * one table at most. Over a store all policies have the same keys.
 */
export class TieredLimiter<Answer extends Decision> extends Layer<Answer> {
  private readonly parts: TieredLimiterParts<Answer>
  private readonly table: TierTable<TierLimiter<Answer>>
  private readonly overridden: OverrideTiers<TierLimiter<Answer>> | undefined
  /** Where overrides, or another answer of `policyFor`, give a key another limiter. */
  private readonly waits: FollowingWaits<TierLimiter<Answer>>
  private isClosed = false

  constructor(parts: TieredLimiterParts<Answer>) {
    super(parts.own)
    this.parts = parts
    const { overridden, clock, policyFor, planFor, own, ownAs, tiers } = parts
    const option = 'policyFor'
    this.table = new TierTable({
      option,
      make: (policy) => this.made(policy, option, () => (parts.make as (policy: Policy) => InnerLimiter<Answer>)(policy)),
      known: (policy) => (contentOf(policy) === contentOf(this.policy) ? this.inner : parts.known?.(policy, this.tiers())),
    })
    for (const policy of ownAs) this.table.name(policy, own as TierLimiter<Answer>)
    for (const tier of tiers) this.table.add(tier as Tier<TierLimiter<Answer>>)
    this.waits = new FollowingWaits((key) => this.tierOf(key), clock, policyFor !== undefined || planFor !== undefined)
    if (overridden === undefined) return
    this.overridden = new OverrideTiers({
      make: (override) => this.made(override.policy, 'overrides', () => overridden.make(override)),
      close: (limiter) => limiter.close(),
      isUsed: (content) => overridden.map.isUsed(content),
      known: overridden.restored.map(({ policy, counted }) => [contentOf(policy), counted as TierLimiter<Answer>]),
    })
    overridden.map.onChange = () => this.waits.changed()
  }

  override policyOf(key: Key): Policy {
    return this.tierOf(key).policy
  }

  take(key: Key, cost?: number): Awaitable<Answer> {
    const refreshed = this.refreshed()
    return refreshed === undefined ? this.limiterOf(key).take(key, cost) : refreshed.then(() => this.limiterOf(key).take(key, cost))
  }

  peek(key: Key, cost?: number): Awaitable<Decision> {
    const refreshed = this.refreshed()
    return refreshed === undefined ? this.limiterOf(key).peek(key, cost) : refreshed.then(() => this.limiterOf(key).peek(key, cost))
  }

  async wait(key: Key, options?: WaitOptions): Promise<Answer> {
    const own = this.inOrder(key)
    return this.afterLook(() => this.waits.wait(own, options, (limiter, given) => this.holding(limiter, own).wait(own, given)))
  }

  /** What is settled returns to the limiter that charged, whatever the key's policy is by then. */
  [TAKE](key: Key, cost?: number): Awaitable<Reservation<When, Answer>> {
    return this.at(key, (limiter) => settling(limiter)[TAKE](key, cost))
  }

  async [WAIT](key: Key, options?: WaitOptions): Promise<Reservation<When, Answer>> {
    const own = this.inOrder(key)
    return this.afterLook(() => this.waits.wait(own, options, (limiter, given) => settling(this.holding(limiter, own))[WAIT](own, given)))
  }

  reserve(key: Key, cost: number, options?: ReserveOptions): Awaitable<Reservation<When>> {
    return this.at(key, (limiter) => limiter.reserve(key, cost, options))
  }

  /** In memory work goes on under the policy that its key has by then, with what it holds; over a store in the account that it was opened in. */
  override open(key: Key, options?: OpenOptions): Awaitable<AnyHold> {
    const { carry } = this.parts
    return this.at(key, (limiter) => {
      const hold = limiter.open(key, options)
      return carry === undefined ? hold : carry.follow(hold as AnyHold, () => this.limiterStill(key, limiter))
    })
  }

  refund(key: Key, tokens: number): Awaitable<Decision> {
    return this.at(key, (limiter) => limiter.refund(key, tokens))
  }

  penalize(key: Key, tokens: number): Awaitable<Decision> {
    return this.at(key, (limiter) => limiter.penalize(key, tokens))
  }

  block(key: Key, duration: Duration): Awaitable<Decision> {
    return this.at(key, (limiter) => limiter.block(key, duration))
  }

  reset(key: Key): Awaitable<Decision> {
    return this.at(key, (limiter) => limiter.reset(key))
  }

  /** The key's policy is determined at each take and peek, not only here. */
  key(key: Key): BoundKey<Answer, When> {
    let limiter = this.limiterOf(key)
    let bound = limiter.key(key)
    const boundNow = (): BoundKey<Answer, When> => {
      const now = this.limiterOf(key)
      if (now !== limiter) {
        bound = now.key(key)
        limiter = now
      }
      return bound
    }
    return this.bound({
      key,
      take: (cost) => this.afterLook(() => boundNow().take(cost)),
      peek: (cost) => this.afterLook(() => boundNow().peek(cost)),
    })
  }

  /**
   * @throws {PolicyError} `OPTION_INVALID` with overrides, and when tiers are made as they come: those of one thread would be unknown to the
   * others.
   */
  override handle(): LimiterHandle<Answer> {
    const own = this.inner.handle() as LimiterHandle<Answer>
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

  override stats(): object {
    return this.parts.sum(this.limiters())
  }

  protected override shardsOf(n: number | undefined): unknown {
    return this.parts.shards?.(this.limiters(), n)
  }

  override hotKeys(n?: number): HotKeys {
    return hotKeysOfAll(this.limiters(), n)
  }

  override snapshot(): Uint8Array {
    const snapshotOf = ({ policy, counted }: Tier<TierLimiter<Answer>>): Tier<Uint8Array> => ({ policy, counted: counted.snapshot() })
    const overridden = [...(this.overridden?.all ?? [])].map((counted) => snapshotOf({ policy: counted.policy, counted }))
    return tieredSnapshot({ own: this.inner.snapshot(), ownAs: this.parts.ownAs, tiers: this.table.tiers.map(snapshotOf), overridden })
  }

  override close(): void {
    closeQueueOf(this)
    this.isClosed = true
    for (const limiter of this.limiters()) limiter.close()
  }

  private limiters(): readonly TierLimiter<Answer>[] {
    return [...this.tiers(), ...(this.overridden?.all ?? [])]
  }

  /** Those that have no override's account. */
  private tiers(): readonly TierLimiter<Answer>[] {
    return [this.inner, ...this.table.tiers.map(({ counted }) => counted)]
  }

  private at<Value>(key: Key, call: (limiter: TierLimiter<Answer>) => Awaitable<Value>): Awaitable<Value> {
    return this.afterLook(() => call(this.limiterOf(key)))
  }

  /** Over a store, where the policy of a key may be out of date, after a look. In memory at once: nobody who comes later may overtake. */
  private afterLook<Value>(call: () => Awaitable<Value>): Awaitable<Value> {
    const refreshed = this.refreshed()
    return refreshed === undefined ? call() : refreshed.then(call)
  }

  private refreshed(): Promise<void> | undefined {
    return this.isClosed ? undefined : this.parts.overridden?.map.refreshed?.()
  }

  /** The limiter of the key's policy, with what the key has spent under another one. An override has its own account. */
  private limiterOf(key: Key): TierLimiter<Answer> {
    return this.holding(this.tierOf(key), key)
  }

  /** The same for what began earlier: where `policyFor` fails, the key stays where it is. */
  private limiterStill(key: Key, before: TierLimiter<Answer>): TierLimiter<Answer> {
    try {
      return this.limiterOf(key)
    } catch {
      return this.limiters().find((limiter) => this.parts.carry?.holds(limiter, key)) ?? before
    }
  }

  private holding(limiter: TierLimiter<Answer>, key: Key): TierLimiter<Answer> {
    const { carry } = this.parts
    if (carry === undefined || carry.holds(limiter, key) || this.isOverride(limiter)) return limiter
    // What waits there has booked goes back first.
    this.waits.keyChanged(key)
    carry.bring(this.tiers(), limiter, key)
    return limiter
  }

  private isOverride(limiter: TierLimiter<Answer>): boolean {
    return [...(this.overridden?.all ?? [])].includes(limiter)
  }

  private tierOf(key: Key): TierLimiter<Answer> {
    const { policyFor, planFor, make, overridden } = this.parts
    let policy: Policy | undefined
    if (planFor !== undefined) policy = planFor(key)
    else {
      checkTieredKey(key)
      const override = overridden?.map.of(key)
      if (override !== undefined) return (this.overridden as OverrideTiers<TierLimiter<Answer>>).of(override)
      policy = policyFor?.(key)
    }
    if (policy === undefined) return this.inner
    ignore(policy)
    return this.table.of(policy, make === undefined)
  }

  /** Of several keys the array that they will have been: the caller may change its own. */
  private inOrder(key: Key | KeysByName): Key {
    const names = this.parts.planFor === undefined ? [] : (this.policy.policies ?? []).map(({ name }) => name)
    return ownKey(keyInOrder(names, key))
  }

  private made(policy: Policy, option: string, make: () => InnerLimiter<Answer>): TierLimiter<Answer> {
    checkTier(policy, this.policy, option) // throws when closed
    return make() as TierLimiter<Answer>
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
