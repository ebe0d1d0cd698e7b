import type { Decision } from '../decision.js'
import { isPermit } from '../empty-permit.js'
import { StoreError } from '../errors.js'
import type { QuotaUnit } from '../headers/quota.js'
import type { RequestFacts } from '../keys/request-facts.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { Asked, type AskedRule } from './asked.js'
import { type Awaitable, isPromise } from './awaitable.js'
import type { ProblemKind } from './denial.js'
import type { EdgeLimiter } from './edge-limiter.js'
import type { KeyFinder } from './key-source.js'
import type { Tally } from './misuse-watch.js'
import type { OutageChoice } from './outage-choice.js'

/** How long to stay away when the limiter could not say it. */
const UNTOLD_RETRY_MS = 1_000

/** A limit with its options read. */
export interface LimitRuleParts<Request> {
  readonly limiter: EdgeLimiter
  readonly keyOf: KeyFinder<Request>
  readonly cost: number | ((request: Request, facts: RequestFacts) => Awaitable<number>)
  readonly shadow: boolean
  readonly unit: QuotaUnit | undefined
  readonly problem: ProblemKind | undefined
  /** Where some requests turn out not to count: a clock that tells how long they took. */
  readonly nowMs: (() => number) | undefined
  readonly inOutage: OutageChoice<Request> | undefined
  readonly tally: Tally
}

/** Asks one limiter about requests. */
export class LimitRule<Request> implements AskedRule {
  readonly limiter: EdgeLimiter
  readonly shadow: boolean
  readonly unit: QuotaUnit | undefined
  readonly problem: ProblemKind | undefined
  readonly keyOf: KeyFinder<Request>
  private readonly parts: LimitRuleParts<Request>
  /** The policy when it was last looked at: a limiter that is closed does not tell it. */
  private policy: Policy

  constructor(parts: LimitRuleParts<Request>) {
    this.parts = parts
    this.limiter = parts.limiter
    this.shadow = parts.shadow
    this.unit = parts.unit
    this.problem = parts.problem
    this.keyOf = parts.keyOf
    this.policy = parts.limiter.policy
  }

  costOf(facts: RequestFacts, request: Request): Awaitable<number> {
    const { cost } = this.parts
    return typeof cost === 'number' ? cost : cost(request, facts)
  }

  /** What a take would answer; nothing is taken. */
  peek(key: Key, cost: number, request: Request): Awaitable<Asked> {
    try {
      return this.asked(key, cost, request, undefined, this.limiter.peek(key, cost))
    } catch (error) {
      return this.without(error, key, cost, request)
    }
  }

  take(key: Key, cost: number, request: Request): Awaitable<Asked> {
    const { tally, nowMs } = this.parts
    tally.count(request, key)
    const takenAtMs = nowMs === undefined ? 0 : nowMs()
    try {
      return this.asked(key, cost, request, takenAtMs, this.limiter.take(key, cost))
    } catch (error) {
      return this.without(error, key, cost, request)
    }
  }

  /** @param takenAtMs undefined when nothing is taken. */
  private asked(key: Key, cost: number, request: Request, takenAtMs: number | undefined, decision: Awaitable<Decision>): Awaitable<Asked> {
    if (!isPromise(decision)) return this.answered(key, cost, decision, takenAtMs, request)
    return decision.then(
      (value) => this.answered(key, cost, value, takenAtMs, request),
      (error) => this.without(error, key, cost, request),
    )
  }

  private answered(key: Key, cost: number, decision: Decision, takenAtMs: number | undefined, request: Request): Asked {
    const { inOutage, nowMs } = this.parts
    const shown = decision.source === 'outage' && inOutage !== undefined ? this.chosen(decision, undefined, request) : decision
    const asked = new Asked(this, key, cost, this.policyOf(key), shown)
    // What would have been denied in the shadow was not charged, and what was decided without the store was not charged there.
    const isCharged = decision.allowed && !decision.wouldDeny && (decision.source !== 'outage' || isPermit(decision))
    if (takenAtMs === undefined || !isCharged) return asked
    // The key is as good as new when resetAfterMs, which is rounded up, is over: then nothing of it is left to come back.
    asked.took(decision, nowMs === undefined ? undefined : { nowMs, untilMs: takenAtMs + decision.resetAfterMs - 1 })
    if (!shown.allowed) asked.undo()
    return asked
  }

  /** The limiter could not decide: an outage, unless it is misuse. */
  private without(error: unknown, key: Key, cost: number, request: Request): Asked {
    if (!(error instanceof StoreError)) throw error
    const { name, limit } = this.policy
    const closed: Decision = {
      allowed: false,
      limit,
      remaining: 0,
      retryAfterMs: UNTOLD_RETRY_MS,
      resetAfterMs: 0,
      policy: name,
      source: 'outage',
    }
    return new Asked(this, key, cost, this.policy, this.chosen(closed, error, request))
  }

  private chosen(decision: Decision, error: StoreError | undefined, request: Request): Decision {
    const choice = this.parts.inOutage?.({ decision, error }, request)
    // What can never pass does not pass in an outage either.
    if (choice === undefined || decision.retryAfterMs === Number.POSITIVE_INFINITY) return decision
    const { limit, remaining, resetAfterMs, policy, source } = decision
    const allowed = choice === 'open'
    const retryAfterMs = allowed ? 0 : Math.max(decision.retryAfterMs, UNTOLD_RETRY_MS)
    return { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source }
  }

  private policyOf(key: Key): Policy {
    const { limiter } = this
    this.policy = limiter.policyOf === undefined ? limiter.policy : limiter.policyOf(key)
    return this.policy
  }
}
