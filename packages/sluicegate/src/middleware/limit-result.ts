import { ignore, type When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { type After, isPermit, keptPermit, type Permit, renew } from '../decision/permit.js'
import type { Reservation } from '../decision/reservation.js'
import type { QuotaUnit } from '../headers/quota.js'
import { passing } from '../layers/shadow-limiter.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { SlowDown } from '../slow-down.js'
import type { ProblemKind } from './denial.js'
import type { MiddlewareLimiter } from './middleware-options.js'

/** What a result has to know of the limit that it is a result of. */
export interface ResultLimit {
  readonly limiter: MiddlewareLimiter
  readonly shadow: boolean
  readonly unit: QuotaUnit | undefined
  readonly problem: ProblemKind | undefined
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
  /** What was charged; undefined once it is settled or undone. */
  private charged: Reservation<When> | undefined
  private mayNotCount = false
  private cancelRenewal: (() => void) | undefined

  constructor(limit: ResultLimit, key: Key, cost: number, policy: Policy, decision: Decision) {
    this.limit = limit
    this.key = key
    this.cost = cost
    this.policy = policy
    this.decision = decision
  }

  /** Records a charge. @param mayNotCount whether the request may turn out not to count. */
  charge(charged: Reservation<When>, mayNotCount: boolean): void {
    this.charged = charged
    this.mayNotCount = mayNotCount
  }

  get problem(): ProblemKind | undefined {
    return this.limit.problem
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

  /** Whether {@link settle} has to be called after the response. */
  get needsSettling(): boolean {
    return this.charged !== undefined && (this.mayNotCount || this.holdsPermit)
  }

  /** Whether a permit is held, which expires unless it is renewed. */
  get holdsPermit(): boolean {
    return this.charged !== undefined && isPermit(this.charged.decision)
  }

  /** Renews a permit until {@link stopRenewing} or {@link settle}. */
  renewPermit(after: After): void {
    const { limit, key } = this
    const decision = this.charged?.decision
    if (decision === undefined || this.cancelRenewal !== undefined || !isPermit(decision)) return
    this.cancelRenewal = keptPermit(decision, limit.limiter, key, after)
  }

  /** From now on a permit expires after its time to live, unless it is renewed again. */
  stopRenewing(): void {
    const decision = this.charged?.decision
    this.cancelRenewal?.()
    this.cancelRenewal = undefined
    if (decision !== undefined && isPermit(decision)) renew(decision)
  }

  /** The response has ended: a permit is released; what a request that does not count has charged goes back, as far as it is still owed. */
  settle(counts: boolean): void {
    const { charged } = this
    if (charged === undefined) return
    this.charged = undefined
    this.cancelRenewal?.()
    if (!counts && this.mayNotCount) giveBack(charged)
    else if (isPermit(charged.decision)) release(charged.decision)
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
