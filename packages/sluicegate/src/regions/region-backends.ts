import { leaseUsOf, whyNotLeased } from '../lease/leasing.js'
import { type Policy, policiesOf } from '../policy/policy.js'
import { storedNames } from '../policy/stored-name.js'
import type { Backend } from '../shared/backend.js'
import { CallGuard, NO_EVENTS } from '../shared/calls/call-guard.js'
import { GuardedBackend } from '../shared/calls/guarded-backend.js'
import type { PolicyStore, RegionStore } from '../shared/open-store.js'
import { GivenShare, type LocalShare, shareCountedBy } from '../shared/outage/local-share.js'
import { shareOfPolicy } from '../shared/outage/share-of-policy.js'
import type { LeaseLength } from '../shared/policy-in-force.js'
import type { RegionPool } from '../shared/region-pool.js'
import type { RegionStats } from '../shared/region-stats.js'
import type { Clock } from '../time/clock.js'
import { HomeBackend } from './home-backend.js'
import { HomeWatch } from './home-watch.js'
import { PoolBackend } from './pool-backend.js'
import type { RegionSettings } from './region-options.js'
import { RegionCounts, type RegionPart, RegionShare, StoredShare } from './region-share.js'
import { type RegionTerms, regionTermsOf } from './region-terms.js'
import { demandPolicy, RegionRenewals } from './renewals.js'
import { StoredPool } from './stored-pool.js'

/** What {@link RegionBackends} are made of. */
interface RegionBackendsParts {
  /** Where the budgets of all regions are. */
  readonly home: PolicyStore
  /** What the region keeps in its own store. */
  readonly store: RegionStore
  readonly options: Omit<RegionSettings, 'local' | 'home'>
  readonly horizonMs: number
  readonly clock: Clock
}

/** The backends of one limiter in one region, of its policies old and new, and what they did. */
export class RegionBackends {
  /** The part of the budget that the region decides without the home. */
  readonly share: LocalShare
  /** Regions are counted also where the share is declared: their number is shown. */
  private readonly counted: LocalShare
  private readonly parts: RegionBackendsParts
  private readonly guard: CallGuard
  private readonly watch: HomeWatch
  /** Of the policy in force, and of those before it that still have something to do. */
  private backends: PoolBackend[] = []
  private shares: RegionShare[] = []
  private policy: Policy
  private readonly counts = new RegionCounts()

  constructor(parts: RegionBackendsParts, policy: Policy) {
    const { home, options, clock } = parts
    this.parts = parts
    this.policy = policy
    this.counted = this.countedShare()
    this.share = options.share === undefined ? this.counted : new GivenShare(options.share)
    const answered = (): void => {
      this.counted.answered()
      this.watch.answered()
    }
    this.guard = new CallGuard(home.places, clock, options.timeoutMs, { ...NO_EVENTS, answered })
    this.watch = new HomeWatch(this.guard)
  }

  /** The backend of a policy, which is in force from now on: by its mode one that holds tokens, the home, or a share of the policy. */
  connect(policy: Policy): Backend {
    this.policy = policy
    const { guard, share, watch } = this
    const { home: homeStore, store, options, horizonMs, clock } = this.parts
    const terms = this.termsOf(policy)
    const processLeaseUs = leaseUsOf(horizonMs)
    if (terms.mode === 'share') {
      return store.connect(shareOfPolicy(policy, share.inForce), () => (this.isLeased(policy) ? processLeaseUs : 0))
    }
    const names = storedNames(policy)
    const guarded = (each: Policy, length: LeaseLength, own: readonly string[]): Backend =>
      new GuardedBackend(homeStore.connect(each, length, own), guard, each)
    const atHome = (each: Policy, own: readonly string[]): Backend => guarded(each, () => terms.leaseUs, own)
    const inShare = (each: Policy, own: readonly string[]): StoredShare | undefined =>
      options.share === 0 ? undefined : new StoredShare(each, share, (part) => store.connect(part, () => processLeaseUs, own), clock)
    // A store that cannot charge several policies together says so now, not in an outage.
    if (options.share !== 0) store.connect(policy, () => 0)
    const [home, wholeShare] = [atHome(policy, names), inShare(policy, names)]
    const parts = policiesOf(policy).map((part, i): RegionPart => {
      const name = names[i] as string
      return {
        policy: part,
        pool: this.poolOf(part, name),
        home: part === policy ? home : atHome(part, [name]),
        share: part === policy ? wholeShare : inShare(part, [name]),
        demand: guarded(demandPolicy(part), () => 0, [`${name}@demand`]),
      }
    })
    const regionShare = new RegionShare(policy, wholeShare, parts, this.counts)
    this.shares.push(regionShare)
    const homeOrShare = new HomeBackend(home, watch, regionShare)
    if (terms.mode === 'home') return homeOrShare
    const isColdAlone = options.cold === 'share' && regionShare.isOpen
    const renewals = new RegionRenewals(parts, terms, { isEager: isColdAlone, share: regionShare }, clock, this.counts)
    const pools = parts.map(({ pool }) => pool)
    const backend = new PoolBackend({ policy, terms, processLeaseUs, pools, renewals, homeOrShare, isColdAlone })
    this.backends = [...this.backends.filter(({ isIdle }) => !isIdle), backend]
    return backend
  }

  /** Whether a process leases from what the region has. */
  isLeased(policy: Policy): boolean {
    const { mode } = this.termsOf(policy)
    return mode === 'tokens' || (mode === 'share' && isLeasable(shareOfPolicy(policy, this.share.inForce), this.parts.horizonMs))
  }

  close(): void {
    this.watch.close()
    for (const each of [...this.backends, ...this.shares]) each.close()
  }

  stats(): RegionStats {
    const { guard, share, counted, counts } = this
    const { mode, why } = this.termsOf(this.policy)
    return {
      region: this.parts.options.name,
      mode,
      why,
      homeCalls: guard.counts.answered,
      homeFailures: guard.counts.failed,
      isHomeOut: guard.isFailing,
      renewals: counts.renewals,
      renewedTokens: counts.tokens,
      accountedTokens: counts.charged,
      regions: counted.nodes,
      share: share.inForce,
    }
  }

  /** What the region holds of a policy's keys. */
  private poolOf(policy: Policy, name: string): RegionPool {
    const { pools } = this.parts.store
    return typeof pools === 'function' ? pools(policy, name) : new StoredPool(pools.calls, pools.keysOf(policy, name))
  }

  private termsOf(policy: Policy): RegionTerms {
    const { tooSmall, share } = this.parts.options
    return regionTermsOf(policy, tooSmall === 'share' ? share : undefined)
  }

  private countedShare(): LocalShare {
    const { home, clock, options } = this.parts
    const names = storedNames(this.policy).map((name) => `${name}@regions`)
    return shareCountedBy(home.countNodes, names, () => options.name, clock)
  }
}

function isLeasable(policy: Policy, horizonMs: number): boolean {
  return horizonMs > 0 && policiesOf(policy).every((part) => whyNotLeased(part, horizonMs) === undefined)
}
