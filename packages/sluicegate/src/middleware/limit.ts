import { type Awaitable, chained, ignore, isPromise, type When } from '../awaitable.js'
import { combined, type Decision } from '../decision/decision.js'
import { holdsPermits, isPermit } from '../decision/permit.js'
import { type Reservation, uncharged } from '../decision/reservation.js'
import { takeOf } from '../decision/settled-takes.js'
import { StoreError } from '../errors.js'
import type { QuotaUnit } from '../headers/quota.js'
import type { OpenOptions } from '../holds/hold.js'
import { isHold, type Metered, meteredBy, openOf } from '../holds/metered.js'
import { isByName, type KeysByName, keysOf } from '../key.js'
import type { RequestFacts } from '../keys/key-reader.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { SlowDown } from '../slow-down.js'
import type { KeyFinder, KeySource, MissingKey } from './key-source.js'
import { KeylessRequest } from './keyless.js'
import { giveBack, LimitResult, type ResultLimit } from './limit-result.js'
import { checkedChoice, type MiddlewareLimiter, type OutageChoice } from './middleware-options.js'
import type { Tally } from './misuse-watch.js'

/** `retryAfterMs` of a denial by a limiter that could not decide. */
const UNDECIDED_RETRY_MS = 1_000

/** The options of a limit, checked. */
export interface LimitParts<Request> {
  readonly limiter: MiddlewareLimiter
  readonly keyOf: KeyFinder<Request>
  /** What `keyOf` is made of, for messages. */
  readonly key: KeySource<Request>
  /** Undefined: denied, with a warning. */
  readonly onMissingKey: MissingKey<Request> | undefined
  readonly cost: number | Metered | ((request: Request, facts: RequestFacts) => Awaitable<number | Metered>)
  readonly shadow: boolean
  readonly unit: QuotaUnit | undefined
  /** Whether some requests do not count. */
  readonly isRefunding: boolean
  /** Measures how long requests took, for limiters of the user's. */
  readonly nowMs: () => number
  readonly inOutage: OutageChoice<Request> | undefined
  readonly tally: Tally
  readonly slowDown: SlowDown<Request> | undefined
}

/** What one request takes of one limit. */
export interface Charge<Request> {
  readonly limit: Limit<Request>
  readonly key: Key
  /** Of metered work what is expected, where that is said. */
  readonly cost: number
  /** Of a cost that is known only afterwards: how to open the hold. */
  readonly metered: OpenOptions | undefined
}

/** Finds what a request takes: a limit, or limits by a policy that is chosen for each request. */
export interface ChargeSource<Request> {
  /**
   * Cost first, then the key; undefined for a request that costs nothing, whose key is not asked for. One after the other: if both were pending
   * and one rejected, the rejection of the other would be unhandled.
   */
  chargeFor(facts: RequestFacts, request: Request): Awaitable<Charge<Request> | undefined>
}

/** One limit: finds the key and the cost of a request, takes from its limiter, and decides what an outage means. */
export class Limit<Request> implements ResultLimit, ChargeSource<Request> {
  readonly limiter: MiddlewareLimiter
  readonly shadow: boolean
  readonly unit: QuotaUnit | undefined
  readonly slowDown: SlowDown<Request> | undefined
  private readonly parts: LimitParts<Request>
  /** Nothing is given back, hidden or chosen: an allowed decision says everything, and no {@link LimitResult} is needed. */
  private readonly isPlain: boolean
  private tally: Tally | undefined
  /** The limiter's own policy as last read: a closed limiter does not return it any more. */
  private policy: Policy
  /** False once a peek was answered by a promise. */
  private peeksAtOnce = true

  constructor(parts: LimitParts<Request>) {
    const { limiter, shadow, unit, isRefunding, inOutage, tally, slowDown } = parts
    const { policy } = limiter
    this.parts = parts
    this.limiter = limiter
    this.shadow = shadow
    this.unit = unit
    this.slowDown = slowDown
    this.tally = tally
    this.policy = policy
    const isPlain = !shadow && unit === undefined && !isRefunding && inOutage === undefined && slowDown === undefined
    this.isPlain = isPlain && !holdsPermits(policy)
  }

  chargeFor(facts: RequestFacts, request: Request): Awaitable<Charge<Request> | undefined> {
    const { cost } = this.parts
    if (typeof cost !== 'function') return this.chargeOf(cost, facts, request)
    const found = cost(request, facts)
    return isPromise(found) ? this.chargeLater(found, facts, request) : this.chargeOf(found, facts, request)
  }

  /** What a take would decide, without taking; undefined where the limiter does not answer at once and by itself. */
  preview({ key, cost, metered }: Charge<Request>): LimitResult | undefined {
    if (!this.peeksAtOnce || metered !== undefined) return undefined
    try {
      const decision = this.limiter.peek(key, cost)
      if (isPromise(decision)) {
        // A peek at a remote limiter costs as much as a take, and does not see the tokens that this process holds: it is not repeated.
        this.peeksAtOnce = false
        ignore(decision)
        return undefined
      }
      if (!isDecision(decision) || decision.source === 'outage') return undefined
      return new LimitResult(this, key, cost, this.policyOf(key, decision), decision)
    } catch (error) {
      // An outage: the take reports it.
      if (error instanceof StoreError) return undefined
      throw error
    }
  }

  take(charge: Charge<Request>, request: Request): Awaitable<LimitResult> {
    const { limiter, parts } = this
    const { key, cost, metered } = charge
    this.note(charge, request)
    return this.resultOf(
      charge,
      request,
      asked(() => (metered === undefined ? takeOf(limiter, key, cost, parts.nowMs) : openOf(limiter, key, metered))),
    )
  }

  /** As {@link take}, but the bare decision where it allows and there is nothing else to know. Nearly every request takes this path. */
  takePlain(charge: Charge<Request>, request: Request): Decision | Awaitable<LimitResult> {
    if (!this.isPlain || charge.metered !== undefined) return this.take(charge, request)
    this.note(charge, request)
    let answer: Awaitable<Decision>
    try {
      answer = this.limiter.take(charge.key, charge.cost)
    } catch (error) {
      if (error instanceof StoreError) return this.undecided(error, charge, request)
      throw error
    }
    if (isAllowed(answer)) return answer
    // Nothing is given back: what was taken needs no way back.
    return this.resultOf(charge, request, chained(answer, uncharged))
  }

  /** The policy in force for a key, as its limiter knows it since it last decided; of several sources that of the decision. */
  policyOf(key: Key, decision?: Decision): Policy {
    const { limiter } = this
    this.policy = limiter.policy
    return limiter.policyOf === undefined ? this.policy : limiter.policyOf(key, decision)
  }

  private chargeOf(cost: number | Metered, facts: RequestFacts, request: Request): Awaitable<Charge<Request> | undefined> {
    if (cost === 0) return undefined
    const key = this.parts.keyOf(facts, request)
    if (isPromise<Key | KeysByName | undefined>(key)) return this.chargeOnceKnown(key, cost, facts, request)
    return key === undefined ? this.chargeWithoutKey(cost, facts, request) : this.chargeTo(key, cost)
  }

  private chargeTo(given: Key | KeysByName, cost: number | Metered): Charge<Request> {
    const key = isByName(given) ? keysOf(this.limiter.policy, given) : given
    if (typeof cost === 'number') return { limit: this, key, cost, metered: undefined }
    const metered = meteredBy(cost)
    const expect = metered?.expect
    // What is no cost at all is refused by the limiter.
    const tokens = metered === undefined ? (cost as unknown as number) : typeof expect === 'number' ? expect : 1
    return { limit: this, key, cost: tokens, metered }
  }

  private chargeWithoutKey(cost: number | Metered, facts: RequestFacts, request: Request): Awaitable<Charge<Request> | undefined> {
    const { onMissingKey } = this.parts
    if (onMissingKey === 'skip' || this.shadow) return undefined
    const keyless = new KeylessRequest(this.policy, this.parts.key as KeySource<never>)
    if (onMissingKey === undefined) keyless.warnOfDefault(facts)
    if (typeof onMissingKey !== 'function') throw keyless
    return chained(onMissingKey(facts, request), (key) => {
      if (key === undefined) throw keyless
      return this.chargeTo(key, cost)
    })
  }

  private chargeLater(cost: Promise<number | Metered>, facts: RequestFacts, request: Request): Promise<Charge<Request> | undefined> {
    return cost.then((found) => this.chargeOf(found, facts, request))
  }

  private chargeOnceKnown(
    key: Promise<Key | KeysByName | undefined>,
    cost: number | Metered,
    facts: RequestFacts,
    request: Request,
  ): Promise<Charge<Request> | undefined> {
    return key.then((found) => (found === undefined ? this.chargeWithoutKey(cost, facts, request) : this.chargeTo(found, cost)))
  }

  private note({ key }: Charge<Request>, request: Request): void {
    const { tally } = this
    if (tally !== undefined && !tally.count(request, key)) this.tally = undefined
  }

  private resultOf(charge: Charge<Request>, request: Request, answer: Awaitable<Reservation<When>> | StoreError): Awaitable<LimitResult> {
    if (answer instanceof StoreError) return this.undecided(answer, charge, request)
    if (!isPromise(answer)) return this.checked(answer, charge, request)
    return answer.then(
      (reservation) => this.checked(reservation, charge, request),
      (error) => this.undecided(error, charge, request),
    )
  }

  private checked(reservation: Reservation<When>, charge: Charge<Request>, request: Request): LimitResult {
    const { decision } = reservation
    if (isAllowed(decision) || isDecision(decision)) return this.decided(reservation, charge, request)
    const error = new StoreError('OUTAGE', 'the limiter answered with something that is not a decision', { cause: decision })
    return this.undecided(error, charge, request)
  }

  private decided(reservation: Reservation<When>, { key, cost, metered }: Charge<Request>, request: Request): LimitResult {
    const { decision } = reservation
    // A denial in shadow mode is not charged. A decision without the store is charged to this process's share at most, and reported to the
    // store later: nothing of it comes back.
    const isCharged = decision.allowed && !decision.wouldDeny && (decision.source !== 'outage' || isPermit(decision) || isHold(decision))
    try {
      const chosen = decision.source === 'outage' ? this.chosenInOutage(decision, undefined, request) : decision
      const result = new LimitResult(this, key, cost, this.policyOf(key, chosen), chosen, metered)
      if (!isCharged) return result
      result.charge(reservation, this.parts.isRefunding && metered === undefined)
      if (!chosen.allowed) result.undo()
      return result
    } catch (error) {
      // A function of the application threw: the request fails, and nothing stays charged.
      if (isCharged) giveBack(reservation)
      throw error
    }
  }

  /** The limiter threw: an outage if it is a `StoreError`, otherwise misuse, which is rethrown. */
  private undecided(error: unknown, { key, cost, metered }: Charge<Request>, request: Request): LimitResult {
    if (!(error instanceof StoreError)) throw error
    return new LimitResult(this, key, cost, this.policy, this.chosenInOutage(undecidedDenial(this.policy), error, request), metered)
  }

  private chosenInOutage(decision: Decision, error: StoreError | undefined, request: Request): Decision {
    const { inOutage } = this.parts
    const choice = inOutage === undefined ? undefined : checkedChoice(inOutage({ decision, error }, request))
    // A cost that can never pass does not pass in an outage either.
    if (choice === undefined || decision.retryAfterMs === Number.POSITIVE_INFINITY) return decision
    return overruled(decision, choice === 'open')
  }
}

/** What the limiter answers, or the outage that it throws. */
function asked(take: () => Awaitable<Reservation<When>>): Awaitable<Reservation<When>> | StoreError {
  try {
    return take()
  } catch (error) {
    if (error instanceof StoreError) return error
    throw error
  }
}

/** False for promises, denials and shadow denials. */
function isAllowed(answer: Awaitable<Decision>): answer is Decision {
  const decision = answer as Decision | undefined
  return decision?.allowed === true && decision.wouldDeny === undefined
}

function undecidedDenial({ name, limit, policies }: Policy): Decision {
  if (policies !== undefined) return combined(policies.map(undecidedDenial))
  return { allowed: false, limit, remaining: 0, retryAfterMs: UNDECIDED_RETRY_MS, resetAfterMs: 0, policy: name, source: 'outage' }
}

/** Each part of `allOf` is overruled with the whole, so that headers describe all of them. */
function overruled(decision: Decision, allowed: boolean): Decision {
  const { limit, remaining, resetAfterMs, policy, source, parts } = decision
  const retryAfterMs = allowed ? 0 : Math.max(decision.retryAfterMs, UNDECIDED_RETRY_MS)
  const whole: Decision = { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source }
  return parts === undefined ? whole : { ...whole, parts: parts.map((part) => overruled(part, allowed)) }
}

/** A remote limiter passes on what it received, which may be the answer of a proxy or of another version: it is checked before it is used. */
function isDecision(answer: unknown): answer is Decision {
  if (typeof answer !== 'object' || answer === null) return false
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, spent = 0, parts } = answer as Partial<Decision>
  if (typeof allowed !== 'boolean' || typeof policy !== 'string') return false
  if (!isAmount(limit) || !isAmount(remaining) || !isAmount(retryAfterMs) || !isAmount(resetAfterMs) || !isAmount(spent)) return false
  return parts === undefined || (Array.isArray(parts) && parts.every(isDecision))
}

function isAmount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0
}
