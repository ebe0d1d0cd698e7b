import type { Decision } from '../decision.js'
import type { Asked, Asking } from './asked.js'
import { AskingPause, LONGEST_UNASKED_HORIZONS } from './asking-pause.js'
import type { Grant } from './grant.js'
import { HeldTokens, TOLD_US, type Unspent } from './held-tokens.js'
import { KnownDenials } from './known-denials.js'
import { LeaseDemand } from './lease-demand.js'
import { CLOCK_DRIFT } from './leasing.js'
import { ToldDenial } from './told-denial.js'

/** The authority's last answer. */
interface Answer {
  readonly grant: Grant
  readonly atUs: number
  /** It was less than was wanted. */
  readonly isShort: boolean
}

/**
 * What one process holds of one key, and knows of it: pure, told the time by whoever asks. What happens to the key leaves of that:
 *
 * |              | tokens here | on their way | ended already | denials, on their way too | what is left there |
 * | ------------ | ----------- | ------------ | ------------- | ------------------------- | ------------------ |
 * | reopen       | kept        | kept         | kept          | forgotten                 | kept               |
 * | refunded     | kept        | kept         | kept          | forgotten                 | told               |
 * | forget       | end         | end          | kept          | forgotten                 | forgotten          |
 * | drain        | dropped     | dropped      | dropped       | forgotten                 | forgotten          |
 * | end          | end         | kept         | kept          | kept                      | kept               |
 *
 * What ends is void, and to be given back; what is dropped is void and is not.
 */
export class KeyLease {
  /** The lease that is being fetched. */
  asking: Promise<Asking> | undefined
  readonly demand: LeaseDemand
  private readonly horizonUs: number
  private readonly held = new HeldTokens()
  private last: Answer | undefined
  /** What the authority had left when it answered last, and when the key is as good as new there. */
  private remainingThere = 0
  private newAtUs = 0
  /** Whether what is left there grows by itself; of windows and logs it is all that is left for everybody. */
  private flowsBack = true
  private readonly pause: AskingPause
  /** What was asked for until then is not to be spent any more; what was refused, not to be relied on. */
  private forgottenUs = Number.NEGATIVE_INFINITY
  private reopenedUs = Number.NEGATIVE_INFINITY
  /** What was asked for until then is not even to be given back. */
  private drainedUs = Number.NEGATIVE_INFINITY
  private readonly denials: KnownDenials
  /** The cost that was denied last, and until when that stays so: as long as nothing is spent, comes or is forgotten. */
  private deniedCost = 0
  private deniedUs = Number.NEGATIVE_INFINITY
  /** Of the same cost. */
  readonly told = new ToldDenial()

  constructor(nowUs: number, horizonUs: number) {
    this.demand = new LeaseDemand(nowUs, horizonUs)
    this.horizonUs = horizonUs
    this.pause = new AskingPause(horizonUs)
    this.denials = new KnownDenials(LONGEST_UNASKED_HORIZONS * horizonUs)
  }

  /** Spends so many tokens, if they are here. */
  spend(nowUs: number, cost: number): boolean {
    if (!this.held.spend(nowUs, cost)) return false
    this.forgetDenied()
    this.demand.spent(cost)
    return true
  }

  /** Notes a denial that was told, until a word of it changes or more is to be fetched. */
  tell(decision: Decision, cost: number, nowUs: number, deniedUntilUs: number): void {
    // Outside of a pause any take may find that it is time to fetch more.
    if (nowUs >= this.pause.untilUs) return
    this.told.keep(decision, cost, nowUs, deniedUntilUs, this.newAtUs, Math.min(this.pause.untilUs, this.held.countedUntilUs))
  }

  private forgetDenied(): void {
    this.deniedUs = Number.NEGATIVE_INFINITY
    this.told.forget()
  }

  /** When a cost that is not here would pass as far as is known; undefined when it is to be asked for. */
  deniedUntil(nowUs: number, cost: number): number | undefined {
    if (nowUs < this.deniedUs && cost === this.deniedCost) return this.deniedUs
    const untilUs = this.foreseenUntil(nowUs, cost)
    this.forgetDenied()
    this.deniedCost = cost
    this.deniedUs = untilUs ?? Number.NEGATIVE_INFINITY
    return untilUs
  }

  private foreseenUntil(nowUs: number, cost: number): number | undefined {
    const { last, held } = this
    if (last === undefined) return undefined
    const heldUs = held.heldUntil(cost)
    if (heldUs > nowUs && heldUs < Number.POSITIVE_INFINITY) return heldUs
    const missing = held.left < cost ? cost - held.left : 0
    const withHeldUs = missing > 0 && missing < cost ? this.knownUntil(last, missing) : Number.POSITIVE_INFINITY
    // What is missing may be there, whatever is known of the whole cost.
    if (withHeldUs === 0) return undefined
    const isInTime = held.untilUs > withHeldUs + TOLD_US
    const untilUs = isInTime ? withHeldUs : this.knownUntil(last, cost)
    return untilUs > nowUs ? untilUs : undefined
  }

  /** Notes what the authority said of a cost that was asked for apart. */
  refuse(cost: number, untilUs: number, nowUs: number): void {
    this.denials.add(cost, untilUs, nowUs)
  }

  /** Whether it is time to fetch more, for those who will ask soon. */
  isLow(nowUs: number): boolean {
    return nowUs >= this.pause.untilUs && this.demand.isLow(this.held.left)
  }

  /** What to ask for now. */
  want(nowUs: number): Asked {
    const rest = this.flowsBack ? Number.POSITIVE_INFINITY : this.remainingThere
    return { ...this.demand.wanted(nowUs, this.readyAt(nowUs), rest), sentUs: nowUs }
  }

  /** Takes in what was asked for. */
  take(grant: Grant, { want, least, sentUs }: Asked, arrivedUs: number): void {
    const { held } = this
    if (sentUs <= this.drainedUs) return
    if (sentUs <= this.forgottenUs) {
      held.add(grant, sentUs, arrivedUs)
      held.end()
      return
    }
    this.forgetDenied()
    const granted = grant.availableNow + grant.availableLater
    this.demand.given(granted, arrivedUs)
    if (grant.blockedUs > 0) held.end()
    held.add(grant, sentUs, arrivedUs)
    this.remainingThere = grant.remaining
    this.newAtUs = arrivedUs + grant.untilNewUs
    this.flowsBack = grant.flowsBack
    const isShort = granted < want && sentUs > this.reopenedUs
    this.learn({ grant, atUs: arrivedUs, isShort }, least)
    if (isShort || (!grant.flowsBack && grant.remaining === 0)) this.pause.begin(grant, arrivedUs)
    else this.pause.end()
  }

  private learn(answer: Answer, least: number): void {
    const { grant, atUs, isShort } = answer
    const { denials, last } = this
    const saysOfAll = grant.flowsBack && isShort
    const isUnblocked = last !== undefined && last.grant.blockedUs > 0 && grant.blockedUs === 0
    if (saysOfAll || isUnblocked) denials.clear()
    else if (grant.blockedUs === 0) denials.passed(grant.availableNow + grant.availableLater + grant.remaining)
    this.last = answer
    if (isShort && !grant.flowsBack) denials.add(least, this.saidUntil(answer, least), atUs)
  }

  /** The authority could not be asked: nobody is sent ahead of need for a while. */
  failed(nowUs: number): void {
    this.told.forget()
    this.pause.failed(nowUs)
  }

  /** What is left of the key, here and where the lease came from, as far as is known. */
  remainingAt(nowUs: number): number {
    return this.remainingThere + this.readyAt(nowUs)
  }

  /** Milliseconds until the key is as good as new, as far as is known. */
  resetAfterMs(nowUs: number): number {
    return nowUs < this.newAtUs ? Math.ceil((this.newAtUs - nowUs) / 1000) : 0
  }

  /** Whether it may be forgotten: nothing is held, and nothing known of the key. */
  isEmpty(nowUs: number): boolean {
    if (this.asking !== undefined || this.demand.isWaitedFor || this.readyAt(nowUs) > 0 || this.held.left > 0) return false
    const { last } = this
    if (this.denials.until(Number.POSITIVE_INFINITY) > nowUs) return false
    return last === undefined || !last.isShort || last.atUs + Math.max(last.grant.blockedUs, last.grant.untilFreeUs) <= nowUs
  }

  /** The key was given something back: denials are not true any more, what is held is, and what is left of it there was told. */
  refunded({ remaining, resetAfterMs }: Pick<Decision, 'remaining' | 'resetAfterMs'>, nowUs: number): void {
    this.reopen(nowUs)
    this.remainingThere = remaining
    this.newAtUs = nowUs + resetAfterMs * 1000
  }

  /** Something of what this process held was given back: a denial may not be true any more. */
  reopen(nowUs: number): void {
    this.reopenedUs = nowUs
    this.forgetDenied()
    this.denials.clear()
    this.last = undefined
    this.pause.end()
  }

  /** The key was changed by hand: nothing that is held or on its way is to be spent. */
  forget(nowUs: number): void {
    this.refunded({ remaining: 0, resetAfterMs: 0 }, nowUs)
    this.forgottenUs = nowUs
    this.held.end()
  }

  /** The same, and nothing is to be given back: the authority has forgotten what it lent. */
  drain(nowUs: number): void {
    this.forget(nowUs)
    this.drainedUs = nowUs
    this.held.drain()
  }

  end(): void {
    this.forgetDenied()
    this.held.end()
  }

  /** When the first of what can be given back ends; `Infinity` when there is none. */
  get backUs(): number {
    return this.held.backUs
  }

  /** What ended unspent since that was asked last, and can be given back: nobody ever spends it. */
  unspentAt(nowUs: number): readonly Unspent[] {
    this.readyAt(nowUs)
    return this.held.takeUnspent()
  }

  /** Tokens that may be spent at a time. */
  readyAt(nowUs: number): number {
    return this.held.readyAt(nowUs)
  }

  /** When so many tokens would pass at the authority, or a time before that; 0 when nothing is known. */
  private knownUntil(last: Answer, tokens: number): number {
    return Math.max(last.isShort ? this.saidUntil(last, tokens) : 0, this.denials.until(tokens))
  }

  /** A token that is leased ahead of its time begins a little later by this clock, which may be too fast: who comes back finds it ready. */
  private saidUntil({ grant, atUs }: Answer, tokens: number): number {
    const freeUs = grant.untilFreeFor(tokens)
    if (freeUs === undefined) return grant.blockedUs > 0 ? atUs + grant.blockedUs : 0
    return atUs + Math.max(grant.blockedUs, freeUs + Math.ceil(Math.min(freeUs, this.horizonUs) / CLOCK_DRIFT))
  }
}
