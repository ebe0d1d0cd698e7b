import { checkedTop } from '../../arguments.js'
import { type Awaitable, ignore, type When } from '../../awaitable.js'
import type { Decision } from '../../decision/decision.js'
import type { HotKeys } from '../../decision/hot-keys.js'
import { type Reservation, TAKE, WAIT } from '../../decision/reservation.js'
import type { Hold, OpenOptions } from '../../holds/hold.js'
import { FollowingWaits } from '../../layers/following-waits.js'
import { Layer, settling } from '../../layers/layer.js'
import { type Override, OverrideTiers } from '../../layers/override-map.js'
import { checkTier, checkTieredKey, contentOf, hotKeysOfAll, TierTable } from '../../layers/tier-table.js'
import type { BoundKey, Key, ReserveOptions, WaitOptions } from '../../limiter.js'
import { checkChange } from '../../policy/checked-policy.js'
import type { Policy } from '../../policy/policy.js'
import { closeQueueOf } from '../../queue/create-queue.js'
import { sumOfStats } from '../../sum-of-stats.js'
import type { Clock } from '../../time/clock.js'
import type { Duration } from '../../time/duration.js'
import { mergedLoads, type ShardLoads } from '../calls/shard-load.js'
import { sumOfRegions } from '../region-stats.js'
import type { SharedLimiter, SharedStats } from '../shared-limiter.js'
import type { OverrideCache } from './override-cache.js'

/** What a {@link TieredSharedLimiter} is made of. */
export interface TieredSharedParts<Answer extends Decision> {
  /** Applies the own policy. */
  readonly own: SharedLimiter<Answer>
  readonly ownAs: Policy
  readonly policyFor: ((key: string) => Policy | undefined) | undefined
  /** All policies that `policyFor` may return, if the option names them. */
  readonly policies: readonly Policy[] | undefined
  /** @param override of keys whose policy it is. */
  readonly make: (policy: Policy, override?: Override) => SharedLimiter<Answer>
  /** Whether another process says what a policy of a name is: then all that `policyFor` returns under that name are this one. */
  readonly isKnownByName?: boolean
  readonly overrides: OverrideCache | undefined
  readonly clock: Clock
}

/** `TieredLimiter` for shared limiters: several policies, each with its own limiter; a call goes to that of the key's policy. */
export class TieredSharedLimiter<Answer extends Decision> extends Layer<Answer> implements SharedLimiter<Answer> {
  declare protected readonly inner: SharedLimiter<Answer> & Layer<Answer>['inner']
  private readonly parts: TieredSharedParts<Answer>
  private readonly table: TierTable<SharedLimiter<Answer>>
  private readonly overridden: OverrideTiers<SharedLimiter<Answer>>
  /** Where overrides, or another answer of `policyFor`, give a key another limiter. */
  private readonly waits: FollowingWaits<SharedLimiter<Answer>>
  private isClosed = false
  private readonly isMade: boolean = false

  constructor(parts: TieredSharedParts<Answer>) {
    super(parts.own)
    this.parts = parts
    const { overrides } = parts
    this.table = new TierTable({
      option: 'policyFor',
      make: (policy) => this.made(policy),
      known: (policy) => this.known(policy),
    })
    this.table.name(parts.ownAs, parts.own)
    this.overridden = new OverrideTiers({
      make: (override) => this.madeOverride(override),
      close: (limiter) => limiter.close(),
      isUsed: (content) => overrides?.isUsed(content) ?? false,
    })
    const waits = new FollowingWaits<SharedLimiter<Answer>>((key) => this.limiterOf(key), parts.clock, parts.policyFor !== undefined)
    if (overrides !== undefined) overrides.onChange = () => waits.changed()
    this.waits = waits
    try {
      for (const policy of parts.policies ?? []) this.table.of(policy, false)
      this.isMade = true
    } catch (error) {
      // The limiters already created have no owner that could close them.
      this.close()
      throw error
    }
  }

  override policyOf(key: Key): Policy {
    return this.limiterOf(key).policy
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
    await this.fresh(key)
    return this.waits.wait(key, options, (each, own) => each.wait(key, own))
  }

  /** What is settled returns to the limiter that charged, whatever the key's policy is by then. */
  [TAKE](key: Key, cost?: number): Awaitable<Reservation<When, Answer>> {
    const refreshed = this.refreshed()
    const taken = (): Awaitable<Reservation<When, Answer>> => settling(this.limiterOf(key))[TAKE](key, cost)
    return refreshed === undefined ? taken() : refreshed.then(taken)
  }

  async [WAIT](key: Key, options?: WaitOptions): Promise<Reservation<When, Answer>> {
    await this.fresh(key)
    return this.waits.wait(key, options, (each, own) => settling(each)[WAIT](key, own))
  }

  async reserve(key: Key, cost: number, options?: ReserveOptions): Promise<Reservation<'later'>> {
    return (await this.fresh(key)).reserve(key, cost, options)
  }

  /** A hold stays with the account that it was opened in, whatever the key's policy is by then. */
  override async open(key: Key, options?: OpenOptions): Promise<Hold<Awaitable<boolean>, 'later'>> {
    return (await this.fresh(key)).open(key, options)
  }

  async refund(key: Key, tokens: number): Promise<Decision> {
    return (await this.fresh(key)).refund(key, tokens)
  }

  async penalize(key: Key, tokens: number): Promise<Decision> {
    return (await this.fresh(key)).penalize(key, tokens)
  }

  async block(key: Key, duration: Duration): Promise<Decision> {
    return (await this.fresh(key)).block(key, duration)
  }

  async reset(key: Key): Promise<Decision> {
    return (await this.fresh(key)).reset(key)
  }

  /** The key's policy is determined at each call, not only here. */
  key(key: Key): BoundKey<Answer, 'later'> {
    this.limiterOf(key)
    return this.bound({ key, take: (cost) => this.take(key, cost), peek: (cost) => this.peek(key, cost) })
  }

  override stats(): SharedStats {
    const { nodes, localShare, region } = this.inner.stats()
    const sum = { ...sumOfStats(this.limiters()), nodes, localShare }
    return region === undefined ? sum : { ...sum, region: sumOfRegions(region, this.limiters()) }
  }

  override hotKeys(n?: number): HotKeys {
    return hotKeysOfAll(this.limiters(), n)
  }

  shards(n = 10): ShardLoads {
    const most = checkedTop(n)
    return mergedLoads(
      this.limiters().map((limiter) => limiter.shards(Number.MAX_SAFE_INTEGER)),
      most,
    )
  }

  override close(): void {
    closeQueueOf(this)
    this.isClosed = true
    for (const limiter of this.limiters()) limiter.close()
  }

  private limiters(): readonly SharedLimiter<Answer>[] {
    return [this.inner, ...this.table.tiers.map(({ counted }) => counted), ...this.overridden.all]
  }

  private refreshed(): Promise<void> | undefined {
    return this.isClosed ? undefined : this.parts.overrides?.refreshed()
  }

  private async fresh(key: Key): Promise<SharedLimiter<Answer>> {
    await this.refreshed()
    return this.limiterOf(key)
  }

  private limiterOf(key: Key): SharedLimiter<Answer> {
    checkTieredKey(key)
    const { overrides, policyFor, policies } = this.parts
    const override = overrides?.of(key)
    if (override !== undefined) return this.overridden.of(override)
    const policy = policyFor?.(key)
    if (policy === undefined) return this.inner
    ignore(policy)
    return this.table.of(policy, policies !== undefined)
  }

  /** @throws {PolicyError} `ALGORITHM_CHANGE` */
  private known(policy: Policy): SharedLimiter<Answer> | undefined {
    if (this.parts.isKnownByName !== true) return contentOf(policy) === contentOf(this.policy) ? this.inner : undefined
    // Two of one name among those that were named beforehand are a mistake, which making them tells.
    if (!this.isMade) return undefined
    const known = [this.inner, ...this.table.tiers.map(({ counted }) => counted)].find((each) => each.policy.name === policy.name)
    if (known !== undefined) checkChange(known.policy, policy)
    return known
  }

  private made(policy: Policy): SharedLimiter<Answer> {
    checkTier(policy, this.policy, 'policyFor') // throws when closed
    return this.parts.make(policy)
  }

  private madeOverride(override: Override): SharedLimiter<Answer> {
    checkTier(override.policy, this.policy, 'overrides') // throws when closed
    return this.parts.make(override.policy, override)
  }
}
