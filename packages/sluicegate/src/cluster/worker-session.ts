import { isPermit } from '../decision/permit.js'
import { PolicyError, StoreError } from '../errors.js'
import { keysUnder } from '../key.js'
import type { Key, Limiter } from '../limiter.js'
import { MemoryAllOfLimiter } from '../memory/memory-all-of.js'
import type { Policy } from '../policy/policy.js'
import type { BookingService } from '../waiting/reserving.js'
import { GrantedLeases, Holdings } from './holdings.js'
import { flowsBack, leasedFrom, type MemoryLease } from './memory-lease.js'
import { numbersOfDecision, numbersOfLease } from './message.js'

/** The limiter in this process's memory: the true state. */
export type PrimaryLimiter = Limiter & BookingService

/** Requests about overrides; each returns the content of its answer. */
export interface OverridesSession {
  overrides(version: unknown, unused: unknown): readonly unknown[]
  setOverride(key: unknown, policy: unknown): readonly unknown[]
  deleteOverride(key: unknown, unused: unknown): readonly unknown[]
}

/** What is served now. */
export interface ServedTerms {
  readonly limiter: PrimaryLimiter
  readonly policy: Policy
  /** 0 where nothing is leased. */
  readonly leaseUs: number
  readonly horizonUs: number
  readonly overrides?: OverridesSession
  nowUs(): number
  update(policy: unknown): void
}

const NOTHING: MemoryLease = { runs: [], bookings: [], untilFreeUs: 0, blockedUs: 0, remaining: 0, untilNewUs: 0 }

/** Answers the requests of one worker. It answers any input, and changes no more than the verb says. */
export class WorkerSession {
  private readonly terms: ServedTerms
  private readonly hello: () => void
  private readonly holdings: Holdings
  private readonly granted = new GrantedLeases()

  /** @param hello sends the worker the terms. */
  constructor(terms: ServedTerms, hello: () => void) {
    this.terms = terms
    this.hello = hello
    this.holdings = new Holdings(() => terms.policy)
  }

  /** The answers to requests; invalid requests have none. */
  answers(requests: readonly unknown[]): unknown[][] {
    const answers: unknown[][] = []
    for (const request of requests) {
      if (!Array.isArray(request) || !Number.isSafeInteger(request[0])) continue
      const [id, verb, ...args] = request
      answers.push([id, ...this.answered(id, verb, args)])
    }
    return answers
  }

  /** The worker is gone: its permits and future reservations are returned. */
  leave(): void {
    const { limiter } = this.terms
    for (const { booking, permit } of this.holdings.latestFirst()) {
      // A closed limiter holds nothing.
      unlessRefused(() => {
        if (permit !== undefined) permit.release()
        else if (booking !== undefined && booking.atUs > this.terms.nowUs()) limiter.giveBack(booking, booking.cost)
      })
    }
  }

  private answered(id: number, verb: unknown, args: readonly unknown[]): readonly unknown[] {
    try {
      return this.numbersOf(id, verb, args)
    } catch (error) {
      return error instanceof PolicyError || error instanceof StoreError ? [error.code, error.message] : ['OUTAGE', String(error)]
    }
  }

  private numbersOf(id: number, verb: unknown, args: readonly unknown[]): readonly unknown[] {
    const { limiter } = this.terms
    const key = args[0] as Key
    const amount = args[1] as number
    switch (verb) {
      case 'take':
        return this.taken(id, key, amount)
      case 'peek':
      case 'refund':
      case 'penalize':
      case 'block':
        return numbersOfDecision(limiter[verb](key, amount))
      case 'charge':
        return this.charged(key, args[1])
      case 'reset':
        return numbersOfDecision(limiter.reset(key))
      case 'lease':
        return numbersOfLease(this.leased(id, key, amount, args.slice(2)))
      case 'giveBack':
        return this.granted.has(amount) ? this.grantedBack(amount, args[2], args[3]) : this.bookedBack(key, amount, args[2])
      case 'reserve':
        return this.booked(id, key, amount, args[2])
      case 'redeem':
        return this.redeemed(key, amount)
      case 'release':
        return [this.released(amount) ? 1 : 0]
      case 'heartbeat':
        return [this.renewed(amount) ? 1 : 0]
      case 'overrides':
      case 'setOverride':
      case 'deleteOverride':
        return this.overridesOf()[verb](args[0], args[1])
      case 'update':
        this.terms.update(args[0])
        return []
      case 'hello':
        this.hello()
        return []
      default:
        throw new PolicyError('OPTION_UNKNOWN', 'verb', verb, 'is none that this version knows')
    }
  }

  private overridesOf(): OverridesSession {
    const { overrides } = this.terms
    if (overrides !== undefined) return overrides
    throw new PolicyError('OPTION_INVALID', 'overrides', undefined, 'are not kept by serveLimiter: give it overrides: true as well')
  }

  private taken(id: number, key: Key, cost: number): readonly number[] {
    const decision = this.terms.limiter.take(key, cost)
    if (decision.allowed && isPermit(decision)) this.holdings.addPermit(id, decision, this.terms.nowUs())
    return numbersOfDecision(decision)
  }

  /** Charges what was used elsewhere of each policy. */
  private charged(key: Key, tokens: unknown): readonly number[] {
    const { limiter, policy } = this.terms
    if (!Array.isArray(tokens)) throw new PolicyError('COST_INVALID', 'tokens', tokens, 'must be an array')
    for (const each of tokens) checkWhole('tokens', each, 0)
    const keys = keysUnder(policy, key)
    for (const [i, part] of partsOf(limiter).entries()) if (tokens[i] > 0) part.penalize(keys[i] as string, tokens[i])
    return numbersOfDecision(limiter.peek(key))
  }

  private leased(id: number, key: Key, want: number, [horizonUs, least, part]: readonly unknown[]): MemoryLease {
    const { limiter, policy, leaseUs, horizonUs: longestUs } = this.terms
    if (leaseUs === 0 || typeof key !== 'string') return NOTHING
    checkWhole('want', want, 1)
    checkWhole('horizonUs', horizonUs, 0)
    checkWhole('least', least, 1)
    checkWhole('part', part, 0)
    const own = (policy.policies ?? [policy])[part]
    const service = partsOf(limiter)[part]
    if (own === undefined || service === undefined) return NOTHING
    const nowUs = this.terms.nowUs()
    const lease = leasedFrom(service, own, {
      key,
      want: Math.max(want, least),
      least,
      horizonUs: Math.min(horizonUs, longestUs),
      leaseUs,
      nowUs,
    })
    this.granted.add(id, { service, policy, bookings: lease.bookings, flowsBack: flowsBack(own) }, nowUs)
    return lease
  }

  private grantedBack(leaseId: number, tokens: unknown, cost: unknown = tokens): readonly number[] {
    checkWhole('tokens', tokens, 1)
    checkWhole('cost', cost, tokens)
    this.granted.giveBack(leaseId, tokens, cost, this.terms.policy)
    return []
  }

  private booked(id: number, key: Key, cost: number, mostUs: unknown): readonly number[] {
    checkWhole('mostUs', mostUs, 0)
    const booking = this.terms.limiter.book(key, cost, mostUs / 1000)
    const { allowed, atUs, bookedUs } = booking
    if (allowed) this.holdings.addBooking(id, booking, bookedUs)
    const decision = allowed ? this.terms.limiter.peek(key) : booking.decision
    return [allowed ? 1 : 0, allowed ? atUs - bookedUs : 0, ...numbersOfDecision(decision)]
  }

  /** The time of a reservation has come. */
  private redeemed(key: Key, id: number): readonly number[] {
    const { limiter } = this.terms
    const booking = this.holdings.booking(id)
    if (booking === undefined) return numbersOfDecision(limiter.peek(key))
    this.holdings.drop(id)
    const decision = limiter.redeem(booking)
    if (!decision.allowed) limiter.giveBack(booking, booking.cost)
    return numbersOfDecision(decision)
  }

  private bookedBack(key: Key, id: number, tokens: unknown): readonly number[] {
    const { limiter } = this.terms
    const booking = this.holdings.booking(id)
    if (booking === undefined) return numbersOfDecision(limiter.peek(key))
    checkWhole('tokens', tokens, 1)
    const permit = this.holdings.permit(id)
    this.holdings.drop(id)
    if (permit !== undefined && tokens < booking.cost) this.holdings.addPermit(id, permit, this.terms.nowUs())
    return numbersOfDecision(limiter.giveBack(booking, Math.min(tokens, booking.cost)))
  }

  private released(id: number): boolean {
    const permit = this.holdings.permit(id)
    this.holdings.drop(id)
    return permit?.release() ?? false
  }

  private renewed(id: number): boolean {
    const isRenewed = this.holdings.permit(id)?.heartbeat() ?? false
    if (isRenewed) this.holdings.renew(id, this.terms.nowUs())
    else this.holdings.drop(id)
    return isRenewed
  }
}

/** Of `allOf` the limiter of each policy. */
export function partsOf(limiter: PrimaryLimiter): readonly PrimaryLimiter[] {
  return limiter instanceof MemoryAllOfLimiter ? limiter.parts : [limiter]
}

function checkWhole(option: string, value: unknown, least: number): asserts value is number {
  if (Number.isSafeInteger(value) && (value as number) >= least) return
  throw new PolicyError('OPTION_INVALID', option, value, `must be an integer from ${least} up`)
}

function unlessRefused(change: () => void): void {
  try {
    change()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
  }
}
