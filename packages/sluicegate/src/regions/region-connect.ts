import { leaseUsOf } from '../lease/leasing.js'
import type { Policy } from '../policy/policy.js'
import type { Backend } from '../shared/backend.js'
import { CallGuard, NO_EVENTS } from '../shared/calls/call-guard.js'
import { GuardedBackend } from '../shared/calls/guarded-backend.js'
import { CountedShare, GivenShare, type LocalShare, UNKNOWN_SHARE } from '../shared/outage/local-share.js'
import type { RegionStats } from '../shared/region-stats.js'
import type { Clock } from '../time/clock.js'
import { DEFAULT_HOME_TIMEOUT_MS, type Home, type RegionOptions } from './home.js'
import { RegionBackend } from './region-backend.js'
import type { RegionPool } from './region-pool.js'
import { ShareBackend } from './region-share.js'
import { regionTermsOf } from './region-terms.js'
import { demandPolicy, RegionRenewals } from './renewals.js'

/** What the region's own store gives. */
export interface RegionStore {
  /** What the region holds of a policy's keys. */
  poolOf(policy: Policy): RegionPool
  /** The region's share of a policy. */
  connect(policy: Policy, lengthOf: (policy: Policy) => number): Backend
}

/** Renewals of a policy that is not in force any more have ended after this long beyond the timeout of a call: their tokens have, too. */
const LAST_MS = 10_000

/** One region of a limiter: the backends of its policies, old and new, and what they did. */
export class Region {
  readonly share: LocalShare
  private readonly home: Home
  private readonly guard: CallGuard
  private readonly store: RegionStore
  private readonly options: RegionOptions
  private readonly clock: Clock
  private readonly horizonMs: number
  private policy: Policy
  private renewals: RegionRenewals | undefined
  /** Of policies before it, until they have ended. */
  private former: { readonly renewals: RegionRenewals; readonly untilMs: number }[] = []
  /** What those did that have ended. */
  private readonly ended = { renewals: 0, tokens: 0, charged: 0 }

  constructor(home: Home, store: RegionStore, policy: Policy, options: RegionOptions, horizonMs: number, clock: Clock) {
    this.home = home
    this.store = store
    this.options = options
    this.clock = clock
    this.policy = policy
    this.horizonMs = horizonMs
    this.share = options.share === undefined ? this.countedShare() : new GivenShare(options.share)
    const events = { ...NO_EVENTS, answered: () => this.share.answered() }
    this.guard = new CallGuard(home.places, clock, options.timeoutMs ?? DEFAULT_HOME_TIMEOUT_MS, events)
  }

  /** The backend of a policy, which is in force from now on. */
  connect(policy: Policy): Backend {
    this.policy = policy
    const { home, guard, store, options, share } = this
    const terms = regionTermsOf(policy)
    const lengthOf = (): number => terms.leaseUs
    const guardedOf = (each: Policy): Backend => new GuardedBackend(home.connect(each, lengthOf), guard, each)
    const whole = guardedOf(policy)
    const policies = policy.policies ?? [policy]
    const parts = policies.map((part) => {
      const counted = demandPolicy(part)
      const unleased = home.connect(counted, () => 0)
      return {
        policy: part,
        pool: store.poolOf(part),
        home: policy.policies === undefined ? whole : guardedOf(part),
        demand: new GuardedBackend(unleased, guard, counted),
      }
    })
    const pools = parts.map(({ pool }) => pool)
    const renewals = new RegionRenewals(parts, terms, this.clock)
    this.replace(renewals)
    const leaseUs = leaseUsOf(this.horizonMs)
    const alone = options.share === 0 ? undefined : new ShareBackend(policy, share, (each) => store.connect(each, () => leaseUs))
    const isColdAlone = options.cold === 'share'
    return new RegionBackend({ policy, terms, leaseUs, pools, home: whole, alone, isColdAlone, renewals })
  }

  /** Whether a process leases from the region's tokens. */
  isLeased(policy: Policy): boolean {
    return regionTermsOf(policy).mode === 'tokens'
  }

  close(): void {
    for (const renewals of this.all()) renewals.close()
  }

  /** A policy that is updated again and again leaves nothing behind. */
  private replace(renewals: RegionRenewals): void {
    const nowMs = this.clock.nowMs()
    const untilMs = nowMs + 2 * (this.options.timeoutMs ?? DEFAULT_HOME_TIMEOUT_MS) + LAST_MS
    if (this.renewals !== undefined) this.former.push({ renewals: this.renewals, untilMs })
    this.renewals = renewals
    for (const { renewals: old } of this.former.filter((each) => each.untilMs <= nowMs)) {
      old.close()
      for (const name of ['renewals', 'tokens', 'charged'] as const) this.ended[name] += old.counts[name]
    }
    this.former = this.former.filter((each) => each.untilMs > nowMs)
  }

  private all(): RegionRenewals[] {
    const former = this.former.map(({ renewals }) => renewals)
    return this.renewals === undefined ? former : [...former, this.renewals]
  }

  stats(): RegionStats {
    const { guard, share, options } = this
    const { mode, why } = regionTermsOf(this.policy)
    const sum = (count: 'renewals' | 'tokens' | 'charged'): number =>
      this.all().reduce((all, { counts }) => all + counts[count], this.ended[count])
    return {
      region: options.region,
      mode,
      why,
      homeCalls: guard.counts.answered,
      homeFailures: guard.counts.failed,
      isHomeOut: guard.openCircuits > 0,
      renewals: sum('renewals'),
      renewedTokens: sum('tokens'),
      accountedTokens: sum('charged'),
      regions: share.nodes,
      share: share.inForce,
    }
  }

  private countedShare(): LocalShare {
    const { home, clock, options } = this
    if (home.countRegions === undefined) return new GivenShare(UNKNOWN_SHARE)
    const names = (this.policy.policies ?? [this.policy]).map(({ name }) => name)
    return new CountedShare(clock, async () => (await home.countRegions?.(names, options.region)) ?? 1)
  }
}
