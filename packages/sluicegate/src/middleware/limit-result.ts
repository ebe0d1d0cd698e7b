import { ignore, type When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { isPermit, keptPermit, type Permit, renew } from '../decision/permit.js'
import type { Reservation } from '../decision/reservation.js'
import type { QuotaUnit } from '../headers/quota.js'
import type { OpenOptions } from '../holds/hold.js'
import { type AnyHold, closeQuietly, isHold, keptHold } from '../holds/metered.js'
import { passingHold, uncountedHold } from '../holds/uncounted-hold.js'
import { passing } from '../layers/shadow-limiter.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { SlowDown } from '../slow-down.js'
import type { After } from '../time/clock.js'
import type { MiddlewareLimiter } from './middleware-options.js'

/** What a result has to know of the limit that it is a result of. */
export interface ResultLimit {
  readonly limiter: MiddlewareLimiter
  readonly shadow: boolean
  readonly unit: QuotaUnit | undefined
  readonly slowDown: SlowDown<never> | undefined
}

/** What one limit decided about one request, and what it charged. */
export class LimitResult {
  readonly limit: ResultLimit
  readonly key: Key
  readonly cost: number
  /** The policy that decided. */
  readonly policy: Policy
  readonly decision: Decision
  /** Of work whose cost is known only afterwards: how its hold was opened. */
  private readonly metered: OpenOptions | undefined
  /** What was charged; undefined once it is settled or undone. */
  private charged: Reservation<When> | undefined
  private mayNotCount = false
  private cancelRenewal: (() => void) | undefined

  constructor(limit: ResultLimit, key: Key, cost: number, policy: Policy, decision: Decision, metered?: OpenOptions) {
    this.limit = limit
    this.key = key
    this.cost = cost
    this.policy = policy
    this.decision = decision
    this.metered = metered
  }

  /** Records a charge. @param mayNotCount whether the request may turn out not to count. */
  charge(charged: Reservation<When>, mayNotCount: boolean): void {
    this.charged = charged
    this.mayNotCount = mayNotCount
  }

  get unit(): QuotaUnit | undefined {
    return this.limit.unit
  }

  get denies(): boolean {
    return !this.decision.allowed && !this.limit.shadow
  }

  /** A denial in shadow mode: the request passes. */
  get wouldDeny(): boolean {
    return this.limit.shadow && (!this.decision.allowed || this.decision.wouldDeny === true)
  }

  /** The decision as a shadow limiter returns it. */
  get passing(): Decision {
    return this.limit.shadow ? passing(this.decision) : this.decision
  }

  /** The hold of metered work, for the handler of a request that passes: one that counts nothing where the limiter gave none. */
  get hold(): AnyHold | undefined {
    if (this.metered === undefined) return undefined
    const { decision, passing: passed } = this
    const own = this.charged?.decision ?? decision
    if (!isHold(own)) return uncountedHold(passed)
    return own.allowed ? own : passingHold(own, passed)
  }

  /** Whether {@link settle} has to be called after the response. */
  get needsSettling(): boolean {
    return this.charged !== undefined && (this.mayNotCount || this.isHeld)
  }

  /** Whether a permit or a hold is held, which ends unless it is renewed. */
  get isHeld(): boolean {
    const decision = this.charged?.decision
    return decision !== undefined && (isPermit(decision) || isHold(decision))
  }

  /** Renews what is held until {@link stopRenewing} or {@link settle}. */
  renew(after: After): void {
    const { limit, key, metered } = this
    const decision = this.charged?.decision
    if (decision === undefined || this.cancelRenewal !== undefined) return
    if (isPermit(decision)) this.cancelRenewal = keptPermit(decision, limit.limiter, key, after)
    else if (metered !== undefined && isHold(decision)) this.cancelRenewal = keptHold(decision, metered, after)
  }

  /** From now on it ends after its time to live, unless it is renewed again. */
  stopRenewing(): void {
    const decision = this.charged?.decision
    this.cancelRenewal?.()
    this.cancelRenewal = undefined
    if (decision !== undefined && isPermit(decision)) renew(decision)
  }

  /** The response has ended: a permit is released, a hold closed; what a request that does not count has charged goes back, as far as it is still owed. */
  settle(counts: boolean): void {
    const { charged } = this
    if (charged === undefined) return
    this.charged = undefined
    this.cancelRenewal?.()
    const { decision } = charged
    if (!counts && this.mayNotCount) giveBack(charged)
    else if (isPermit(decision)) release(decision)
    else closeQuietly(decision)
  }

  /** Gives the charge back at once, because the request does not pass after all. */
  undo(): void {
    const { charged } = this
    if (charged === undefined) return
    this.charged = undefined
    giveBack(charged)
  }
}

/** Gives back what was charged. If that fails it stays until it wears off: the request was decided and does not fail for it. */
export function giveBack(charged: Reservation<When>): void {
  const { decision } = charged
  try {
    ignore(charged.cancel())
  } catch {
    // As above.
  }
  if (isPermit(decision)) release(decision)
}

function release(permit: Permit): void {
  try {
    ignore(permit.release())
  } catch {
    // The limiter is closed or out of reach: the place comes back after its ttl.
  }
}
