import { leaseUsOf, whyNotLeased } from '../lease/leasing.js'
import type { Policy } from '../policy/policy.js'
import type { Backend } from '../shared/backend.js'
import { CallGuard, NO_EVENTS } from '../shared/calls/call-guard.js'
import { GuardedBackend } from '../shared/calls/guarded-backend.js'
import type { PolicyStore, RegionStore } from '../shared/open-store.js'
import { GivenShare, type LocalShare, shareCountedBy } from '../shared/outage/local-share.js'
import { shareOfPolicy } from '../shared/outage/share-of-policy.js'
import type { RegionStats } from '../shared/region-stats.js'
import type { Clock } from '../time/clock.js'
import { HomeLink } from './home-link.js'
import { RegionBackend } from './region-backend.js'
import type { RegionSettings } from './region-options.js'
import { ShareBackend } from './region-share.js'
import { type RegionTerms, regionTermsOf } from './region-terms.js'
import { demandPolicy, noRenewals, RegionRenewals } from './renewals.js'

interface RegionParts {
  /** Where the budgets of all regions are. */
  readonly home: PolicyStore
  readonly store: RegionStore
  readonly options: Omit<RegionSettings, 'local' | 'home'>
  readonly horizonMs: number
  readonly clock: Clock
}

/** One region of a limiter: the backends of its policies, old and new, and what they did. */
export class Region {
  readonly share: LocalShare
  /** Regions are counted also where the share is declared: their number is shown. */
  private readonly counted: LocalShare
  private readonly parts: RegionParts
  private readonly guard: CallGuard
  private readonly link: HomeLink
  /** Of the policy in force, and of those before it that still have something to do. */
  private backends: RegionBackend[] = []
  private policy: Policy
  private readonly counts = noRenewals()

  constructor(parts: RegionParts, policy: Policy) {
    const { home, options, clock } = parts
    this.parts = parts
    this.policy = policy
    this.counted = this.countedShare()
    this.share = options.share === undefined ? this.counted : new GivenShare(options.share)
    const answered = (): void => {
      this.counted.answered()
      this.link.answered()
    }
    this.guard = new CallGuard(home.places, clock, options.timeoutMs, { ...NO_EVENTS, answered })
    this.link = new HomeLink(this.guard)
  }

  /** The backend of a policy, which is in force from now on. */
  connect(policy: Policy): Backend {
    this.policy = policy
    const { guard, share } = this
    const { home, store, options, horizonMs, clock } = this.parts
    const terms = this.termsOf(policy)
    const ownLeaseUs = leaseUsOf(horizonMs)
    if (terms.mode === 'share') {
      return store.connect(shareOfPolicy(policy, share.inForce), () => (this.isLeased(policy) ? ownLeaseUs : 0))
    }
    const lengthOf = (): number => terms.leaseUs
    const guardedOf = (each: Policy): Backend => new GuardedBackend(home.connect(each, lengthOf), guard, each)
    const whole = guardedOf(policy)
    const policies = policy.policies ?? [policy]
    const isOpen = options.share !== 0
    const aloneOf = (each: Policy): ShareBackend => new ShareBackend(each, share, (part) => store.connect(part, () => ownLeaseUs), clock)
    const alone = isOpen ? aloneOf(policy) : undefined
    const parts = policies.map((part) => {
      const counted = demandPolicy(part)
      const unleased = home.connect(counted, () => 0)
      return {
        policy: part,
        pool: store.poolOf(part),
        home: policy.policies === undefined ? whole : guardedOf(part),
        demand: new GuardedBackend(unleased, guard, counted),
        alone: policy.policies === undefined || !isOpen ? alone : aloneOf(part),
      }
    })
    const pools = parts.map(({ pool }) => pool)
    const isColdAlone = options.cold === 'share' && isOpen
    const { sharesGrants = false } = home
    const renewals = new RegionRenewals(parts, terms, { isEager: isColdAlone, sharesGrants }, clock, this.counts)
    const { link } = this
    const backend = new RegionBackend({ policy, terms, leaseUs: ownLeaseUs, pools, home: whole, link, alone, isColdAlone, renewals })
    this.backends = [...this.backends.filter(({ isIdle }) => !isIdle), backend]
    return backend
  }

  /** Whether a process leases from what the region has. */
  isLeased(policy: Policy): boolean {
    const { mode } = this.termsOf(policy)
    return mode === 'tokens' || (mode === 'share' && isLeasable(shareOfPolicy(policy, this.share.inForce), this.parts.horizonMs))
  }

  close(): void {
    this.link.close()
    for (const backend of this.backends) backend.close()
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
      isHomeOut: guard.openCircuits > 0,
      renewals: counts.renewals,
      renewedTokens: counts.tokens,
      accountedTokens: counts.charged,
      regions: counted.nodes,
      share: share.inForce,
    }
  }

  private termsOf(policy: Policy): RegionTerms {
    const { tooSmall, share } = this.parts.options
    return regionTermsOf(policy, tooSmall === 'share' ? share : undefined)
  }

  private countedShare(): LocalShare {
    const { home, clock, options } = this.parts
    const names = (this.policy.policies ?? [this.policy]).map(({ name }) => `${name}@regions`)
    return shareCountedBy(home.countNodes, names, () => options.name, clock)
  }
}

function isLeasable(policy: Policy, horizonMs: number): boolean {
  return horizonMs > 0 && (policy.policies ?? [policy]).every((part) => whyNotLeased(part, horizonMs) === undefined)
}
