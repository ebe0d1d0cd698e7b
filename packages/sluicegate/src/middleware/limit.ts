import { type Awaitable, ignore, isPromise } from '../awaitable.js'
import { combined } from '../combined-decision.js'
import type { Decision } from '../decision.js'
import { holdsPermits, isPermit } from '../empty-permit.js'
import { StoreError } from '../errors.js'
import type { QuotaUnit } from '../headers/quota.js'
import type { RequestFacts } from '../keys/key-reader.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { SlowDown } from '../slow-down.js'
import type { ProblemKind } from './denial.js'
import type { KeyFinder } from './key-source.js'
import { Asked, type AskedRule, giveBack, type Refundable } from './limit-result.js'
import type { EdgeLimiter } from './middleware-limiter.js'
import type { Tally } from './misuse-watch.js'
import { checkedChoice, type OutageChoice } from './outage-choice.js'

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
  readonly slowDown: SlowDown<Request> | undefined
}

/** What is done with the key and the cost of a request. */
export type Weighed<Request, Result> = (rule: LimitRule<Request>, key: Key, cost: number, request: Request) => Awaitable<Result>

/** Finds the rule, the key and the cost of a request. */
export interface Weigher<Request> {
  /**
   * Goes on with all three. What costs nothing needs no key, and comes to `free`. One after the other: were two under way and one failed,
   * nobody would hear of the other.
   */
  weigh<Result>(facts: RequestFacts, request: Request, next: Weighed<Request, Result>, free: Result): Awaitable<Result>
}

/** Asks one limiter about requests. */
export class LimitRule<Request> implements AskedRule, Weigher<Request> {
  readonly limiter: EdgeLimiter
  readonly shadow: boolean
  readonly unit: QuotaUnit | undefined
  readonly problem: ProblemKind | undefined
  readonly slowDown: SlowDown<Request> | undefined
  private readonly parts: LimitRuleParts<Request>
  /** Whether of what is allowed nothing ever comes back, and nothing is hidden or chosen: all there is to know of it is the decision. */
  private readonly isPlain: boolean
  private tally: Tally | undefined
  /** The policy when it was last looked at: a limiter that is closed does not tell it. */
  private policy: Policy
  /** Whether peeks are answered at once, as far as is known. */
  private foresees = true

  constructor(parts: LimitRuleParts<Request>) {
    const { limiter, shadow, unit, problem, nowMs, inOutage, tally, slowDown } = parts
    const { policy } = limiter
    this.parts = parts
    this.limiter = limiter
    this.shadow = shadow
    this.unit = unit
    this.problem = problem
    this.slowDown = slowDown
    this.tally = tally
    this.policy = policy
    const isPlain = !shadow && unit === undefined && nowMs === undefined && inOutage === undefined && slowDown === undefined
    this.isPlain = isPlain && !holdsPermits(policy)
  }

  weigh<Result>(facts: RequestFacts, request: Request, next: Weighed<Request, Result>, free: Result): Awaitable<Result> {
    const { cost } = this.parts
    if (typeof cost === 'number') return this.identify(cost, facts, request, next, free)
    const found = cost(request, facts)
    return isPromise(found) ? this.weighLater(found, facts, request, next, free) : this.identify(found, facts, request, next, free)
  }

  /** What a take would answer, where the limiter says so at once and by itself; nothing is taken. */
  foresee(key: Key, cost: number): Asked | undefined {
    if (!this.foresees) return undefined
    try {
      const decision = this.limiter.peek(key, cost)
      if (isPromise(decision)) {
        // Whoever is asked elsewhere is asked once: this costs as much as a take, and knows nothing of the tokens that are in hand here.
        this.foresees = false
        ignore(decision)
        return undefined
      }
      // As is no decision at all.
      if (!isDecision(decision) || decision.source === 'outage') return undefined
      return new Asked(this, key, cost, this.policyOf(key), decision)
    } catch (error) {
      // An outage, which is told of when it is taken from.
      if (error instanceof StoreError) return undefined
      throw error
    }
  }

  take(key: Key, cost: number, request: Request): Awaitable<Asked> {
    const takenAtMs = this.nowMs()
    return this.asked(key, cost, request, takenAtMs, this.answer(key, cost, request))
  }

  /** The same; where nothing is to be known but the decision, and that it is allowed, only that. */
  takePlainly(key: Key, cost: number, request: Request): Decision | Awaitable<Asked> {
    const takenAtMs = this.nowMs()
    const answer = this.answer(key, cost, request)
    return this.isPlain && isAllowed(answer) ? answer : this.asked(key, cost, request, takenAtMs, answer)
  }

  /** The policy in force for a key, as its limiter knows it since it last decided. */
  policyOf(key: Key): Policy {
    const { limiter } = this
    this.policy = limiter.policyOf === undefined ? limiter.policy : limiter.policyOf(key)
    return this.policy
  }

  private weighLater<Result>(
    cost: Promise<number>,
    facts: RequestFacts,
    request: Request,
    next: Weighed<Request, Result>,
    free: Result,
  ): Promise<Result> {
    return cost.then((found) => this.identify(found, facts, request, next, free))
  }

  private identify<Result>(
    cost: number,
    facts: RequestFacts,
    request: Request,
    next: Weighed<Request, Result>,
    free: Result,
  ): Awaitable<Result> {
    if (cost === 0) return free
    const key = this.parts.keyOf(facts, request)
    return isPromise(key) ? this.identifyLater(key, cost, request, next) : next(this, key, cost, request)
  }

  private identifyLater<Result>(key: Promise<Key>, cost: number, request: Request, next: Weighed<Request, Result>): Promise<Result> {
    return key.then((found) => next(this, found, cost, request))
  }

  private nowMs(): number {
    const { nowMs } = this.parts
    return nowMs === undefined ? 0 : nowMs()
  }

  /** What the limiter says to a take, or why it says nothing. */
  private answer(key: Key, cost: number, request: Request): Awaitable<Decision> | StoreError {
    const { tally } = this
    if (tally !== undefined && !tally.count(request, key)) this.tally = undefined
    try {
      return this.limiter.take(key, cost)
    } catch (error) {
      if (error instanceof StoreError) return error
      throw error
    }
  }

  private asked(key: Key, cost: number, request: Request, takenAtMs: number, answer: Awaitable<Decision> | StoreError): Awaitable<Asked> {
    if (answer instanceof StoreError) return this.without(answer, key, cost, request)
    if (isPromise(answer)) return this.askedLater(key, cost, request, takenAtMs, answer)
    return isAllowed(answer) ? this.answered(key, cost, request, takenAtMs, answer) : this.heard(key, cost, request, takenAtMs, answer)
  }

  private askedLater(key: Key, cost: number, request: Request, takenAtMs: number, answer: Promise<Decision>): Promise<Asked> {
    return answer.then(
      (decision) => this.heard(key, cost, request, takenAtMs, decision),
      (error) => this.without(error, key, cost, request),
    )
  }

  private heard(key: Key, cost: number, request: Request, takenAtMs: number, decision: Decision): Asked {
    if (isDecision(decision)) return this.answered(key, cost, request, takenAtMs, decision)
    return this.without(new StoreError('OUTAGE', 'the limiter answered, and not with a decision', { cause: decision }), key, cost, request)
  }

  private answered(key: Key, cost: number, request: Request, takenAtMs: number, decision: Decision): Asked {
    // What would have been denied in the shadow was not charged. What was decided without the store was charged to this process's share at
    // most, and the store is told of it afterwards: nothing brings that back.
    const isCharged = decision.allowed && !decision.wouldDeny && (decision.source !== 'outage' || isPermit(decision))
    try {
      const shown = decision.source === 'outage' ? this.chosen(decision, undefined, request) : decision
      const asked = new Asked(this, key, cost, this.policyOf(key), shown)
      if (!isCharged) return asked
      asked.took(decision, this.refundable(decision, takenAtMs))
      if (!shown.allowed) asked.undo()
      return asked
    } catch (error) {
      // A function of the application failed, and with it the request.
      if (isCharged) giveBack(this.limiter, key, cost, decision)
      throw error
    }
  }

  private refundable({ parts, resetAfterMs }: Decision, takenAtMs: number): Refundable | undefined {
    const { nowMs } = this.parts
    // Of `allOf`, which a key may have as a policy of its own, each policy would have to give back until an end of its own.
    if (nowMs === undefined || parts !== undefined) return undefined
    // The key is as good as new when resetAfterMs, which is rounded up, is over: then nothing of it is left to come back.
    return { nowMs, untilMs: takenAtMs + resetAfterMs - 1 }
  }

  /** The limiter could not decide: an outage, unless it is misuse. */
  private without(error: unknown, key: Key, cost: number, request: Request): Asked {
    if (!(error instanceof StoreError)) throw error
    return new Asked(this, key, cost, this.policy, this.chosen(undecided(this.policy), error, request))
  }

  private chosen(decision: Decision, error: StoreError | undefined, request: Request): Decision {
    const { inOutage } = this.parts
    const choice = inOutage === undefined ? undefined : checkedChoice(inOutage({ decision, error }, request))
    // What can never pass does not pass in an outage either.
    if (choice === undefined || decision.retryAfterMs === Number.POSITIVE_INFINITY) return decision
    return overruled(decision, choice === 'open')
  }
}

/** Promises and errors are neither allowed nor denied. */
function isAllowed(answer: Awaitable<Decision> | StoreError): answer is Decision {
  const decision = answer as Decision | undefined
  return decision?.allowed === true && decision.wouldDeny === undefined
}

function undecided({ name, limit, policies }: Policy): Decision {
  if (policies !== undefined) return combined(policies.map(undecided))
  return { allowed: false, limit, remaining: 0, retryAfterMs: UNTOLD_RETRY_MS, resetAfterMs: 0, policy: name, source: 'outage' }
}

/** Of `allOf` each of its policies, so that all of them are told. */
function overruled(decision: Decision, allowed: boolean): Decision {
  const { limit, remaining, resetAfterMs, policy, source, parts } = decision
  const retryAfterMs = allowed ? 0 : Math.max(decision.retryAfterMs, UNTOLD_RETRY_MS)
  const whole: Decision = { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source }
  return parts === undefined ? whole : { ...whole, parts: parts.map((part) => overruled(part, allowed)) }
}

/**
 * Whether what a limiter told is a decision. One that asks elsewhere passes on what it heard there, and that may be anything: what a proxy in
 * between answered, or another version.
 */
export function isDecision(told: unknown): told is Decision {
  if (typeof told !== 'object' || told === null) return false
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, spent = 0, parts } = told as Partial<Decision>
  if (typeof allowed !== 'boolean' || typeof policy !== 'string') return false
  if (!isAmount(limit) || !isAmount(remaining) || !isAmount(retryAfterMs) || !isAmount(resetAfterMs) || !isAmount(spent)) return false
  return parts === undefined || (Array.isArray(parts) && parts.every(isDecision))
}

function isAmount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0
}
