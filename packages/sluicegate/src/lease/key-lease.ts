import type { Decision } from '../decision/decision.js'
import { CachedDenial, DenialTimes } from './denial-cache.js'
import { type Drawn, type Grant, type Granted, type RefillOutcome, spentWithinUs, type TokenRequest } from './grant.js'
import { HeldTokens, RETRY_ROUNDING_US } from './held-tokens.js'
import { LeaseDemand } from './lease-demand.js'
import { LEASE_HORIZONS } from './leasing.js'
import { LONGEST_PAUSE_HORIZONS, RefillPause, Scarcity } from './refill-pause.js'

/** The backend's last answer. */
interface Answer {
  readonly grant: Grant
  readonly atUs: number
  /** It granted less than was wanted. */
  readonly isShort: boolean
}

/**
 * What one process holds and knows of one key. It has no clock: callers pass the time. What each change keeps:
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
  /** The whole budget. */
  private readonly mostTokens: number
  private readonly horizonUs: number
  /** The longest time for which a denial is believed. */
  private readonly longestUs: number
  private readonly held: HeldTokens
  private last: Answer | undefined
  /** What the backend had left at its last answer, and when the key is full there. */
  private remainingThere = 0
  private newAtUs = 0
  /** Whether what is left there grows by itself. Of windows and logs it is all that is left for all processes. */
  private flowsBack = true
  private readonly pause: RefillPause
  private readonly scarcity: Scarcity
  /** Nothing is requested before: the backend was short of tokens. Until `scarceKnownUs` that is believed. */
  private scarceUs = 0
  private scarceKnownUs = 0
  private scarceCost = 0
  /** Tokens requested up to this time are not spent; denials of requests up to this time are void. */
  private forgottenUs = Number.NEGATIVE_INFINITY
  private reopenedUs = Number.NEGATIVE_INFINITY
  /** Tokens requested up to this time are not even returned. */
  private drainedUs = Number.NEGATIVE_INFINITY
  private readonly denialTimes: DenialTimes
  /** The cost denied last and until when, as long as no token is spent, arrives or is forgotten; and how long that is believed. */
  private deniedCost = 0
  private believedUs = 0
  private deniedUs = Number.NEGATIVE_INFINITY
  /** The whole denial of the same cost. */
  readonly cachedDenial = new CachedDenial()

  constructor(nowUs: number, horizonUs: number, mostTokens: number, random = Math.random, part = 0) {
    this.mostTokens = mostTokens
    this.demand = new LeaseDemand(nowUs, LEASE_HORIZONS * horizonUs)
    this.held = new HeldTokens((share) => this.demand.wasted(share), part)
    this.scarcity = new Scarcity(LEASE_HORIZONS * horizonUs, random)
    this.horizonUs = horizonUs
    this.pause = new RefillPause(horizonUs)
    this.longestUs = LONGEST_PAUSE_HORIZONS * horizonUs
    this.denialTimes = new DenialTimes(this.longestUs)
  }

  /** Spends `cost` tokens if they are held. @param drawn receives what was spent of each grant. */
  spend(nowUs: number, cost: number, drawn?: Drawn): boolean {
    if (!this.held.spend(nowUs, cost, drawn)) return false
    this.forgetDenied()
    return true
  }

  /** Caches a denial until a field of it changes or more tokens are to be requested. */
  cacheDenial(decision: Decision, cost: number, nowUs: number, deniedUntilUs: number): void {
    if (this.isLow(nowUs)) return
    this.cachedDenial.keep(decision, cost, nowUs, deniedUntilUs, this.newAtUs, Math.min(this.believedUs, this.held.countedUntilUs))
  }

  private forgetDenied(): void {
    this.deniedUs = Number.NEGATIVE_INFINITY
    this.cachedDenial.forget()
  }

  /** When a cost that is not held would pass, as far as is known; undefined when only the backend knows. */
  deniedUntil(nowUs: number, cost: number): number | undefined {
    if (nowUs < Math.min(this.deniedUs, this.believedUs) && cost === this.deniedCost) return this.deniedUs
    const untilUs = this.foreseenUntil(nowUs, cost)
    this.believedUs = Math.min(this.knownForUs, nowUs < this.scarceKnownUs ? this.scarceKnownUs : Number.POSITIVE_INFINITY)
    this.forgetDenied()
    this.deniedCost = cost
    this.deniedUs = untilUs ?? Number.NEGATIVE_INFINITY
    return untilUs
  }

  /** How long the last answer is believed: other processes may return tokens, and lift bans. */
  private get knownForUs(): number {
    const { last, pause } = this
    if (last === undefined || !last.isShort) return Number.POSITIVE_INFINITY
    const { flowsBack, blockedUs } = last.grant
    // Of a rate the answer says when any cost would pass.
    if (flowsBack && blockedUs === 0) return last.atUs + this.longestUs
    return Math.max(pause.untilUs, Math.min(this.scarceUs, this.scarceKnownUs))
  }

  private foreseenUntil(nowUs: number, cost: number): number | undefined {
    const { held } = this
    const last = nowUs < this.knownForUs ? this.last : undefined
    const heldUs = held.heldUntil(cost)
    if (heldUs > nowUs && heldUs < Number.POSITIVE_INFINITY) return heldUs
    const missing = held.left < cost ? cost - held.left : 0
    const withHeldUs = missing > 0 && missing < cost ? this.knownUntil(last, missing, nowUs) : Number.POSITIVE_INFINITY
    // The missing tokens may be free, whatever is known of the whole cost.
    if (withHeldUs === 0) return undefined
    const isInTime = held.untilUs > withHeldUs + RETRY_ROUNDING_US
    const scarceUs = cost >= this.scarceCost && nowUs < this.scarceKnownUs ? this.scarceUs : 0
    const untilUs = Math.max(isInTime ? withHeldUs : this.knownUntil(last, cost, nowUs), scarceUs)
    return untilUs > nowUs ? untilUs : undefined
  }

  /** The backend let a cost pass that was requested by itself. */
  passed(remaining: number): void {
    this.remainingThere = remaining
    this.scarcity.pauseUs(1, 1)
    this.scarceUs = 0
    this.demand.charged(remaining / this.mostTokens)
  }

  /** Caches the backend's denial of a cost that was requested by itself. */
  refuse(cost: number, untilUs: number, newUs: number, nowUs: number): void {
    this.beScarce(cost, untilUs, newUs, nowUs, this.pauseAfter(0, 1, nowUs))
    this.scarceKnownUs = nowUs + this.longestUs
    this.denialTimes.add(cost, untilUs, nowUs)
  }

  /** Whether a refill is due, for the takes to come. */
  isLow(nowUs: number): boolean {
    return this.demand.isLow(this.held.left) && nowUs >= this.pause.untilUs && nowUs >= this.scarceUs
  }

  /** The tokens to request now. */
  want(nowUs: number): TokenRequest {
    return { ...this.demand.wanted(nowUs, this.readyAt(nowUs), this.held.left, this.restThere), sentUs: nowUs }
  }

  /** Whether a refill would be a lease, or is on its way. */
  isLeased(nowUs: number): boolean {
    return this.refill !== undefined || this.demand.isLeased(nowUs, this.held.left, this.restThere)
  }

  private get restThere(): number {
    return this.flowsBack ? Number.POSITIVE_INFINITY : this.remainingThere
  }

  /** Adds the tokens of a grant, and records what the backend said about more. */
  addGrant(grant: Grant, { want, least, sentUs }: TokenRequest, arrivedUs: number): void {
    const { held } = this
    if (sentUs <= this.drainedUs) return
    if (sentUs <= this.forgottenUs) {
      held.add(grant, sentUs, arrivedUs)
      held.end()
      return
    }
    this.forgetDenied()
    const granted = grant.availableNow + grant.availableLater
    this.demand.given(granted, grant.budget ?? grant.remaining / this.mostTokens, arrivedUs)
    if (arrivedUs - sentUs >= spentWithinUs(grant, LEASE_HORIZONS * this.horizonUs)) this.demand.late()
    if (grant.blockedUs > 0) held.end()
    held.add(grant, sentUs, arrivedUs)
    this.remainingThere = grant.remaining
    this.newAtUs = arrivedUs + grant.untilNewUs
    this.flowsBack = grant.flowsBack
    const isShort = granted < want && grant.hasMore !== true && sentUs > this.reopenedUs
    const pauseUs = this.pauseAfter(isShort ? granted : want, want, sentUs)
    if (isShort || (!grant.flowsBack && grant.remaining === 0)) this.pause.begin(grant, arrivedUs)
    else this.pause.end()
    if (isShort) {
      this.beScarce(least, arrivedUs + grant.untilFreeUs, arrivedUs + grant.untilNewUs, arrivedUs, pauseUs)
      const isOfRate = grant.flowsBack && grant.blockedUs === 0
      this.scarceKnownUs = isOfRate ? arrivedUs + this.longestUs : Math.max(this.pause.untilUs, arrivedUs + pauseUs)
    } else this.scarceUs = 0
    this.learn({ grant, atUs: arrivedUs, isShort }, least)
  }

  /** Who looks before its time whether a denial still holds has not asked in vain. */
  private pauseAfter(granted: number, want: number, askedUs: number): number {
    return granted === 0 && askedUs < this.scarceUs ? 0 : this.scarcity.pauseUs(granted, want)
  }

  private learn(answer: Answer, least: number): void {
    const { grant, atUs, isShort } = answer
    const { denialTimes, last } = this
    const coversAllCosts = grant.flowsBack && isShort
    const isUnblocked = last !== undefined && last.grant.blockedUs > 0 && grant.blockedUs === 0
    if (coversAllCosts || isUnblocked) denialTimes.clear()
    else if (grant.blockedUs === 0) denialTimes.passed(grant.availableNow + grant.availableLater + grant.remaining)
    this.last = answer
    if (isShort && !grant.flowsBack) denialTimes.add(least, this.answeredUntil(answer, least), atUs)
  }

  /** The backend could not be reached: no refill ahead of need for a while. */
  failed(nowUs: number): void {
    this.cachedDenial.forget()
    this.pause.failed(nowUs)
  }

  /**
   * A pause after a short answer for `cost`. It begins when tokens are free: else the process that asks at that very moment would get them all.
   * It ends before the backend is full, so that no token is lost. After a long time processes are apart anyway.
   */
  private beScarce(cost: number, freeUs: number, newUs: number, nowUs: number, pauseUs: number): void {
    const isFar = freeUs - nowUs > LEASE_HORIZONS * this.horizonUs
    this.scarceUs = freeUs + (isFar ? 0 : Math.min(pauseUs, Math.max(0, (newUs - freeUs) / 2)))
    this.scarceCost = cost
  }

  /** Tokens left, held and at the backend, as far as is known. */
  remainingAt(nowUs: number): number {
    return this.remainingThere + this.readyAt(nowUs)
  }

  /** Milliseconds until the key is full, as far as is known. */
  resetAfterMs(nowUs: number): number {
    return nowUs < this.newAtUs ? Math.ceil((this.newAtUs - nowUs) / 1000) : 0
  }

  /** Whether it may be forgotten: nothing is held or known. */
  isEmpty(nowUs: number): boolean {
    if (this.refill !== undefined || this.demand.isWaitedFor || this.readyAt(nowUs) > 0 || this.held.left > 0) return false
    const { last } = this
    if (this.denialTimes.until(Number.POSITIVE_INFINITY, nowUs) > nowUs) return false
    return last === undefined || !last.isShort || last.atUs + Math.max(last.grant.blockedUs, last.grant.untilFreeUs) <= nowUs
  }

  /** Tokens were refunded at the backend: cached denials are void, leased tokens stay, and what is left there is known. */
  refunded({ remaining, resetAfterMs }: Pick<Decision, 'remaining' | 'resetAfterMs'>, nowUs: number): void {
    this.reopen(nowUs)
    this.remainingThere = remaining
    this.newAtUs = nowUs + resetAfterMs * 1000
  }

  /** Tokens of this process were returned: a cached denial may be void. */
  reopen(nowUs: number): void {
    this.reopenedUs = nowUs
    this.scarceUs = 0
    this.forgetDenied()
    this.denialTimes.clear()
    this.last = undefined
    this.pause.end()
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

  /** When `tokens` would pass at the backend, or a time before that; 0 when nothing is known. */
  private knownUntil(last: Answer | undefined, tokens: number, nowUs: number): number {
    return Math.max(last?.isShort ? this.answeredUntil(last, tokens) : 0, this.denialTimes.until(tokens, nowUs))
  }

  private answeredUntil({ grant, atUs }: Answer, tokens: number): number {
    const freeUs = grant.untilFreeFor(tokens)
    if (freeUs === undefined) return grant.blockedUs > 0 ? atUs + grant.blockedUs : 0
    return atUs + Math.max(grant.blockedUs, freeUs)
  }
}
