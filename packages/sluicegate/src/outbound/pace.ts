import type { RateLimitReading } from '../headers/read-rate-limit.js'
import { AnnouncedBudget } from './announced-budget.js'
import { LearnedRate } from './learned-rate.js'

/**
 * Slow start to an unknown host: requests under way before the first answer; one more with each answer, and this number more each second.
 */
const FIRST_WINDOW = 10
const WINDOW_MS = 1_000
/** A 503 without `Retry-After` may have any cause: it lowers the rate once this share of recent answers are 503. */
const RATE_SHARE = 0.2
const NEWEST_SHARE = 1 / 48
/** Below this share they do not lower the rate below one request per second. */
const MAX_SHARE = 0.5
const LEAST_PER_MS = 1 / 1_000
/** A late timer is compensated within this time: otherwise each would cost a part of the rate. */
const SLACK_MS = 25
/** From a refusal until the rate is what it was. */
const RECOVER_MS = 20_000
/** The share of an announced quota that may be spent at once; the rest is spread over the time until the reset. */
const FREE_SHARE = 0.5

/** The settings of a {@link Pace}. */
export interface PaceSettings {
  /** Pause after a refusal without `Retry-After`, doubled for each consecutive one. */
  readonly backoffMs: number
  readonly maxBackoffMs: number
  /** The share that is added to pauses at random. */
  readonly jitter: number
  /** The longest pause. */
  readonly longestPauseMs: number
  readonly random: () => number
}

/** One response. */
export interface Answered {
  readonly status: number
  readonly reading: RateLimitReading
  readonly sent: Sent
  readonly nowMs: number
}

/** A request under way. */
export interface Sent {
  readonly atMs: number
  /** It tests whether a pause is over. */
  readonly isProbe: boolean
  /** It was sent from the part of the quota that may be spent at once. */
  readonly isFree: boolean
  readonly slotMs: number
  readonly slotBeforeMs: number
}

/**
 * When the next request may be sent to one host: after the pause that it asked for, spaced by the quota that it announced and by the rate
 * that it was found to accept. After a pause a single request tests whether it is over.
 *
 * Pure: times are readings in milliseconds.
 */
export class Pace {
  /** Requests that have not been answered yet. */
  inFlight = 0
  /** The end of the current or last pause. */
  pausedUntilMs = Number.NEGATIVE_INFINITY
  private readonly settings: PaceSettings
  private learned: LearnedRate
  private announced: AnnouncedBudget
  private slotMs = Number.NEGATIVE_INFINITY
  private firstSentMs: number | undefined
  /** Answers of a host that has never refused; undefined once it has. */
  private slowStartAnswers: number | undefined = 0
  private refusedMs = Number.NEGATIVE_INFINITY
  private strikes = 0
  private isProbing = false
  private probes = 0
  /** The share of recent answers that were such a 503. */
  private unavailable = 0
  private hasAccepted = false

  constructor(settings: PaceSettings) {
    this.settings = settings
    this.learned = new LearnedRate(RECOVER_MS)
    this.announced = new AnnouncedBudget(FREE_SHARE, settings.longestPauseMs)
  }

  get remaining(): number | undefined {
    return this.announced.remaining
  }

  /** The end of the pause, or of the time in which the quota is exhausted. */
  get blockedUntilMs(): number {
    return Math.max(this.pausedUntilMs, this.announced.emptyUntilMs)
  }

  /** The learned rate in requests per second. */
  perSecond(nowMs: number): number {
    return this.learned.perMs(nowMs) * 1000
  }

  /** The reading from which on the next request may be sent; `Infinity` while a request tests whether a pause is over. */
  readyMs(nowMs: number): number {
    if (this.isProbing && this.probes > 0) return Number.POSITIVE_INFINITY
    const { slotMs, inFlight } = this
    const evenlyMs = Math.max(this.announced.readyMs(slotMs, inFlight, nowMs), slotMs + 1 / this.learned.perMs(nowMs))
    return Math.max(this.blockedUntilMs, evenlyMs, this.slowStartMs(nowMs))
  }

  /**
   * The reading before which no request can be sent for certain: the learned rate, and what requests under way may have used up, can turn
   * out better.
   */
  earliestMs(nowMs: number): number {
    return this.inFlight > 0 ? this.blockedUntilMs : Math.max(this.blockedUntilMs, this.announced.readyMs(this.slotMs, 0, nowMs))
  }

  /** Requests that may be sent at this moment. */
  room(nowMs: number): number {
    if (this.isProbing || this.intervalMs(nowMs) > 0) return 1
    return Math.max(1, Math.min(this.announced.room, this.slowStartRoom(nowMs)))
  }

  sent(nowMs: number): Sent {
    this.firstSentMs ??= nowMs
    const slotBeforeMs = this.slotMs
    this.slotMs = Math.max(slotBeforeMs + this.intervalMs(nowMs), nowMs - SLACK_MS)
    this.learned.sent(nowMs)
    this.inFlight++
    if (this.isProbing) this.probes++
    return { atMs: nowMs, isProbe: this.isProbing, isFree: this.announced.sent(), slotMs: this.slotMs, slotBeforeMs }
  }

  /** A request was not sent: its slot is free again, unless another one was sent since. {@link failed} has to be called as well. */
  unsent({ isFree, slotMs, slotBeforeMs }: Sent): void {
    if (isFree) this.announced.unsent()
    if (this.slotMs === slotMs) this.slotMs = slotBeforeMs
  }

  /** There was no response. */
  failed(sent: Sent): void {
    this.over(sent)
  }

  /** Resets everything but the requests under way. */
  forget(): void {
    this.learned = new LearnedRate(RECOVER_MS)
    this.announced = new AnnouncedBudget(FREE_SHARE, this.settings.longestPauseMs)
    this.pausedUntilMs = Number.NEGATIVE_INFINITY
    this.slotMs = Number.NEGATIVE_INFINITY
    this.firstSentMs = undefined
    this.slowStartAnswers = 0
    this.refusedMs = Number.NEGATIVE_INFINITY
    this.strikes = 0
    this.isProbing = false
    this.unavailable = 0
    this.hasAccepted = false
  }

  /** The queue was idle. */
  skipIdle(idleMs: number): void {
    this.learned.skip(idleMs)
  }

  /** Records a response. True if it was a refusal that lowered the rate or began a pause. */
  answered({ status, reading, sent, nowMs }: Answered): boolean {
    const sentMs = sent.atMs
    this.over(sent)
    this.announced.read(reading, this.inFlight, nowMs)
    const { retryAfterMs } = reading
    const isUnclear = isUnavailable(status) && retryAfterMs === undefined
    this.unavailable += ((isUnclear ? 1 : 0) - this.unavailable) * NEWEST_SHARE
    if (isUnclear && !this.isAboutRate(sent, nowMs)) return false
    if (isRefusal(status)) return this.refused(retryAfterMs, sentMs, nowMs)
    this.hasAccepted = true
    if (this.slowStartAnswers !== undefined) this.slowStartAnswers++
    this.learned.accept(nowMs)
    // A request that was under way at the time of a refusal does not tell whether the pause is over.
    if (sentMs > this.refusedMs) {
      this.strikes = 0
      this.isProbing = false
    }
    // Some servers refuse with other statuses.
    if (status >= 400 && retryAfterMs !== undefined) this.pause(retryAfterMs, nowMs)
    return false
  }

  /** Scattered failures of a host without a limit would lower the rate further and further. */
  private isAboutRate({ isProbe }: Sent, nowMs: number): boolean {
    if (isProbe || !this.hasAccepted || this.unavailable >= MAX_SHARE) return true
    return this.unavailable >= RATE_SHARE && this.learned.perMs(nowMs) > LEAST_PER_MS
  }

  private refused(retryAfterMs: number | undefined, sentMs: number, nowMs: number): boolean {
    this.refusedMs = nowMs
    const wasUnlimited = this.learned.perMs(nowMs) === Number.POSITIVE_INFINITY
    const found = this.learned.refuse(sentMs, nowMs)
    this.slowStartAnswers = undefined
    if (retryAfterMs !== undefined) this.pause(retryAfterMs, nowMs)
    if (found === 'known') return false
    if (found === 'stuck') this.strikes++
    const { backoffMs, maxBackoffMs } = this.settings
    // The first `Retry-After` is obeyed as it is; consecutive refusals lengthen it.
    const doublings = this.strikes - (retryAfterMs === undefined ? 1 : 2)
    if (doublings >= 0) this.pause(Math.min(maxBackoffMs, backoffMs * 2 ** doublings), nowMs)
    else if (retryAfterMs === undefined && wasUnlimited) this.pause(backoffMs, nowMs)
    return true
  }

  private pause(ms: number, nowMs: number): void {
    const { jitter, random, longestPauseMs } = this.settings
    this.pausedUntilMs = Math.max(this.pausedUntilMs, nowMs + Math.min(ms, longestPauseMs) * (1 + jitter * random()))
    this.isProbing = true
  }

  private over({ isProbe }: Sent): void {
    this.inFlight--
    if (isProbe) this.probes--
  }

  private intervalMs(nowMs: number): number {
    return Math.max(this.announced.intervalMs(this.inFlight, nowMs), 1 / this.learned.perMs(nowMs))
  }

  private slowStartMs(nowMs: number): number {
    const { slowStartAnswers, firstSentMs } = this
    if (slowStartAnswers === undefined || firstSentMs === undefined) return nowMs
    const missing = this.inFlight + 1 - FIRST_WINDOW - slowStartAnswers
    return missing <= 0 ? nowMs : firstSentMs + Math.ceil(missing / FIRST_WINDOW) * WINDOW_MS
  }

  private slowStartRoom(nowMs: number): number {
    const { slowStartAnswers, firstSentMs = nowMs } = this
    if (slowStartAnswers === undefined) return Number.POSITIVE_INFINITY
    return FIRST_WINDOW * (1 + Math.floor((nowMs - firstSentMs) / WINDOW_MS)) + slowStartAnswers - this.inFlight
  }
}

/** Whether a status means too many requests. */
export function isRefusal(status: number): boolean {
  return status === 429 || isUnavailable(status)
}

/** 529 is that of services which are overloaded. */
function isUnavailable(status: number): boolean {
  return status === 503 || status === 529
}
