import type { Decision } from '../decision/decision.js'
import type { RateLimitReading } from '../headers/read-rate-limit.js'
import type { OpenOptions } from '../holds/hold.js'
import type { Alert } from '../waiting/alarm.js'
import { LimiterClient, type TokenListener } from './limiter-client.js'
import { QueueErrors } from './outbound-error.js'
import type { OutboundLimiter } from './outbound-options.js'
import type { Pace, Sent } from './pace.js'
import { Turn, WaitingList, type WaitingRequest } from './waiting-list.js'

/** What a queue needs of the {@link KeyQueues} it belongs to. */
export interface QueueServices {
  readonly concurrency: number
  readonly maxPauseMs: number
  readonly bodyTimeoutMs: number
  readonly metered: OpenOptions | undefined
  nowMs(): number
  wakeAt(queue: KeyQueue, ms: number): void
  cancelWake(queue: KeyQueue): void
  /** Calls `fn` after `ms` milliseconds, unless the returned function cancels it. Does not keep the process alive. */
  background(ms: number, fn: () => void): () => void
  /** @param isAgain whether the request is a retry. */
  granted(isAgain: boolean): void
  /** A granted request was not sent. */
  withdrawn(isAgain: boolean): void
  /** Returns what the hook returns. */
  throttled(queue: KeyQueue, status: number, retryAfterMs: number | undefined): unknown
  /** The queue is empty and nothing is under way. */
  becameIdle(queue: KeyQueue): void
}

/** Timers have a resolution of whole microseconds. */
const RESOLUTION_MS = 0.001

/**
 * The requests of one key. The first is sent when `concurrency`, the pace of the server, and the limiter allow it. The limiter is asked
 * last, for whichever request is first when it answers: so priority counts to the end, and a request that is aborted leaves its token to
 * the others. A token that cannot be used at once is given back.
 */
export class KeyQueue implements Alert, TokenListener {
  dueUs = Number.POSITIVE_INFINITY
  order = 0
  place = -1
  readonly key: string
  readonly pace: Pace
  private readonly services: QueueServices
  private readonly client: LimiterClient | undefined
  /** The errors of rejected requests. */
  readonly errors: QueueErrors
  private readonly list = new WaitingList()
  private placesTaken = 0
  private restedMs: number | undefined

  constructor(key: string, pace: Pace, limiter: OutboundLimiter | undefined, services: QueueServices) {
    this.key = key
    this.pace = pace
    this.client = limiter && new LimiterClient(limiter, key, services.metered)
    this.services = services
    this.errors = new QueueErrors({ key, pace, client: this.client, nowMs: () => services.nowMs() })
  }

  get size(): number {
    return this.list.size
  }

  get isIdle(): boolean {
    return this.list.size === 0 && this.placesTaken === 0 && this.pace.inFlight === 0
  }

  /** Milliseconds until the next request may be sent, apart from the limiter; `Infinity` if that depends on an answer. */
  delayMs(): number {
    const nowMs = this.services.nowMs()
    return this.placesTaken >= this.services.concurrency ? Number.POSITIVE_INFINITY : Math.max(0, this.pace.readyMs(nowMs) - nowMs)
  }

  /** Adds a request, which gets its turn or is rejected. */
  enter(waiting: WaitingRequest): void {
    this.wake()
    const earliestMs = this.pace.earliestMs(this.services.nowMs())
    this.list.add(waiting)
    waiting.onEnd = () => this.drop(waiting)
    if (waiting.deadlineMs < earliestMs) waiting.reject(this.errors.tooEarly(waiting))
    this.advance()
    this.rejectImmediate()
  }

  /** Charges the limiter for one more request, such as a redirect. */
  charge(): void {
    this.client?.charge()
  }

  /** Counts a request that reached this key by a redirect, without a turn. Returns what the hook returns. */
  arrivedByRedirect(status: number, reading: RateLimitReading): unknown {
    this.wake()
    const nowMs = this.services.nowMs()
    const sent = this.pace.sent(nowMs)
    this.placesTaken++
    this.charge()
    const turn = this.turnOf(sent, undefined, false)
    const hooked = turn.answered(status, reading)
    turn.end()
    return hooked
  }

  /** Forgets what the server announced and how it responded: waiting requests go on as to an unknown host. */
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

  /** Sends all requests that may be sent. If the clock throws, all waiting requests are rejected with its error. */
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
      const nowMs = this.services.nowMs()
      if (!this.mayGo(nowMs)) {
        if (first.deadlineMs >= this.pace.earliestMs(nowMs)) break
        first.reject(this.errors.tooEarly(first))
      } else if (this.client !== undefined) {
        this.ask(this.client, nowMs)
        return
      } else this.grant(first, undefined)
    }
    this.client?.stop()
    if (first !== undefined) return
    this.services.cancelWake(this)
    this.rest()
  }

  /** If false, a timer or an answer will call again. */
  private mayGo(nowMs: number): boolean {
    const { services, pace } = this
    const readyMs = pace.readyMs(nowMs)
    if (readyMs <= nowMs + RESOLUTION_MS) {
      if (this.placesTaken < services.concurrency) return true
      // A place is freed when a body stalls: until then this timer keeps the process alive for the waiting requests.
      if (services.bodyTimeoutMs !== Number.POSITIVE_INFINITY) services.wakeAt(this, nowMs + services.bodyTimeoutMs)
      return false
    }
    // Only a pause rejects: spacing, and what is not known yet, is waited for.
    if (pace.blockedUntilMs - nowMs > services.maxPauseMs) {
      this.rejectAll((waiting) => this.errors.of(waiting, 'PAUSED', 'the server asked for a pause longer than maxPause'))
    } else if (readyMs !== Number.POSITIVE_INFINITY) services.wakeAt(this, readyMs)
    return false
  }

  // The answers of the limiter.

  nowMs(): number {
    return this.services.nowMs()
  }

  decided(decision: Decision | undefined): void {
    const { first } = this.list
    if (decision?.allowed === false) this.denied(decision)
    else if (decision !== undefined) {
      if (first !== undefined && this.mayGo(this.services.nowMs())) this.grant(first, decision)
      else this.client?.giveBack(decision)
    }
    this.advance()
    this.rejectImmediate()
  }

  failed(error: unknown): void {
    this.rejectAll(() => error)
    this.advance()
  }

  /** A denial does not reject a request that can wait: each request has its own time. */
  private denied({ retryAfterMs, policy }: Decision): void {
    if (retryAfterMs === Number.POSITIVE_INFINITY) {
      this.rejectAll((waiting) => this.errors.of(waiting, 'DENIED', `its limiter never allows this key (${policy})`, retryAfterMs))
      return
    }
    this.rejectImmediate()
    const { earliestTokenMs = Number.NEGATIVE_INFINITY } = this.client ?? {}
    this.list.rejectBefore(earliestTokenMs, (waiting) => this.errors.tooEarly(waiting))
  }

  /** Rejects requests that do not wait, unless an answer for them is outstanding. */
  private rejectImmediate(): void {
    if (this.client !== undefined && this.client.pending > 0) return
    this.list.rejectImmediate((waiting) => this.errors.tooLate(waiting))
  }

  private ask(client: LimiterClient, nowMs: number): void {
    const { services, pace, list } = this
    if (client.notBeforeMs > nowMs) {
      services.wakeAt(this, client.notBeforeMs)
      return
    }
    const most = Math.min(list.size, services.concurrency - this.placesTaken, pace.room(nowMs))
    client.ask(most, list.patienceMs(nowMs), this)
  }

  private grant(waiting: WaitingRequest, decision: Decision | undefined): void {
    this.placesTaken++
    const sent = this.pace.sent(this.services.nowMs())
    this.services.granted(waiting.isAgain)
    waiting.resolve(this.turnOf(sent, decision, waiting.isAgain))
  }

  private turnOf(sent: Sent, decision: Decision | undefined, isAgain: boolean): Turn {
    const unkept = decision && this.client?.kept(decision, this.services.background)
    return new Turn(decision, {
      answered: (status, reading) => this.answered(sent, status, reading),
      failed: () => {
        this.pace.failed(sent)
        this.advance()
      },
      left: (cost) => {
        this.placesTaken--
        unkept?.()
        if (decision !== undefined) this.client?.ended(decision, cost, () => this.advance())
        this.advance()
      },
      giveBack: () => {
        this.pace.unsent(sent)
        this.services.withdrawn(isAgain)
        if (decision !== undefined) this.client?.giveBack(decision)
      },
    })
  }

  private answered(sent: Sent, status: number, reading: RateLimitReading): unknown {
    const nowMs = this.services.nowMs()
    const beforeMs = this.pace.blockedUntilMs
    const isNews = this.pace.answered({ status, reading, sent, nowMs })
    const untilMs = this.pace.blockedUntilMs
    if (untilMs > beforeMs) this.list.rejectBefore(untilMs, (waiting) => this.errors.tooEarly(waiting))
    this.advance()
    return isNews ? this.services.throttled(this, status, reading.retryAfterMs) : undefined
  }

  private drop(waiting: WaitingRequest): void {
    this.list.remove(waiting)
    if (this.list.size === 0) this.advance()
  }

  private wake(): void {
    if (this.restedMs === undefined) return
    this.pace.skipIdle(this.services.nowMs() - this.restedMs)
    this.restedMs = undefined
  }

  private rest(): void {
    if (!this.isIdle || this.restedMs !== undefined) return
    this.restedMs = this.services.nowMs()
    this.services.becameIdle(this)
  }
}
