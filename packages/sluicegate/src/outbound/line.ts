import type { Decision } from '../decision.js'
import type { RateLimitReading } from '../headers/rate-limit-reading.js'
import type { Alert } from '../waiting/alarm.js'
import { DueHeap } from '../waiting/due-heap.js'
import { LimiterDoor, release } from './limiter-door.js'
import { OutboundError, type OutboundErrorCode } from './outbound-error.js'
import type { OutboundLimiter } from './outbound-options.js'
import type { Pace } from './pace.js'
import { Turn } from './turn.js'
import type { WaitingRequest } from './waiting-request.js'

/** Timers go by whole microseconds. */
const RESOLUTION_MS = 0.001

/** What a line needs of those around it. */
export interface LineDesk {
  readonly concurrency: number
  readonly maxPauseMs: number
  nowMs(): number
  wakeAt(line: Line, ms: number): void
  sleepOn(line: Line): void
  granted(): void
  throttled(line: Line, status: number, retryAfterMs: number | undefined): void
  /** Nothing waits and nothing is under way. */
  rested(line: Line): void
}

/**
 * The requests of one key. The first of them goes when there is a place, when the other side's pace lets it, and when the limiter has a token,
 * which is asked for last and for whoever is first by then: so priority counts to the end, and who gives up while others wait leaves the token
 * to them. A token that cannot be used at once goes back.
 */
export class Line implements Alert {
  dueUs = Number.POSITIVE_INFINITY
  order = 0
  place = -1
  readonly key: string
  readonly pace: Pace
  private readonly desk: LineDesk
  private readonly door: LimiterDoor | undefined
  private readonly first = new DueHeap<WaitingRequest>()
  private readonly all = new Set<WaitingRequest>()
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
    waiting.onEnd = () => this.drop(waiting)
    if (waiting.deadlineMs < this.pace.pausedUntilMs)
      waiting.reject(this.errorFor(waiting, 'WAIT_TOO_LONG', 'its turn would come too late'))
    this.advance()
  }

  /** Counts a request that came here without asking, by a redirect. */
  visited(status: number, reading: RateLimitReading): void {
    this.wake()
    const nowMs = this.desk.nowMs()
    this.pace.sent(nowMs)
    this.placesTaken++
    this.door?.charge()
    const turn = this.turnAt(nowMs, undefined)
    turn.answered(status, reading)
    turn.end()
  }

  rejectAll(reason: (waiting: WaitingRequest) => unknown): void {
    for (const waiting of [...this.all]) waiting.reject(reason(waiting))
  }

  errorFor(waiting: WaitingRequest, code: OutboundErrorCode, message: string, retryAfterMs = this.knownDelayMs()): OutboundError {
    return new OutboundError(code, message, { key: this.key, host: waiting.request.url.host, retryAfterMs })
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
    if (readyMs === Number.POSITIVE_INFINITY) return false
    if (readyMs - nowMs > desk.maxPauseMs) {
      this.rejectAll((waiting) => this.errorFor(waiting, 'PAUSED', 'it wants to be left alone for longer than maxPauseMs'))
      return false
    }
    desk.wakeAt(this, readyMs)
    return false
  }

  private decided(door: LimiterDoor, decision: Decision | undefined): void {
    const { first } = this.first
    if (decision?.allowed === false) {
      const { retryAfterMs } = decision
      this.rejectAll((waiting) => this.errorFor(waiting, 'DENIED', `denied by the limiter (${decision.policy})`, retryAfterMs))
    } else if (decision !== undefined) {
      if (first !== undefined && this.mayGo()) this.grant(first, decision)
      else door.giveBack(decision)
    }
    this.advance()
  }

  private ask(door: LimiterDoor): void {
    door.ask(
      (decision) => this.decided(door, decision),
      (error) => {
        this.rejectAll(() => error)
        this.advance()
      },
    )
  }

  private grant(waiting: WaitingRequest, decision: Decision | undefined): void {
    const nowMs = this.desk.nowMs()
    this.placesTaken++
    this.pace.sent(nowMs)
    this.desk.granted()
    waiting.resolve(this.turnAt(nowMs, decision))
  }

  private turnAt(sentMs: number, decision: Decision | undefined): Turn {
    const keeper = {
      answered: (fromMs: number, status: number, reading: RateLimitReading) => this.answered(fromMs, status, reading),
      failed: () => {
        this.pace.failed()
        this.advance()
      },
      left: () => {
        this.placesTaken--
        if (decision !== undefined) release(decision)
        this.advance()
      },
      giveBack: () => decision && this.door?.giveBack(decision),
    }
    return new Turn(keeper, sentMs)
  }

  private answered(sentMs: number, status: number, reading: RateLimitReading): void {
    const nowMs = this.desk.nowMs()
    const beforeMs = this.pace.pausedUntilMs
    const isNews = this.pace.answered({ status, reading, sentMs, nowMs })
    const untilMs = this.pace.pausedUntilMs
    if (untilMs > beforeMs) {
      for (const waiting of [...this.all]) {
        if (waiting.deadlineMs < untilMs) waiting.reject(this.errorFor(waiting, 'WAIT_TOO_LONG', 'its turn would come too late'))
      }
    }
    this.advance()
    if (isNews) this.desk.throttled(this, status, reading.retryAfterMs)
  }

  /** The same where it also depends on others under way. */
  private knownDelayMs(): number {
    const nowMs = this.desk.nowMs()
    const readyMs = this.pace.readyMs(nowMs)
    return Math.max(0, Math.ceil((readyMs === Number.POSITIVE_INFINITY ? this.pace.pausedUntilMs : readyMs) - nowMs))
  }

  private drop(waiting: WaitingRequest): void {
    this.all.delete(waiting)
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
