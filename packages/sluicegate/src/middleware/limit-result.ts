import { type Awaitable, ignore } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { type After, isPermit, keptPermit, renew } from '../decision/permit.js'
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

/** Until when a charge may be refunded, on the clock that measures how long requests take. */
export interface RefundTerm {
  readonly nowMs: () => number
  readonly untilMs: number
}

/** What one limit decided about one request, and what it charged. */
export class LimitResult {
  readonly limit: ResultLimit
  readonly key: Key
  readonly cost: number
  /** The policy that decided. */
  readonly policy: Policy
  readonly decision: Decision
  /** The decision that was charged; undefined once it is settled or undone. */
  private charged: Decision | undefined
  private refundTerm: RefundTerm | undefined
  private cancelRenewal: (() => void) | undefined

  constructor(limit: ResultLimit, key: Key, cost: number, policy: Policy, decision: Decision) {
    this.limit = limit
    this.key = key
    this.cost = cost
    this.policy = policy
    this.decision = decision
  }

  /** Records a charge. @param refundTerm present where the request may turn out not to count. */
  charge(charged: Decision, refundTerm: RefundTerm | undefined): void {
    this.charged = charged
    this.refundTerm = refundTerm
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
    return this.charged !== undefined && (this.refundTerm !== undefined || isPermit(this.charged))
  }

  /** Whether a permit is held, which expires unless it is renewed. */
  get holdsPermit(): boolean {
    return this.charged !== undefined && isPermit(this.charged)
  }

  /** Renews a permit until {@link stopRenewing} or {@link settle}. */
  renewPermit(after: After): void {
    const { charged, limit, key } = this
    if (charged === undefined || this.cancelRenewal !== undefined || !isPermit(charged)) return
    this.cancelRenewal = keptPermit(charged, limit.limiter, key, after)
  }

  /** From now on a permit expires after its time to live, unless it is renewed again. */
  stopRenewing(): void {
    const { charged } = this
    this.cancelRenewal?.()
    this.cancelRenewal = undefined
    if (charged !== undefined && isPermit(charged)) renew(charged)
  }

  /** The response has ended: a permit is released; a request that does not count is refunded, unless its charge may have worn off. */
  settle(counts: boolean): void {
    const { charged, refundTerm } = this
    if (charged === undefined) return
    this.charged = undefined
    this.cancelRenewal?.()
    const isRefunded = !counts && refundTerm !== undefined && refundTerm.nowMs() < refundTerm.untilMs
    if (isRefunded || isPermit(charged)) giveBack(this.limit.limiter, this.key, this.cost, charged)
  }

  /** Gives the charge back at once, because the request does not pass after all. */
  undo(): void {
    const { charged } = this
    if (charged === undefined) return
    this.charged = undefined
    giveBack(this.limit.limiter, this.key, this.cost, charged)
  }
}

/** Releases a permit or refunds tokens. If that fails the charge stays until it wears off: the request was decided and does not fail for it. */
export function giveBack(limiter: MiddlewareLimiter, key: Key, cost: number, charged: Decision): void {
  try {
    const done: Awaitable<unknown> = isPermit(charged) ? charged.release() : limiter.refund(key, cost)
    ignore(done)
  } catch {
    // As above.
  }
}
