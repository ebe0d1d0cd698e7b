import { type Awaitable, ignore } from '../awaitable.js'
import type { Decision } from '../decision.js'
import { isPermit } from '../empty-permit.js'
import type { QuotaUnit } from '../headers/quota.js'
import { type After, keptPermit } from '../kept-permit.js'
import { passing } from '../layers/shadow-limiter.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { SlowDown } from '../slow-down.js'
import type { ProblemKind } from './denial.js'
import type { EdgeLimiter } from './middleware-limiter.js'

/** What of a rule the answer has to know. */
export interface AskedRule {
  readonly limiter: EdgeLimiter
  readonly shadow: boolean
  readonly unit: QuotaUnit | undefined
  readonly problem: ProblemKind | undefined
  readonly slowDown: SlowDown<never> | undefined
}

/** Until when a charge may come back, on the clock that tells how long requests take. */
export interface Refundable {
  readonly nowMs: () => number
  readonly untilMs: number
}

/** What one limit answered to one request, and what it took. */
export class Asked {
  readonly rule: AskedRule
  readonly key: Key
  readonly cost: number
  /** The policy that decided. */
  readonly policy: Policy
  readonly decision: Decision
  private taken: Decision | undefined
  private refundable: Refundable | undefined
  private unkeep: (() => void) | undefined

  constructor(rule: AskedRule, key: Key, cost: number, policy: Policy, decision: Decision) {
    this.rule = rule
    this.key = key
    this.cost = cost
    this.policy = policy
    this.decision = decision
  }

  /** Notes what was charged. @param refundable where it may turn out not to count. */
  took(taken: Decision, refundable: Refundable | undefined): void {
    this.taken = taken
    this.refundable = refundable
  }

  get problem(): ProblemKind | undefined {
    return this.rule.problem
  }

  get unit(): QuotaUnit | undefined {
    return this.rule.unit
  }

  get denies(): boolean {
    return !this.decision.allowed && !this.rule.shadow
  }

  /** Whether it would deny, were it not in the shadow. */
  get wouldDeny(): boolean {
    return this.rule.shadow && (!this.decision.allowed || this.decision.wouldDeny === true)
  }

  /** The decision as a limiter in the shadow answers it. */
  get passing(): Decision {
    return this.rule.shadow ? passing(this.decision) : this.decision
  }

  /** Whether something is to be done when the response has ended. */
  get isOpen(): boolean {
    return this.taken !== undefined && (this.refundable !== undefined || isPermit(this.taken))
  }

  /** Whether a place is held, which runs out if nobody keeps it. */
  get holdsPlace(): boolean {
    return this.taken !== undefined && isPermit(this.taken)
  }

  /** Keeps a place from running out until {@link settle}. */
  keep(after: After): void {
    const { taken, policy } = this
    if (taken !== undefined && this.unkeep === undefined && isPermit(taken)) this.unkeep = keptPermit(taken, policy, after)
  }

  /** The response has ended: places come back, and what does not count as far as it can still be there. */
  settle(counts: boolean): void {
    const { taken, refundable } = this
    if (taken === undefined) return
    this.taken = undefined
    this.unkeep?.()
    const mayComeBack = !counts && refundable !== undefined && refundable.nowMs() < refundable.untilMs
    if (mayComeBack || isPermit(taken)) giveBack(this.rule.limiter, this.key, this.cost, taken)
  }

  /** What was taken goes back at once, because the request does not pass after all. */
  undo(): void {
    const { taken } = this
    if (taken === undefined) return
    this.taken = undefined
    giveBack(this.rule.limiter, this.key, this.cost, taken)
  }
}

/** A place, or tokens. What cannot be given back stays charged until it wears off: no reason to fail a request that was decided. */
export function giveBack(limiter: EdgeLimiter, key: Key, cost: number, taken: Decision): void {
  try {
    const done: Awaitable<unknown> = isPermit(taken) ? taken.release() : limiter.refund(key, cost)
    ignore(done)
  } catch {
    // As above.
  }
}
