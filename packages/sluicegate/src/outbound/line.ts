import type { Decision } from '../decision.js'
import type { RateLimitReading } from '../headers/rate-limit-reading.js'
import type { Alert } from '../waiting/alarm.js'
import { DueHeap } from '../waiting/due-heap.js'
import { type Asker, LimiterDoor, release } from './limiter-door.js'
import type { LineDesk } from './line-desk.js'
import { OutboundError, type OutboundErrorCode } from './outbound-error.js'
import type { OutboundLimiter } from './outbound-options.js'
import type { Pace, Sent } from './pace.js'
import { Turn } from './turn.js'
import type { WaitingRequest } from './waiting-request.js'

/** Timers go by whole microseconds. */
const RESOLUTION_MS = 0.001

/**
 * The requests of one key. The first of them goes when there is a place, when the other side's pace lets it, and when the limiter has a token,
 * which is asked for last and for whoever is first by then: so priority counts to the end, and who gives up while others wait leaves the token
 * to them. A token that cannot be used at once goes back.
 */
export class Line implements Alert, Asker {
  dueUs = Number.POSITIVE_INFINITY
  order = 0
  place = -1
  readonly key: string
  readonly pace: Pace
  private readonly desk: LineDesk
  private readonly door: LimiterDoor | undefined
  private readonly first = new DueHeap<WaitingRequest>()
  private readonly all = new Set<WaitingRequest>()
  /** Of them those that do not wait. */
  private readonly hasty = new Set<WaitingRequest>()
  private placesTaken = 0
  private restedMs: number | undefined

  constructor(key: string, pace: Pace, limiter: OutboundLimiter | undefined, desk: LineDesk) {
    this.key = key
    this.pace = pace
    this.door = limiter && new LimiterDoor(limiter, key)
    this.desk = desk
  }

  get size(): number {
    return this.all.size
  }

  get isIdle(): boolean {
    return this.all.size === 0 && this.placesTaken === 0 && this.pace.inFlight === 0
  }

  /** Milliseconds until the next may go, but for what the limiter says; `Infinity` for when another is answered. */
  delayMs(): number {
    const nowMs = this.desk.nowMs()
    return this.placesTaken >= this.desk.concurrency ? Number.POSITIVE_INFINITY : Math.max(0, this.pace.readyMs(nowMs) - nowMs)
  }

  /** Lets a request in, which gets its turn, or is rejected, sooner or later. */
  enter(waiting: WaitingRequest): void {
    this.wake()
    this.all.add(waiting)
    this.first.add(waiting)
    if (waiting.isHasty) this.hasty.add(waiting)
    waiting.onEnd = () => this.drop(waiting)
    if (waiting.deadlineMs < this.pace.blockedUntilMs)
      waiting.reject(this.errorFor(waiting, 'WAIT_TOO_LONG', 'its turn would come too late'))
    this.advance()
    this.rejectHasty()
  }

  /** Counts another request of one that had its turn. */
  charge(): void {
    this.door?.charge()
  }

  /** Counts a request that came here without asking, by a redirect. */
  visited(status: number, reading: RateLimitReading): void {
    this.wake()
    const nowMs = this.desk.nowMs()
    const sent = this.pace.sent(nowMs)
    this.placesTaken++
    this.charge()
    const turn = this.turnOf(sent, undefined)
    turn.answered(status, reading)
    turn.end()
  }

  /** Forgets what the other side said and did: whoever waits goes on as to somebody new. */
  forget(): void {
    this.pace.forget()
    this.advance()
  }

  rejectAll(reason: (waiting: WaitingRequest) => unknown): void {
    for (const waiting of [...this.all]) waiting.reject(reason(waiting))
  }

  errorFor(waiting: WaitingRequest, code: OutboundErrorCode, message: string, retryAfterMs = this.knownDelayMs()): OutboundError {
    return new OutboundError(code, message, { key: this.key, host: waiting.request.url.host, retryAfterMs })
  }

  /** For one that has waited as long as it may. */
  tooLate(waiting: WaitingRequest): OutboundError {
    if (this.door?.isOut) return this.errorFor(waiting, 'OUTAGE', 'its limiter cannot reach its store, and nothing was left without it')
    return this.errorFor(waiting, 'WAIT_TOO_LONG', 'its turn did not come in time')
  }

  ring(): void {
    this.advance()
  }

  /** Lets go whoever may. */
  advance(): void {
    let { first } = this.first
    while (first !== undefined && this.mayGo()) {
      if (this.door !== undefined) {
        this.ask(this.door)
        return
      }
      this.grant(first, undefined)
      first = this.first.first
    }
    this.door?.stop()
    if (this.first.first !== undefined) return
    this.desk.sleepOn(this)
    this.rest()
  }

  /** If not, it sees to being called again. */
  private mayGo(): boolean {
    const { desk, pace } = this
    const nowMs = desk.nowMs()
    const readyMs = pace.readyMs(nowMs)
    if (readyMs <= nowMs + RESOLUTION_MS) return this.placesTaken < desk.concurrency
    // What is only spread, or not known yet, is waited for.
    if (pace.blockedUntilMs - nowMs > desk.maxPauseMs) {
      this.rejectAll((waiting) => this.errorFor(waiting, 'PAUSED', 'it wants to be left alone for longer than maxPauseMs'))
    } else if (readyMs !== Number.POSITIVE_INFINITY) desk.wakeAt(this, readyMs)
    return false
  }

  // What the limiter's door tells.

  nowMs(): number {
    return this.desk.nowMs()
  }

  decided(decision: Decision | undefined): void {
    const { first } = this.first
    if (decision?.allowed === false) this.denied(decision)
    else if (decision !== undefined) {
      if (first !== undefined && this.mayGo()) this.grant(first, decision)
      else this.door?.giveBack(decision)
    }
    this.advance()
    this.rejectHasty()
  }

  failed(error: unknown): void {
    this.rejectAll(() => error)
    this.advance()
  }

  /** Not now is no reason to give up: how long to wait is for each to say. */
  private denied({ retryAfterMs, policy }: Decision): void {
    if (retryAfterMs === Number.POSITIVE_INFINITY) {
      this.rejectAll((waiting) => this.errorFor(waiting, 'DENIED', `never let through by the limiter (${policy})`, retryAfterMs))
    } else this.rejectHasty()
  }

  /** Those that do not wait, unless an answer is on its way to them. */
  private rejectHasty(): void {
    if (this.door !== undefined && this.door.soon > 0) return
    for (const waiting of [...this.hasty]) waiting.reject(this.tooLate(waiting))
  }

  private ask(door: LimiterDoor): void {
    const { desk, pace, all } = this
    const nowMs = desk.nowMs()
    if (door.notBeforeMs > nowMs) {
      desk.wakeAt(this, door.notBeforeMs)
      return
    }
    const most = Math.min(all.size, desk.concurrency - this.placesTaken, pace.room(nowMs))
    door.ask(most, this.hasty.size === all.size, this)
  }

  private grant(waiting: WaitingRequest, decision: Decision | undefined): void {
    this.placesTaken++
    const sent = this.pace.sent(this.desk.nowMs())
    this.desk.granted()
    waiting.resolve(this.turnOf(sent, decision))
  }

  private turnOf(sent: Sent, decision: Decision | undefined): Turn {
    const unkept = decision && this.door?.kept(decision, this.desk.after)
    return new Turn({
      answered: (status, reading) => this.answered(sent, status, reading),
      failed: () => {
        this.pace.failed(sent)
        this.advance()
      },
      left: () => {
        this.placesTaken--
        unkept?.()
        if (decision !== undefined) release(decision)
        this.advance()
      },
      giveBack: () => {
        this.pace.unsent(sent)
        this.desk.withdrawn()
        if (decision !== undefined) this.door?.giveBack(decision)
      },
    })
  }

  private answered(sent: Sent, status: number, reading: RateLimitReading): void {
    const nowMs = this.desk.nowMs()
    const beforeMs = this.pace.blockedUntilMs
    const isNews = this.pace.answered({ status, reading, sent, nowMs })
    const untilMs = this.pace.blockedUntilMs
    if (untilMs > beforeMs) {
      for (const waiting of [...this.all]) {
        if (waiting.deadlineMs < untilMs) waiting.reject(this.errorFor(waiting, 'WAIT_TOO_LONG', 'its turn would come too late'))
      }
    }
    this.advance()
    if (isNews) this.desk.throttled(this, status, reading.retryAfterMs)
  }

  /** Milliseconds until the next may go as far as that is known, also where it depends on others under way. */
  knownDelayMs(): number {
    const nowMs = this.desk.nowMs()
    const readyMs = this.pace.readyMs(nowMs)
    const paceMs = readyMs === Number.POSITIVE_INFINITY ? this.pace.blockedUntilMs : readyMs
    return Math.max(0, Math.ceil(Math.max(paceMs, this.door?.expectedMs ?? paceMs) - nowMs))
  }

  private drop(waiting: WaitingRequest): void {
    this.all.delete(waiting)
    this.hasty.delete(waiting)
    this.first.remove(waiting)
    if (this.all.size === 0) this.advance()
  }

  private wake(): void {
    if (this.restedMs === undefined) return
    this.pace.rested(this.desk.nowMs() - this.restedMs)
    this.restedMs = undefined
  }

  private rest(): void {
    if (!this.isIdle || this.restedMs !== undefined) return
    this.restedMs = this.desk.nowMs()
    this.desk.rested(this)
  }
}
