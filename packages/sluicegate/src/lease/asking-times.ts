import type { Grant, TokenRequest } from './grant.js'
import type { GrantAnswer } from './known-key.js'
import { LEASE_HORIZONS } from './leasing.js'
import { LONGEST_PAUSE_HORIZONS, RefillPause, Scarcity } from './refill-pause.js'

/** When to ask the backend about a key again, and how long its last answer is believed until then. */
export class AskingTimes {
  /** The longest time for which a denial is believed. */
  readonly longestUs: number
  private readonly leaseUs: number
  private readonly pause: RefillPause
  private readonly scarcity: Scarcity
  /** Nothing is requested before: the backend was short of tokens for this cost. Until `scarceKnownUs` that is believed. */
  private scarceUs = 0
  private scarceKnownUs = 0
  private scarceCost = 0

  constructor(horizonUs: number, random: () => number) {
    this.leaseUs = LEASE_HORIZONS * horizonUs
    this.longestUs = LONGEST_PAUSE_HORIZONS * horizonUs
    this.pause = new RefillPause(horizonUs)
    this.scarcity = new Scarcity(this.leaseUs, random)
  }

  /** Whether tokens may be requested ahead of need. */
  isFree(nowUs: number): boolean {
    return nowUs >= this.pause.untilUs && nowUs >= this.scarceUs
  }

  /** How long the last answer is believed: other processes may return tokens, and lift bans. */
  knownForUs(last: GrantAnswer | undefined): number {
    if (last === undefined || !last.isShort) return Number.POSITIVE_INFINITY
    const { flowsBack, blockedUs } = last.grant
    // Of a rate the answer says when any cost would pass.
    if (flowsBack && blockedUs === 0) return last.atUs + this.longestUs
    return Math.max(this.pause.untilUs, Math.min(this.scarceUs, this.scarceKnownUs))
  }

  /** The end of what is believed about scarcity; `Infinity` without any. */
  scarceUntilUs(nowUs: number): number {
    return nowUs < this.scarceKnownUs ? this.scarceKnownUs : Number.POSITIVE_INFINITY
  }

  /** Until when a cost is not asked for; 0 when nothing keeps from it. */
  scarceFor(cost: number, nowUs: number): number {
    return cost >= this.scarceCost && nowUs < this.scarceKnownUs ? this.scarceUs : 0
  }

  /** A cost that was requested by itself passed. */
  passed(): void {
    this.scarcity.pauseUs(1, 1)
    this.scarceUs = 0
  }

  /** A cost that was requested by itself was denied. */
  refused(cost: number, untilUs: number, newUs: number, nowUs: number): void {
    this.beScarce(cost, untilUs, newUs, nowUs, this.pauseAfter(0, 1, nowUs))
    this.scarceKnownUs = nowUs + this.longestUs
  }

  /** A request was answered. */
  answered({ grant, atUs, isShort }: GrantAnswer, { want, least, sentUs }: TokenRequest, granted: number): void {
    const pauseUs = this.pauseAfter(isShort ? granted : want, want, sentUs)
    if (isShort || (!grant.flowsBack && grant.remaining === 0)) this.pause.begin(grant, atUs)
    else this.pause.end()
    if (isShort) {
      this.beScarce(least, atUs + grant.untilFreeUs, atUs + grant.untilNewUs, atUs, pauseUs)
      this.scarceKnownUs = isOfRate(grant) ? atUs + this.longestUs : Math.max(this.pause.untilUs, atUs + pauseUs)
    } else this.scarceUs = 0
  }

  /** The backend could not be reached: no refill ahead of need for a while. */
  failed(nowUs: number): void {
    this.pause.failed(nowUs)
  }

  /** Tokens came back: it may be asked at once. */
  reopen(): void {
    this.scarceUs = 0
    this.pause.end()
  }

  /** Who looks before its time whether a denial still holds has not asked in vain. */
  private pauseAfter(granted: number, want: number, askedUs: number): number {
    return granted === 0 && askedUs < this.scarceUs ? 0 : this.scarcity.pauseUs(granted, want)
  }

  /**
   * A pause after a short answer for `cost`. It begins when tokens are free: else the process that asks at that very moment would get them all.
   * It ends before the backend is full, so that no token is lost. After a long time processes are apart anyway.
   */
  private beScarce(cost: number, freeUs: number, newUs: number, nowUs: number, pauseUs: number): void {
    const isFar = freeUs - nowUs > this.leaseUs
    this.scarceUs = freeUs + (isFar ? 0 : Math.min(pauseUs, Math.max(0, (newUs - freeUs) / 2)))
    this.scarceCost = cost
  }
}

function isOfRate({ flowsBack, blockedUs }: Grant): boolean {
  return flowsBack && blockedUs === 0
}
