import type { Decision } from '../decision.js'
import type { RateLimitReading } from '../headers/rate-limit-reading.js'
import type { Alert } from '../waiting/alarm.js'
import { type Asker, LimiterDoor, release } from './limiter-client.js'
import type { OutboundLimiter } from './outbound-options.js'
import type { Pace, Sent } from './pace.js'
import { LineErrors } from './queue-errors.js'
import { Turn } from './turn.js'
import { WaitingList, type WaitingRequest } from './waiting-list.js'

/** What a line needs of those around it. */
export interface LineDesk {
  readonly concurrency: number
  readonly maxPauseMs: number
  readonly bodyStallMs: number
  nowMs(): number
  wakeAt(line: Line, ms: number): void
  sleepOn(line: Line): void
  /** Calls `fn` in so many milliseconds, unless the returned function was called before. Nobody waits for it. */
  aside(ms: number, fn: () => void): () => void
  /** @param isAgain whether it was sent before. */
  granted(isAgain: boolean): void
  /** What was granted was not sent. */
  withdrawn(isAgain: boolean): void
  /** Returns what a hook says. */
  throttled(line: Line, status: number, retryAfterMs: number | undefined): unknown
  /** Nothing waits and nothing is under way. */
  rested(line: Line): void
}

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
  /** What those who wait are rejected with. */
  readonly errors: LineErrors
  private readonly list = new WaitingList()
  private placesTaken = 0
  private restedMs: number | undefined

  constructor(key: string, pace: Pace, limiter: OutboundLimiter | undefined, desk: LineDesk) {
    this.key = key
    this.pace = pace
    this.door = limiter && new LimiterDoor(limiter, key)
    this.desk = desk
    this.errors = new LineErrors({ key, pace, door: this.door, nowMs: () => desk.nowMs() })
  }

  get size(): number {
    return this.list.size
  }

  get isIdle(): boolean {
    return this.list.size === 0 && this.placesTaken === 0 && this.pace.inFlight === 0
  }

  /** Milliseconds until the next may go, but for what the limiter says; `Infinity` for when another is answered. */
  delayMs(): number {
    const nowMs = this.desk.nowMs()
    return this.placesTaken >= this.desk.concurrency ? Number.POSITIVE_INFINITY : Math.max(0, this.pace.readyMs(nowMs) - nowMs)
  }

  /** Lets a request in, which gets its turn, or is rejected, sooner or later. */
  enter(waiting: WaitingRequest): void {
    this.wake()
    const earliestMs = this.pace.earliestMs(this.desk.nowMs())
    this.list.add(waiting)
    waiting.onEnd = () => this.drop(waiting)
    if (waiting.deadlineMs < earliestMs) waiting.reject(this.errors.tooEarly(waiting))
    this.advance()
    this.rejectHasty()
  }

  /** Counts another request of one that had its turn. */
  charge(): void {
    this.door?.charge()
  }

  /** Counts a request that came here without asking, by a redirect. Returns what a hook says. */
  visited(status: number, reading: RateLimitReading): unknown {
    this.wake()
    const nowMs = this.desk.nowMs()
    const sent = this.pace.sent(nowMs)
    this.placesTaken++
    this.charge()
    const turn = this.turnOf(sent, undefined, false)
    const told = turn.answered(status, reading)
    turn.end()
    return told
  }

  /** Forgets what the other side said and did: whoever waits goes on as to somebody new. */
  forget(): void {
    this.pace.forget()
    this.advance()
  }

  rejectAll(reason: (waiting: WaitingRequest) => unknown): void {
    this.list.rejectAll(reason)
  }

  ring(): void {
    this.advance()
  }

  /** Lets go whoever may. What a clock throws on the way is told to all who wait. */
  advance(): void {
    try {
      this.letGo()
    } catch (error) {
      this.rejectAll(() => error)
    }
  }

  private letGo(): void {
    let { first } = this.list
    for (; first !== undefined; { first } = this.list) {
      const nowMs = this.desk.nowMs()
      if (!this.mayGo(nowMs)) {
        if (first.deadlineMs >= this.pace.earliestMs(nowMs)) break
        first.reject(this.errors.tooEarly(first))
      } else if (this.door !== undefined) {
        this.ask(this.door, nowMs)
        return
      } else this.grant(first, undefined)
    }
    this.door?.stop()
    if (first !== undefined) return
    this.desk.sleepOn(this)
    this.rest()
  }

  /** If not, it sees to being called again. */
  private mayGo(nowMs: number): boolean {
    const { desk, pace } = this
    const readyMs = pace.readyMs(nowMs)
    if (readyMs <= nowMs + RESOLUTION_MS) {
      if (this.placesTaken < desk.concurrency) return true
      // A place comes back when nobody reads a body any more: until then whoever waits for it keeps the process alive.
      if (desk.bodyStallMs !== Number.POSITIVE_INFINITY) desk.wakeAt(this, nowMs + desk.bodyStallMs)
      return false
    }
    // What is only spread, or not known yet, is waited for.
    if (pace.blockedUntilMs - nowMs > desk.maxPauseMs) {
      this.rejectAll((waiting) => this.errors.of(waiting, 'PAUSED', 'it wants to be left alone for longer than maxPauseMs'))
    } else if (readyMs !== Number.POSITIVE_INFINITY) desk.wakeAt(this, readyMs)
    return false
  }

  // What the limiter's door tells.

  nowMs(): number {
    return this.desk.nowMs()
  }

  decided(decision: Decision | undefined): void {
    const { first } = this.list
    if (decision?.allowed === false) this.denied(decision)
    else if (decision !== undefined) {
      if (first !== undefined && this.mayGo(this.desk.nowMs())) this.grant(first, decision)
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
      this.rejectAll((waiting) => this.errors.of(waiting, 'DENIED', `never let through by the limiter (${policy})`, retryAfterMs))
      return
    }
    this.rejectHasty()
    const { surelyMs = Number.NEGATIVE_INFINITY } = this.door ?? {}
    this.list.rejectBefore(surelyMs, (waiting) => this.errors.tooEarly(waiting))
  }

  /** Those that do not wait, unless an answer is on its way to them. */
  private rejectHasty(): void {
    if (this.door !== undefined && this.door.soon > 0) return
    this.list.rejectHasty((waiting) => this.errors.tooLate(waiting))
  }

  private ask(door: LimiterDoor, nowMs: number): void {
    const { desk, pace, list } = this
    if (door.notBeforeMs > nowMs) {
      desk.wakeAt(this, door.notBeforeMs)
      return
    }
    const most = Math.min(list.size, desk.concurrency - this.placesTaken, pace.room(nowMs))
    door.ask(most, list.patienceMs(nowMs), this)
  }

  private grant(waiting: WaitingRequest, decision: Decision | undefined): void {
    this.placesTaken++
    const sent = this.pace.sent(this.desk.nowMs())
    this.desk.granted(waiting.isAgain)
    waiting.resolve(this.turnOf(sent, decision, waiting.isAgain))
  }

  private turnOf(sent: Sent, decision: Decision | undefined, isAgain: boolean): Turn {
    const unkept = decision && this.door?.kept(decision, this.desk.aside)
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
        this.desk.withdrawn(isAgain)
        if (decision !== undefined) this.door?.giveBack(decision)
      },
    })
  }

  private answered(sent: Sent, status: number, reading: RateLimitReading): unknown {
    const nowMs = this.desk.nowMs()
    const beforeMs = this.pace.blockedUntilMs
    const isNews = this.pace.answered({ status, reading, sent, nowMs })
    const untilMs = this.pace.blockedUntilMs
    if (untilMs > beforeMs) this.list.rejectBefore(untilMs, (waiting) => this.errors.tooEarly(waiting))
    this.advance()
    return isNews ? this.desk.throttled(this, status, reading.retryAfterMs) : undefined
  }

  private drop(waiting: WaitingRequest): void {
    this.list.remove(waiting)
    if (this.list.size === 0) this.advance()
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
