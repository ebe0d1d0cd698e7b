import { checkKey } from '../arguments.js'
import { isPromise } from '../awaitable.js'
import type { RateLimitReading } from '../headers/rate-limit-reading.js'
import { AbortWatch } from '../waiting/abort-watch.js'
import type { LineDesk } from './key-queue.js'
import { Line } from './key-queue.js'
import { OutboundError, type OutboundErrorCode } from './outbound-error.js'
import type { OutboundSettings } from './outbound-options.js'
import type { SentRequest } from './outbound-request.js'
import type { KeyStats, OutboundStats } from './outbound-stats.js'
import { OwnLimits } from './own-limits.js'
import { Pace } from './pace.js'
import { Pauses, Timers } from './timers.js'
import type { Turn } from './turn.js'
import { heardOut } from './turn.js'
import { WaitingRequest } from './waiting-list.js'

/** Of idle keys so many are looked through for one that is not paused. */
const LOOKED_AT = 16

/** The lines of all keys, on one timer, in bounded memory. */
export class Lines {
  private readonly settings: OutboundSettings
  private readonly limits: OwnLimits
  private readonly timers: Timers
  private readonly pauses: Pauses
  private readonly aborts = new AbortWatch()
  private readonly lines = new Map<string, Line>()
  /** The longest idle first. */
  private readonly idle = new Set<Line>()
  private readonly desk: LineDesk
  private sent = 0
  private retried = 0
  private throttled = 0
  private order = 0
  isClosed = false

  /** @throws {PolicyError} `POLICY_INVALID` */
  constructor(settings: OutboundSettings) {
    this.settings = settings
    const { clock, concurrency, bodyStallMs, maxPauseMs, jitter, maxKeys, given } = settings
    const { policy, policyFor, limiter } = given
    this.limits = new OwnLimits({ policy, policyFor, limiter, maxKeys, clock })
    this.timers = new Timers(clock, (error) => this.rejectAll(() => error))
    this.pauses = new Pauses(this.timers, this.aborts)
    this.desk = {
      concurrency,
      bodyStallMs,
      maxPauseMs: maxPauseMs * (1 + jitter),
      nowMs: () => this.nowMs(),
      wakeAt: (line, ms) => this.timers.wakeAt(line, ms),
      sleepOn: (line) => this.timers.sleepOn(line),
      aside: (ms, fn) => this.aside(ms, fn),
      granted: (isAgain) => this.count(isAgain, 1),
      withdrawn: (isAgain) => this.count(isAgain, -1),
      throttled: (line, status, retryAfterMs) => this.told(line, status, retryAfterMs),
      rested: (line) => this.idle.add(line),
    }
  }

  nowMs(): number {
    return this.settings.clock.nowMs()
  }

  /** The place of a call in the order of calls, which its retries keep. */
  nextOrder(): number {
    return this.order++
  }

  /**
   * Waits for leave to send a request. Rejects with an {@link OutboundError}, with what aborts it, or with what the limiter throws.
   *
   * @param againMs given for one that is sent again: so long it waits at most. It has been in the line before, which is never too full for it.
   */
  turn(key: string, request: SentRequest, order: number, againMs?: number): Promise<Turn> {
    let told: unknown
    let waiting: WaitingRequest | undefined
    const turn = new Promise<Turn>((resolve, reject) => {
      const { signal } = request
      if (signal?.aborted) return reject(signal.reason)
      const { maxWaiting, given } = this.settings
      const maxWaitMs = Math.min(this.settings.maxWaitMs, againMs ?? Number.POSITIVE_INFINITY)
      const line = this.lineOf(key, request)
      const isAgain = againMs !== undefined
      if (!isAgain && line.size >= maxWaiting) {
        return reject(errorOf('QUEUE_FULL', `${maxWaiting} requests are waiting`, key, request, line.errors.knownDelayMs()))
      }
      waiting = new WaitingRequest(request, { key, order, nowMs: this.nowMs(), maxWaitMs, isAgain }, { resolve, reject })
      line.enter(waiting)
      if (waiting.isOver) return
      try {
        this.watch(line, waiting)
        told = given.onWait?.({ key, url: request.url, method: request.method, waiting: line.size, delayMs: line.delayMs() })
      } catch (error) {
        waiting.reject(error)
      }
    })
    return isPromise(told) ? heardOut(told, turn, (error) => waiting?.reject(error)) : turn
  }

  /** Whether the turn after this is known to come too late for somebody who comes now. */
  isTooLate(key: string): boolean {
    const line = this.lines.get(key)
    return line !== undefined && line.pace.blockedUntilMs - this.nowMs() > Math.min(this.settings.maxWaitMs, this.desk.maxPauseMs)
  }

  /** Whether the key has a pace, to which whoever is sent again keeps. */
  isSlowed(key: string): boolean {
    const { perSecond = Number.POSITIVE_INFINITY, pauseMs = 0 } = this.statsOf(key) ?? {}
    return pauseMs > 0 || perSecond !== Number.POSITIVE_INFINITY
  }

  /** A redirect within the key: one more request than had its turn. */
  charge(key: string): void {
    this.lines.get(key)?.charge()
  }

  /** A response that another key gave in place of the one that was asked. Returns what a hook says. */
  visited(key: string, request: SentRequest, status: number, reading: RateLimitReading): unknown {
    try {
      return this.lineOf(key, request).visited(status, reading)
    } catch (error) {
      // No room for what is known of it: the response is there all the same.
      if (!(error instanceof OutboundError)) throw error
      return undefined
    }
  }

  /** Calls `fn` in so many milliseconds, unless the returned function was called before. Nobody waits for it. */
  aside(ms: number, fn: () => void): () => void {
    return this.timers.aside(ms, fn)
  }

  /** Resolves in so many milliseconds. Rejects when the signal of the request aborts, and with `CLOSED`. */
  pause(ms: number, key: string, request: SentRequest): Promise<void> {
    const closed = (): OutboundError => closedError(key, request)
    return this.isClosed ? Promise.reject(closed()) : this.pauses.pause(ms, request.signal, closed)
  }

  stats(): OutboundStats {
    let waiting = 0
    let inFlight = 0
    for (const line of this.lines.values()) {
      waiting += line.size
      inFlight += line.pace.inFlight
    }
    return { keys: this.lines.size, waiting, inFlight, sent: this.sent, retried: this.retried, throttled: this.throttled }
  }

  statsOf(key: string): KeyStats | undefined {
    const line = this.lines.get(key)
    if (line === undefined) return undefined
    const { pace, size } = line
    const nowMs = this.nowMs()
    return {
      waiting: size,
      inFlight: pace.inFlight,
      perSecond: pace.perSecond(nowMs),
      pauseMs: Math.max(0, Math.ceil(pace.blockedUntilMs - nowMs)),
      remaining: pace.remaining,
    }
  }

  forget(key: string): boolean {
    const line = this.lines.get(key)
    line?.forget()
    return line !== undefined
  }

  close(): void {
    this.isClosed = true
    for (const line of this.lines.values()) line.rejectAll(({ request }) => closedError(line.key, request))
    this.pauses.close()
    this.limits.close()
  }

  private watch(line: Line, waiting: WaitingRequest): void {
    const { signal } = waiting.request
    const unwatch = signal && this.aborts.add(signal, () => waiting.reject(signal.reason))
    const late = (): void => waiting.reject(line.errors.tooLate(waiting))
    const leftMs = waiting.deadlineMs - this.nowMs()
    const isTimed = !waiting.isHasty && leftMs !== Number.POSITIVE_INFINITY
    const unset = isTimed ? this.timers.after(Math.max(0, leftMs), late) : undefined
    const { onEnd } = waiting
    waiting.onEnd = () => {
      unwatch?.()
      unset?.()
      onEnd?.()
    }
  }

  /** @throws {OutboundError} `CLOSED`, `KEYS_FULL` @throws {PolicyError} `KEY_INVALID` */
  private lineOf(key: string, request: SentRequest): Line {
    if (this.isClosed) throw closedError(key, request)
    const known = this.lines.get(key)
    if (known !== undefined) {
      this.idle.delete(known)
      return known
    }
    checkKey(key)
    if (this.lines.size >= this.settings.maxKeys && !this.forgetOne()) {
      throw errorOf('KEYS_FULL', `all ${this.settings.maxKeys} keys are in use`, key, request, 0)
    }
    const line = new Line(key, new Pace(this.settings.pace), this.limits.of(key), this.desk)
    this.lines.set(key, line)
    return line
  }

  /** Rather one that is not paused: forgotten, it would be asked too early. */
  private forgetOne(): boolean {
    const nowMs = this.nowMs()
    let found: Line | undefined
    let looked = 0
    for (const line of this.idle) {
      found ??= line
      if (line.pace.blockedUntilMs <= nowMs) found = line
      if (found.pace.blockedUntilMs <= nowMs || ++looked >= LOOKED_AT) break
    }
    if (found === undefined) return false
    this.idle.delete(found)
    return this.lines.delete(found.key)
  }

  private count(isAgain: boolean, change: number): void {
    this.sent += change
    if (isAgain) this.retried += change
  }

  private told(line: Line, status: number, retryAfterMs: number | undefined): unknown {
    this.throttled++
    const nowMs = this.nowMs()
    const pauseMs = Math.max(0, line.pace.blockedUntilMs - nowMs)
    return this.settings.given.onThrottle?.({ key: line.key, status, retryAfterMs, pauseMs, perSecond: line.pace.perSecond(nowMs) })
  }

  private rejectAll(reason: () => unknown): void {
    for (const line of this.lines.values()) line.rejectAll(reason)
  }
}

function errorOf(code: OutboundErrorCode, message: string, key: string, { url }: SentRequest, retryAfterMs: number): OutboundError {
  return new OutboundError(code, message, { key, host: url.host, retryAfterMs })
}

function closedError(key: string, request: SentRequest): OutboundError {
  return errorOf('CLOSED', 'closed', key, request, Number.POSITIVE_INFINITY)
}
