import type { Decision } from '../decision/decision.js'
import { DenialTimes } from './denial-cache.js'
import type { Grant } from './grant.js'

/** The backend's last answer. */
export interface GrantAnswer {
  readonly grant: Grant
  readonly atUs: number
  /** It granted less than was wanted. */
  readonly isShort: boolean
}

/** What the backend said of a key: what is left there, when the key is full, and when costs that it denied would pass. */
export class KnownKey {
  last: GrantAnswer | undefined
  /** What was left there at its last answer. */
  remaining = 0
  /** When the key is full there. */
  newAtUs = 0
  /** Whether what is left there grows by itself. Of windows and logs it is all that is left for all processes. */
  private flowsBack = true
  /** Tokens that costs took which passed by themselves since its last answer. */
  private passedTokens = 0
  private readonly denialTimes: DenialTimes

  /** @param longestUs the longest time for which a denial is believed. */
  constructor(longestUs: number) {
    this.denialTimes = new DenialTimes(longestUs)
  }

  /** Tokens left there for all processes, `Infinity` where they flow back. */
  get rest(): number {
    return this.flowsBack ? Number.POSITIVE_INFINITY : this.remaining
  }

  learn(answer: GrantAnswer, least: number): void {
    const { grant, atUs, isShort } = answer
    const { denialTimes, last } = this
    this.remaining = grant.remaining
    this.newAtUs = atUs + grant.untilNewUs
    this.flowsBack = grant.flowsBack
    const coversAllCosts = grant.flowsBack && isShort
    const isUnblocked = last !== undefined && last.grant.blockedUs > 0 && grant.blockedUs === 0
    if (coversAllCosts || isUnblocked) denialTimes.clear()
    else if (grant.blockedUs === 0) denialTimes.passed(grant.tokens + grant.remaining)
    this.last = answer
    this.passedTokens = 0
    if (isShort && !grant.flowsBack) denialTimes.add(least, answeredUntil(answer, least), atUs)
  }

  /** A cost that was requested by itself passed: of a rate all others have to wait for it, too. */
  passed(cost: number, remaining: number): void {
    this.remaining = remaining
    this.passedTokens += cost
    this.denialTimes.clear()
  }

  /** It denied a cost that was requested by itself. */
  denied(cost: number, untilUs: number, nowUs: number): void {
    this.denialTimes.add(cost, untilUs, nowUs)
  }

  /** It gave tokens back: what it had denied may pass. */
  refunded({ remaining, resetAfterMs }: Pick<Decision, 'remaining' | 'resetAfterMs'>, nowUs: number): void {
    this.remaining = remaining
    this.newAtUs = nowUs + resetAfterMs * 1000
  }

  /** What it denied may pass. */
  forgetDenials(): void {
    this.denialTimes.clear()
    this.last = undefined
  }

  /**
   * When `tokens` would pass there, or a time before that; 0 when nothing is known.
   *
   * @param isBelieved whether its last answer is.
   */
  until(tokens: number, nowUs: number, isBelieved: boolean): number {
    const { last } = this
    const answeredUs = isBelieved && last?.isShort ? answeredUntil(last, last.grant.flowsBack ? tokens + this.passedTokens : tokens) : 0
    return Math.max(answeredUs, this.denialTimes.until(tokens, nowUs))
  }

  /** Milliseconds until the key is full, as far as is known. */
  resetAfterMs(nowUs: number): number {
    return nowUs < this.newAtUs ? Math.ceil((this.newAtUs - nowUs) / 1000) : 0
  }

  /** Whether it denies nothing, as far as is known. */
  isOpen(nowUs: number): boolean {
    const { last } = this
    if (this.denialTimes.until(Number.POSITIVE_INFINITY, nowUs) > nowUs) return false
    return last === undefined || !last.isShort || last.atUs + Math.max(last.grant.blockedUs, last.grant.untilFreeUs) <= nowUs
  }
}

function answeredUntil({ grant, atUs }: GrantAnswer, tokens: number): number {
  const freeUs = grant.untilFreeFor(tokens)
  if (freeUs === undefined) return grant.blockedUs > 0 ? atUs + grant.blockedUs : 0
  return atUs + Math.max(grant.blockedUs, freeUs)
}
