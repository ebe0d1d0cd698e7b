import type { RateLimitReading } from '../headers/rate-limit-reading.js'
import { ToldBudget } from './announced-budget.js'
import { LearnedRate } from './learned-rate.js'

/** How many requests may be under way to someone who has not answered yet: one more with each answer, and as many again each second. */
const FIRST_WINDOW = 10
const WINDOW_MS = 1_000
/** A 503 without `Retry-After` may be about anything: it counts once they are so large a share of the answers, of which the last count most. */
const RATE_SHARE = 0.2
const NEWEST_SHARE = 1 / 48
/** Unless they are most of them, they slow nobody down below one request a second. */
const MOST_SHARE = 0.5
const LEAST_PER_MS = 1 / 1_000
/** A timer that comes late is made up for within so much: otherwise each would cost a part of the rate. */
const SLACK_MS = 25

/** What a {@link Pace} goes by. */
export interface PaceSettings {
  /** After a refusal without `Retry-After`, doubled with each that follows on it. */
  readonly backoffMs: number
  readonly maxBackoffMs: number
  /** Added to pauses: up to this share of them. */
  readonly jitter: number
  readonly recoverMs: number
  readonly freeShare: number
  readonly random: () => number
}

/** One response, as a pace looks at it. */
export interface Answered {
  readonly status: number
  readonly reading: RateLimitReading
  readonly sent: Sent
  readonly nowMs: number
}

/** A request under way, as a pace remembers it. */
export interface Sent {
  readonly atMs: number
  /** It looks whether a pause is over. */
  readonly isProbe: boolean
  /** It was one of those that may go at once. */
  readonly isFree: boolean
  readonly slotMs: number
  readonly slotBeforeMs: number
}

/**
 * When the next request may go to one host: after the pause that it asked for, spaced by what it told to remain and by the rate that it was
 * found to accept. After a pause a single request looks whether it is over.
 *
 * Pure: times are readings in milliseconds.
 */
export class Pace {
  /** Requests that have not been answered yet. */
  inFlight = 0
  /** The end of the pause that is, or was last, kept. */
  pausedUntilMs = Number.NEGATIVE_INFINITY
  private readonly settings: PaceSettings
  private learned: LearnedRate
  private told: ToldBudget
  private slotMs = Number.NEGATIVE_INFINITY
  private firstSentMs: number | undefined
  /** Answers of someone who has never refused; undefined once it has. */
  private welcome: number | undefined = 0
  private refusedMs = Number.NEGATIVE_INFINITY
  private strikes = 0
  private isProbing = false
  private probes = 0
  /** The share of them that said so, as far as it is known. */
  private unavailable = 0
  private hasAccepted = false

  constructor(settings: PaceSettings) {
    this.settings = settings
    this.learned = new LearnedRate(settings.recoverMs)
    this.told = new ToldBudget(settings.freeShare)
  }

  get remaining(): number | undefined {
    return this.told.remaining
  }

  /** Until when the other side wants nothing to be sent: it asked for a pause, or nothing is left. */
  get blockedUntilMs(): number {
    return Math.max(this.pausedUntilMs, this.told.emptyUntilMs)
  }

  /** The rate that was found out, in requests a second. */
  perSecond(nowMs: number): number {
    return this.learned.perMs(nowMs) * 1000
  }

  /** From when on the next may be sent; `Infinity`: once the one that looks whether a pause is over has been answered. */
  readyMs(nowMs: number): number {
    if (this.isProbing && this.probes > 0) return Number.POSITIVE_INFINITY
    const { slotMs, inFlight } = this
    const evenlyMs = Math.max(this.told.readyMs(slotMs, inFlight, nowMs), slotMs + 1 / this.learned.perMs(nowMs))
    return Math.max(this.blockedUntilMs, evenlyMs, this.welcomeMs(nowMs))
  }

  /** Before this nobody goes, as far as it is sure: what is found out, and what those under way may have used up, can turn out better. */
  earliestMs(nowMs: number): number {
    return this.inFlight > 0 ? this.blockedUntilMs : Math.max(this.blockedUntilMs, this.told.readyMs(this.slotMs, 0, nowMs))
  }

  /** How many may go at this moment. */
  room(nowMs: number): number {
    if (this.isProbing || this.intervalMs(nowMs) > 0) return 1
    return Math.max(1, Math.min(this.told.room, this.welcomeRoom(nowMs)))
  }

  sent(nowMs: number): Sent {
    this.firstSentMs ??= nowMs
    const slotBeforeMs = this.slotMs
    this.slotMs = Math.max(slotBeforeMs + this.intervalMs(nowMs), nowMs - SLACK_MS)
    this.learned.sent(nowMs)
    this.inFlight++
    if (this.isProbing) this.probes++
    return { atMs: nowMs, isProbe: this.isProbing, isFree: this.told.sent(), slotMs: this.slotMs, slotBeforeMs }
  }

  /** It was not sent after all: its turn is somebody else's, if nobody has gone since. Has {@link failed} to be told as well. */
  unsent({ isFree, slotMs, slotBeforeMs }: Sent): void {
    if (isFree) this.told.unsent()
    if (this.slotMs === slotMs) this.slotMs = slotBeforeMs
  }

  /** Nothing came back. */
  failed(sent: Sent): void {
    this.over(sent)
  }

  /** As if nothing had been heard yet; what is under way still is. */
  forget(): void {
    const { recoverMs, freeShare } = this.settings
    this.learned = new LearnedRate(recoverMs)
    this.told = new ToldBudget(freeShare)
    this.pausedUntilMs = Number.NEGATIVE_INFINITY
    this.slotMs = Number.NEGATIVE_INFINITY
    this.firstSentMs = undefined
    this.welcome = 0
    this.refusedMs = Number.NEGATIVE_INFINITY
    this.strikes = 0
    this.isProbing = false
    this.unavailable = 0
    this.hasAccepted = false
  }

  /** Nobody wanted anything for so long. */
  rested(idleMs: number): void {
    this.learned.skip(idleMs)
  }

  /** What came back. True when it was a refusal that says something new. */
  answered({ status, reading, sent, nowMs }: Answered): boolean {
    const sentMs = sent.atMs
    this.over(sent)
    this.told.hear(reading, this.inFlight, nowMs)
    const { retryAfterMs } = reading
    const isUnclear = status === 503 && retryAfterMs === undefined
    this.unavailable += ((isUnclear ? 1 : 0) - this.unavailable) * NEWEST_SHARE
    if (isUnclear && !this.isAboutRate(sent, nowMs)) return false
    if (isRefusal(status)) return this.refused(retryAfterMs, sentMs, nowMs)
    this.hasAccepted = true
    if (this.welcome !== undefined) this.welcome++
    this.learned.accept(nowMs)
    // One that was under way when another was refused does not tell whether it is over.
    if (sentMs > this.refusedMs) {
      this.strikes = 0
      this.isProbing = false
    }
    // Some refuse with other statuses.
    if (status >= 400 && retryAfterMs !== undefined) this.pause(retryAfterMs, nowMs)
    return false
  }

  /** Scattered failures of a host that has no limit would bring the rate down further and further. */
  private isAboutRate({ isProbe }: Sent, nowMs: number): boolean {
    if (isProbe || !this.hasAccepted || this.unavailable >= MOST_SHARE) return true
    return this.unavailable >= RATE_SHARE && this.learned.perMs(nowMs) > LEAST_PER_MS
  }

  private refused(retryAfterMs: number | undefined, sentMs: number, nowMs: number): boolean {
    this.refusedMs = nowMs
    const wasUnlimited = this.learned.perMs(nowMs) === Number.POSITIVE_INFINITY
    const found = this.learned.refuse(sentMs, nowMs)
    this.welcome = undefined
    if (retryAfterMs !== undefined) this.pause(retryAfterMs, nowMs)
    if (found === 'known') return false
    if (found === 'stuck') this.strikes++
    const { backoffMs, maxBackoffMs } = this.settings
    // Whoever says when to come back is believed once.
    const doublings = this.strikes - (retryAfterMs === undefined ? 1 : 2)
    if (doublings >= 0) this.pause(Math.min(maxBackoffMs, backoffMs * 2 ** doublings), nowMs)
    else if (retryAfterMs === undefined && wasUnlimited) this.pause(backoffMs, nowMs)
    return true
  }

  private pause(ms: number, nowMs: number): void {
    const { jitter, random } = this.settings
    this.pausedUntilMs = Math.max(this.pausedUntilMs, nowMs + ms * (1 + jitter * random()))
    this.isProbing = true
  }

  private over({ isProbe }: Sent): void {
    this.inFlight--
    if (isProbe) this.probes--
  }

  private intervalMs(nowMs: number): number {
    return Math.max(this.told.intervalMs(this.inFlight, nowMs), 1 / this.learned.perMs(nowMs))
  }

  private welcomeMs(nowMs: number): number {
    const { welcome, firstSentMs } = this
    if (welcome === undefined || firstSentMs === undefined) return nowMs
    const missing = this.inFlight + 1 - FIRST_WINDOW - welcome
    return missing <= 0 ? nowMs : firstSentMs + Math.ceil(missing / FIRST_WINDOW) * WINDOW_MS
  }

  private welcomeRoom(nowMs: number): number {
    const { welcome, firstSentMs = nowMs } = this
    if (welcome === undefined) return Number.POSITIVE_INFINITY
    return FIRST_WINDOW * (1 + Math.floor((nowMs - firstSentMs) / WINDOW_MS)) + welcome - this.inFlight
  }
}

/** Whether a status says that there were too many requests. */
export function isRefusal(status: number): boolean {
  return status === 429 || status === 503
}
