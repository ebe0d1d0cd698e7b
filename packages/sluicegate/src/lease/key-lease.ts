import type { Decision } from '../decision/decision.js'
import { AskingTimes } from './asking-times.js'
import { CachedDenial } from './denial-cache.js'
import { type Grant, type Granted, type RefillOutcome, type Spent, spentWithinUs, type TokenRequest } from './grant.js'
import { HeldTokens, RETRY_ROUNDING_US } from './held-tokens.js'
import { KnownKey } from './known-key.js'
import { LeaseDemand } from './lease-demand.js'
import { LEASE_HORIZONS } from './leasing.js'

/**
 * What one process holds ({@link HeldTokens}), knows ({@link KnownKey}) and wants ({@link LeaseDemand}, {@link AskingTimes}) of one key. It has no
 * clock: callers pass the time. What each change keeps:
 *
 * |              | tokens held | tokens on their way | expired already | cached denials, also on their way | what is left at the backend |
 * | ------------ | ----------- | ------------------- | --------------- | --------------------------------- | --------------------------- |
 * | reopen       | kept        | kept                | kept            | forgotten                         | kept                        |
 * | refunded     | kept        | kept                | kept            | forgotten                         | set                         |
 * | forget       | expire      | expire              | kept            | forgotten                         | forgotten                   |
 * | drain        | dropped     | dropped             | dropped         | forgotten                         | forgotten                   |
 * | end          | expire      | kept                | kept            | kept                              | kept                        |
 *
 * Expired tokens are returned to the backend; dropped ones are not.
 */
export class KeyLease {
  /** The refill on its way. */
  refill: Promise<RefillOutcome> | undefined
  readonly demand: LeaseDemand
  /** The whole denial of the cost denied last. */
  readonly cachedDenial = new CachedDenial()
  /** The whole budget. */
  private readonly mostTokens: number
  private readonly leaseUs: number
  private readonly held: HeldTokens
  private readonly known: KnownKey
  private readonly asking: AskingTimes
  /** Tokens requested up to this time are not spent; denials of requests up to this time are void. */
  private forgottenUs = Number.NEGATIVE_INFINITY
  private reopenedUs = Number.NEGATIVE_INFINITY
  /** Tokens requested up to this time are not even returned. */
  private drainedUs = Number.NEGATIVE_INFINITY
  /** The cost denied last and until when, as long as no token is spent, arrives or is forgotten; and how long that is believed. */
  private deniedCost = 0
  private believedUs = 0
  private deniedUs = Number.NEGATIVE_INFINITY

  /** @param part which policy of `allOf` it is of; else 0. */
  constructor(nowUs: number, horizonUs: number, mostTokens: number, random = Math.random, part = 0) {
    this.mostTokens = mostTokens
    this.leaseUs = LEASE_HORIZONS * horizonUs
    this.demand = new LeaseDemand(nowUs, this.leaseUs)
    this.held = new HeldTokens((share) => this.demand.wasted(share), part)
    this.asking = new AskingTimes(horizonUs, random)
    this.known = new KnownKey(this.asking.longestUs)
  }

  /** Spends `cost` tokens if they are held. @param spent receives what was spent of each grant. */
  spend(nowUs: number, cost: number, spent?: Spent): boolean {
    if (!this.held.spend(nowUs, cost, spent)) return false
    this.forgetDenied()
    return true
  }

  /** Caches a denial until a field of it changes or more tokens are to be requested. */
  cacheDenial(decision: Decision, cost: number, nowUs: number, deniedUntilUs: number): void {
    if (this.isLow(nowUs)) return
    this.cachedDenial.keep(decision, cost, nowUs, deniedUntilUs, this.known.newAtUs, Math.min(this.believedUs, this.held.countedUntilUs))
  }

  private forgetDenied(): void {
    this.deniedUs = Number.NEGATIVE_INFINITY
    this.cachedDenial.forget()
  }

  /** When a cost that is not held would pass, as far as is known; undefined when only the backend knows. */
  deniedUntil(nowUs: number, cost: number): number | undefined {
    if (nowUs < Math.min(this.deniedUs, this.believedUs) && cost === this.deniedCost) return this.deniedUs
    const knownForUs = this.asking.knownForUs(this.known.last)
    const untilUs = this.foreseenUntil(nowUs, cost, nowUs < knownForUs)
    this.believedUs = Math.min(knownForUs, this.asking.scarceUntilUs(nowUs))
    this.forgetDenied()
    this.deniedCost = cost
    this.deniedUs = untilUs ?? Number.NEGATIVE_INFINITY
    return untilUs
  }

  private foreseenUntil(nowUs: number, cost: number, isBelieved: boolean): number | undefined {
    const { held, known, asking } = this
    const missing = held.left < cost ? cost - held.left : 0
    const withHeldUs = missing > 0 && missing < cost ? known.until(missing, nowUs, isBelieved) : Number.POSITIVE_INFINITY
    // The missing tokens may be free, whatever is known of the whole cost.
    if (withHeldUs === 0) return undefined
    const isInTime = held.untilUs > withHeldUs + RETRY_ROUNDING_US
    const untilUs = Math.max(isInTime ? withHeldUs : known.until(cost, nowUs, isBelieved), asking.scarceFor(cost, nowUs))
    return untilUs > nowUs ? untilUs : undefined
  }

  /** The backend let a cost pass that was requested by itself. */
  passed(cost: number, remaining: number): void {
    this.forgetDenied()
    this.known.passed(cost, remaining)
    this.asking.passed()
    this.demand.charged(remaining / this.mostTokens)
  }

  /** Caches the backend's denial of a cost that was requested by itself. */
  refuse(cost: number, untilUs: number, newUs: number, nowUs: number): void {
    this.asking.refused(cost, untilUs, newUs, nowUs)
    this.known.denied(cost, untilUs, nowUs)
  }

  /** Whether a refill is due, for the takes to come. */
  isLow(nowUs: number): boolean {
    return this.demand.isLow(this.held.left) && this.asking.isFree(nowUs)
  }

  /** The tokens to request now. */
  want(nowUs: number): TokenRequest {
    return { ...this.demand.wanted(nowUs, this.readyAt(nowUs), this.known.rest), sentUs: nowUs }
  }

  /** Whether a refill would be a lease, or is on its way. */
  isLeased(nowUs: number): boolean {
    return this.refill !== undefined || this.demand.isLeased(nowUs, this.held.left, this.known.rest)
  }

  /** Adds the tokens of a grant, and records what the backend said about more. */
  addGrant(grant: Grant, request: TokenRequest, arrivedUs: number): void {
    const { held } = this
    const { want, least, sentUs } = request
    if (sentUs <= this.drainedUs) return
    if (sentUs <= this.forgottenUs) {
      held.add(grant, sentUs)
      held.end()
      return
    }
    this.forgetDenied()
    const granted = grant.tokens
    this.demand.given(granted, grant.budget ?? grant.remaining / this.mostTokens, arrivedUs)
    if (arrivedUs - sentUs >= spentWithinUs(grant, this.leaseUs)) this.demand.late()
    if (grant.blockedUs > 0) held.end()
    held.add(grant, sentUs)
    const isShort = granted < want && grant.hasMore !== true && sentUs > this.reopenedUs
    const answer = { grant, atUs: arrivedUs, isShort }
    this.asking.answered(answer, request, granted)
    this.known.learn(answer, least)
  }

  /** The backend could not be reached: no refill ahead of need for a while. */
  failed(nowUs: number): void {
    this.cachedDenial.forget()
    this.asking.failed(nowUs)
  }

  /** Tokens left, held and at the backend, as far as is known. */
  remainingAt(nowUs: number): number {
    return this.known.remaining + this.readyAt(nowUs)
  }

  /** Milliseconds until the key is full, as far as is known. */
  resetAfterMs(nowUs: number): number {
    return this.known.resetAfterMs(nowUs)
  }

  /** Whether it may be forgotten: nothing is held or known. */
  isEmpty(nowUs: number): boolean {
    if (this.refill !== undefined || this.demand.isWaitedFor || this.readyAt(nowUs) > 0) return false
    return this.known.isOpen(nowUs)
  }

  /** Tokens were refunded at the backend: cached denials are void, leased tokens stay, and what is left there is known. */
  refunded(decision: Pick<Decision, 'remaining' | 'resetAfterMs'>, nowUs: number): void {
    this.reopen(nowUs)
    this.known.refunded(decision, nowUs)
  }

  /** Tokens of this process were returned: a cached denial may be void. */
  reopen(nowUs: number): void {
    this.reopenedUs = nowUs
    this.forgetDenied()
    this.known.forgetDenials()
    this.asking.reopen()
  }

  /** A verb changed the key: no token held or on its way may be spent. */
  forget(nowUs: number): void {
    this.refunded({ remaining: 0, resetAfterMs: 0 }, nowUs)
    this.forgottenUs = nowUs
    this.held.end()
  }

  /** The same, and none is returned: the backend has forgotten what it granted. */
  drain(nowUs: number): void {
    this.forget(nowUs)
    this.drainedUs = nowUs
    this.held.drain()
  }

  end(): void {
    this.forgetDenied()
    this.held.end()
  }

  /** When the first returnable tokens expire; `Infinity` when there are none. */
  get backUs(): number {
    return this.held.backUs
  }

  /** Returnable tokens that expired unspent since the last call: no take spends them. */
  unspentAt(nowUs: number): readonly Granted[] {
    this.readyAt(nowUs)
    return this.held.takeUnspent()
  }

  /** Tokens that may be spent at a time. */
  readyAt(nowUs: number): number {
    return this.held.readyAt(nowUs)
  }
}
