import { isPermit } from '../decision/permit.js'
import { PolicyError, StoreError } from '../errors.js'
import { keysUnder } from '../key.js'
import type { Key } from '../limiter.js'
import { checkInteger } from '../options/option-checks.js'
import { isRate, policiesOf } from '../policy/policy.js'
import { type BookedAhead, Holdings } from './holdings.js'
import { leasedFrom, type MemoryLease } from './memory-lease.js'
import { holdIn, numbersOfDecision, numbersOfHold, numbersOfLease, operationIn, type ReceivedOperation, unplanned } from './message.js'
import type { OwnedPolicy } from './owned-policy.js'

/** Requests that are no operation; each returns the content of its answer. */
export type OtherRequests = Readonly<Record<string, (first: unknown, second: unknown) => readonly unknown[]>>

const NOTHING: MemoryLease = { tokens: 0, endUs: 0, untilFreeUs: 0, blockedUs: 0, remaining: 0, untilNewUs: 0 }

/**
 * Carries out the operations of one worker, and remembers what was granted to it. It answers any input, and changes no more than the verb says.
 */
export class OwnerSession {
  private readonly owned: OwnedPolicy
  private readonly others: OtherRequests
  private readonly holdings: Holdings

  constructor(owned: OwnedPolicy, others: OtherRequests = {}) {
    this.owned = owned
    this.others = others
    this.holdings = new Holdings(() => owned.policy)
  }

  /** The answers to requests; invalid requests have none. */
  answers(requests: readonly unknown[]): unknown[][] {
    const answers: unknown[][] = []
    for (const request of requests) {
      if (!Array.isArray(request) || !Number.isSafeInteger(request[0])) continue
      answers.push([request[0], ...this.answered(request)])
    }
    return answers
  }

  /** What waits of the worker have booked for later times. */
  ahead(nowUs: number): readonly BookedAhead[] {
    return this.holdings.ahead(nowUs)
  }

  /** The worker is gone: its permits and future reservations are returned. */
  leave(): void {
    const { limiter } = this.owned
    for (const { booking, permit } of this.holdings.takeLatestFirst()) {
      // A closed limiter holds nothing.
      unlessRefused(() => {
        if (permit !== undefined) permit.release()
        else if (booking?.allowed && booking.atUs > this.owned.nowUs()) limiter.giveBack(booking, booking.cost)
      })
    }
  }

  private answered(request: readonly unknown[]): readonly unknown[] {
    try {
      const [plain, plans] = unplanned(request)
      const operation = operationIn(plain)
      if (operation !== undefined) return this.owned.under(plans, () => this.done(request[0] as number, operation))
      const [, verb, first, second] = request
      const other = Object.hasOwn(this.others, String(verb)) ? this.others[String(verb)] : undefined
      if (other !== undefined) return other(first, second)
      throw new PolicyError('OPTION_UNKNOWN', 'verb', verb, 'is none that this version knows, or that is served here')
    } catch (error) {
      return error instanceof PolicyError || error instanceof StoreError ? [error.code, error.message] : ['OUTAGE', String(error)]
    }
  }

  private done(id: number, operation: ReceivedOperation): readonly unknown[] {
    const { limiter } = this.owned
    const { verb } = operation
    const key = operation.key as Key
    this.owned.holds.settle(key)
    switch (verb) {
      case 'take':
        return this.taken(id, key, operation.cost as number)
      case 'peek':
        return numbersOfDecision(limiter.peek(key, operation.cost as number))
      case 'refund':
      case 'penalize':
        return numbersOfDecision(limiter[verb](key, operation.tokens as number))
      case 'charge':
        return this.charged(key, operation.tokens)
      case 'block':
        checkInteger('us', operation.us, 0)
        return numbersOfDecision(limiter.block(key, operation.us / 1000))
      case 'reset':
        return numbersOfDecision(limiter.reset(key))
      case 'reserve':
        return this.reserved(id, key, operation)
      case 'redeem':
        return this.redeemed(key, operation.charge)
      case 'giveBack':
        return this.givenBack(key, operation)
      case 'release':
        return [this.released(operation.id) ? 1 : 0]
      case 'heartbeat':
        return [this.renewed(operation.id) ? 1 : 0]
      case 'hold':
        return numbersOfHold(this.owned.holds.step(holdIn(key, operation)))
      case 'lease':
        return numbersOfLease(this.leased(id, key, operation))
    }
  }

  private taken(id: number, key: Key, cost: number): readonly number[] {
    const decision = this.owned.limiter.take(key, cost)
    if (decision.allowed && isPermit(decision)) this.holdings.addPermit(id, decision, this.owned.nowUs())
    return numbersOfDecision(decision)
  }

  /** Charges what was used elsewhere of each policy. */
  private charged(key: Key, tokens: unknown): readonly number[] {
    const { limiter, parts, policy } = this.owned
    if (!Array.isArray(tokens)) throw new PolicyError('COST_INVALID', 'tokens', tokens, 'must be an array')
    for (const each of tokens) checkInteger('tokens', each, 0)
    const keys = keysUnder(policy, key)
    for (const [i, part] of parts.entries()) {
      const own = keys[i] as string
      if (tokens[i] > 0) this.owned.placeOf(part, own).penalize(own, tokens[i])
    }
    return numbersOfDecision(limiter.peek(key))
  }

  private leased(id: number, key: Key, { want, least, part }: ReceivedOperation): MemoryLease {
    const { parts, policy, leaseUs } = this.owned
    if (leaseUs === 0 || typeof key !== 'string') return NOTHING
    checkInteger('want', want, 1)
    checkInteger('least', least, 1)
    checkInteger('part', part, 0)
    const own = policiesOf(policy)[part]
    if (own === undefined || parts[part] === undefined) return NOTHING
    const service = this.owned.placeOf(parts[part], key)
    const nowUs = this.owned.nowUs()
    const lease = leasedFrom(service, own, { key, want: Math.max(want, least), least }, leaseUs, nowUs)
    if (lease.booking !== undefined) this.holdings.addLease(id, lease.booking, { policy, part, flowsBack: isRate(own) }, nowUs)
    return lease
  }

  private reserved(id: number, key: Key, { cost, maxWaitUs, isWait }: ReceivedOperation): readonly number[] {
    checkInteger('maxWaitUs', maxWaitUs, 0)
    const { limiter } = this.owned
    const booking = limiter.book(key, cost as number, maxWaitUs / 1000)
    const { allowed, atUs, bookedUs } = booking
    if (allowed) this.holdings.addBooking(id, booking, bookedUs, isWait === true)
    const decision = allowed ? limiter.peek(key) : booking.decision
    return [allowed ? 1 : 0, allowed ? atUs - bookedUs : 0, ...numbersOfDecision(decision)]
  }

  /** The time of a reservation has come. */
  private redeemed(key: Key, id: unknown): readonly number[] {
    const { limiter } = this.owned
    const booking = this.holdings.booking(id)
    if (booking === undefined) return numbersOfDecision(limiter.peek(key))
    this.holdings.drop(id)
    // Under the numbers of now it costs more than ever passes.
    if (!booking.allowed) return numbersOfDecision(limiter.peek(key, booking.cost))
    const decision = limiter.redeem(booking)
    if (!decision.allowed) limiter.giveBack(booking, booking.cost)
    return numbersOfDecision(decision)
  }

  private givenBack(key: Key, { charge, tokens, cost = tokens }: ReceivedOperation): readonly number[] {
    const { limiter, policy } = this.owned
    if (this.holdings.isLease(charge)) {
      checkInteger('tokens', tokens, 1)
      checkInteger('cost', cost, tokens)
      const back = this.holdings.takeBack(charge, tokens, cost, policy)
      if (back !== undefined) this.owned.giveBackLease(back.part, back.booking, back.tokens)
      return []
    }
    const booking = this.holdings.booking(charge)
    if (!booking?.allowed) return numbersOfDecision(limiter.peek(key))
    checkInteger('tokens', tokens, 1)
    const permit = this.holdings.permit(charge)
    this.holdings.drop(charge)
    if (permit !== undefined && tokens < booking.cost) this.holdings.addPermit(charge as number, permit, this.owned.nowUs())
    const at = limiter.movedTo?.(booking) ?? { service: limiter, booking }
    return numbersOfDecision(at.service.giveBack(at.booking, Math.min(tokens, booking.cost)))
  }

  private released(id: unknown): boolean {
    const permit = this.holdings.permit(id)
    this.holdings.drop(id)
    return permit?.release() ?? false
  }

  private renewed(id: unknown): boolean {
    const isRenewed = this.holdings.permit(id)?.heartbeat() ?? false
    if (isRenewed) this.holdings.renew(id, this.owned.nowUs())
    else this.holdings.drop(id)
    return isRenewed
  }
}

function unlessRefused(change: () => void): void {
  try {
    change()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
  }
}
