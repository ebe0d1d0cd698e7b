import { isPromise } from '../awaitable.js'
import { makeLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import type { RateLimitReading } from '../headers/read-rate-limit.js'
import { meteredBy } from '../holds/metered.js'
import { checkKey } from '../key.js'
import type { Limiter } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { Clock } from '../time/clock.js'
import { AbortWatch } from '../waiting/abort-watch.js'
import { KeyQueue, type QueueServices } from './key-queue.js'
import { OutboundError, type OutboundErrorCode } from './outbound-error.js'
import type { KeyStats, OutboundLimiter, OutboundSettings, OutboundStats } from './outbound-options.js'
import { Pace } from './pace.js'
import type { SentRequest } from './retry-rule.js'
import { Pauses, Timers } from './timers.js'
import { afterHook, type Turn, WaitingRequest } from './waiting-list.js'

/** Idle keys that are searched for one that is not paused. */
const LOOKED_AT = 16

/** The queues of all keys, on one timer, in bounded memory. */
export class KeyQueues {
  private readonly settings: OutboundSettings
  private readonly limits: KeyLimiters
  private readonly timers: Timers
  private readonly pauses: Pauses
  private readonly aborts = new AbortWatch()
  private readonly queues = new Map<string, KeyQueue>()
  /** The one that is idle for longest first. */
  private readonly idle = new Set<KeyQueue>()
  private readonly services: QueueServices
  private sent = 0
  private retried = 0
  private throttled = 0
  private order = 0
  isClosed = false

  /** @throws {PolicyError} `POLICY_INVALID` */
  constructor(settings: OutboundSettings) {
    this.settings = settings
    const { clock, concurrency, bodyTimeoutMs, maxPauseMs, jitter, maxKeys, given } = settings
    const { policy, policyFor, limiter } = given
    this.limits = new KeyLimiters({ policy, policyFor, limiter, maxKeys, clock })
    this.timers = new Timers(clock, (error) => this.rejectAll(() => error))
    this.pauses = new Pauses(this.timers, this.aborts)
    this.services = {
      concurrency,
      bodyTimeoutMs,
      metered: meteredBy(given.cost),
      maxPauseMs: maxPauseMs * (1 + jitter),
      nowMs: () => this.nowMs(),
      wakeAt: (queue, ms) => this.timers.wakeAt(queue, ms),
      cancelWake: (queue) => this.timers.cancelWake(queue),
      background: (ms, fn) => this.background(ms, fn),
      granted: (isAgain) => this.count(isAgain, 1),
      withdrawn: (isAgain) => this.count(isAgain, -1),
      throttled: (queue, status, retryAfterMs) => this.countThrottle(queue, status, retryAfterMs),
      becameIdle: (queue) => this.idle.add(queue),
    }
  }

  nowMs(): number {
    return this.settings.clock.nowMs()
  }

  /** A number for the order of calls; retries keep it. */
  nextOrder(): number {
    return this.order++
  }

  /**
   * Waits for the turn of a request. Rejects with an {@link OutboundError}, with the signal's reason, or with what the limiter throws.
   *
   * @param againMs for a retry: the longest wait. A retry enters even if the queue is full.
   */
  turn(key: string, request: SentRequest, order: number, againMs?: number): Promise<Turn> {
    let hooked: unknown
    let waiting: WaitingRequest | undefined
    const turn = new Promise<Turn>((resolve, reject) => {
      const { signal } = request
      if (signal?.aborted) return reject(signal.reason)
      const { maxWaiting, given } = this.settings
      const maxWaitMs = Math.min(this.settings.maxWaitMs, againMs ?? Number.POSITIVE_INFINITY)
      const queue = this.queueOf(key, request)
      const isAgain = againMs !== undefined
      if (!isAgain && queue.size >= maxWaiting) {
        return reject(errorOf('QUEUE_FULL', `${maxWaiting} requests are waiting`, key, request, queue.errors.knownDelayMs()))
      }
      waiting = new WaitingRequest(request, { key, order, nowMs: this.nowMs(), maxWaitMs, isAgain }, { resolve, reject })
      queue.enter(waiting)
      if (waiting.isOver) return
      try {
        this.watch(queue, waiting)
        hooked = given.onWait?.({ key, url: request.url, method: request.method, waiting: queue.size, delayMs: queue.delayMs() })
      } catch (error) {
        waiting.reject(error)
      }
    })
    return isPromise(hooked) ? afterHook(hooked, turn, (error) => waiting?.reject(error)) : turn
  }

  /** Whether a pause is known to be longer than a new request may wait. */
  isTooLate(key: string): boolean {
    const queue = this.queues.get(key)
    return queue !== undefined && queue.pace.blockedUntilMs - this.nowMs() > Math.min(this.settings.maxWaitMs, this.services.maxPauseMs)
  }

  /** Whether the key has a pause or a learned rate, which retries obey by waiting in its queue. */
  isSlowed(key: string): boolean {
    const { perSecond = Number.POSITIVE_INFINITY, pauseMs = 0 } = this.statsOf(key) ?? {}
    return pauseMs > 0 || perSecond !== Number.POSITIVE_INFINITY
  }

  /** A redirect within the key is one more request than had a turn. */
  charge(key: string): void {
    this.queues.get(key)?.charge()
  }

  /** A response from another key, after a redirect. Returns what the hook returns. */
  arrivedByRedirect(key: string, request: SentRequest, status: number, reading: RateLimitReading): unknown {
    try {
      return this.queueOf(key, request).arrivedByRedirect(status, reading)
    } catch (error) {
      // There is no room for another key: the response is returned all the same.
      if (!(error instanceof OutboundError)) throw error
      return undefined
    }
  }

  /** Calls `fn` after `ms` milliseconds, unless the returned function cancels it. Does not keep the process alive. */
  background(ms: number, fn: () => void): () => void {
    return this.timers.background(ms, fn)
  }

  /** Resolves after `ms` milliseconds. Rejects with the signal's reason, or with `CLOSED`. */
  pause(ms: number, key: string, request: SentRequest): Promise<void> {
    const closed = (): OutboundError => closedError(key, request)
    return this.isClosed ? Promise.reject(closed()) : this.pauses.pause(ms, request.signal, closed)
  }

  stats(): OutboundStats {
    let waiting = 0
    let inFlight = 0
    for (const queue of this.queues.values()) {
      waiting += queue.size
      inFlight += queue.pace.inFlight
    }
    return { keys: this.queues.size, waiting, inFlight, sent: this.sent, retried: this.retried, throttled: this.throttled }
  }

  statsOf(key: string): KeyStats | undefined {
    const queue = this.queues.get(key)
    if (queue === undefined) return undefined
    const { pace, size } = queue
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
    const queue = this.queues.get(key)
    queue?.forget()
    return queue !== undefined
  }

  close(): void {
    this.isClosed = true
    for (const queue of this.queues.values()) queue.rejectAll(({ request }) => closedError(queue.key, request))
    this.pauses.close()
    this.limits.close()
  }

  private watch(queue: KeyQueue, waiting: WaitingRequest): void {
    const { signal } = waiting.request
    const unwatch = signal && this.aborts.add(signal, () => waiting.reject(signal.reason))
    const late = (): void => waiting.reject(queue.errors.tooLate(waiting))
    const leftMs = waiting.deadlineMs - this.nowMs()
    const isTimed = !waiting.isImmediate && leftMs !== Number.POSITIVE_INFINITY
    const unset = isTimed ? this.timers.after(Math.max(0, leftMs), late) : undefined
    const { onEnd } = waiting
    waiting.onEnd = () => {
      unwatch?.()
      unset?.()
      onEnd?.()
    }
  }

  /** @throws {OutboundError} `CLOSED`, `KEYS_FULL` @throws {PolicyError} `KEY_INVALID` */
  private queueOf(key: string, request: SentRequest): KeyQueue {
    if (this.isClosed) throw closedError(key, request)
    const known = this.queues.get(key)
    if (known !== undefined) {
      this.idle.delete(known)
      return known
    }
    checkKey(key)
    if (this.queues.size >= this.settings.maxKeys && !this.forgetOne()) {
      throw errorOf('KEYS_FULL', `all ${this.settings.maxKeys} keys are in use`, key, request, 0)
    }
    const queue = new KeyQueue(key, new Pace(this.settings.pace), this.limits.of(key), this.services)
    this.queues.set(key, queue)
    return queue
  }

  /** Prefers a key that is not paused: a forgotten pause would be ignored by the next request. */
  private forgetOne(): boolean {
    const nowMs = this.nowMs()
    let found: KeyQueue | undefined
    let looked = 0
    for (const queue of this.idle) {
      found ??= queue
      if (queue.pace.blockedUntilMs <= nowMs) found = queue
      if (found.pace.blockedUntilMs <= nowMs || ++looked >= LOOKED_AT) break
    }
    if (found === undefined) return false
    this.idle.delete(found)
    return this.queues.delete(found.key)
  }

  private count(isAgain: boolean, change: number): void {
    this.sent += change
    if (isAgain) this.retried += change
  }

  private countThrottle(queue: KeyQueue, status: number, retryAfterMs: number | undefined): unknown {
    this.throttled++
    const nowMs = this.nowMs()
    const pauseMs = Math.max(0, queue.pace.blockedUntilMs - nowMs)
    return this.settings.given.onThrottle?.({ key: queue.key, status, retryAfterMs, pauseMs, perSecond: queue.pace.perSecond(nowMs) })
  }

  private rejectAll(reason: () => unknown): void {
    for (const queue of this.queues.values()) queue.rejectAll(reason)
  }
}

function errorOf(code: OutboundErrorCode, message: string, key: string, { url }: SentRequest, retryAfterMs: number): OutboundError {
  return new OutboundError(code, message, { key, host: url.host, retryAfterMs })
}

function closedError(key: string, request: SentRequest): OutboundError {
  return errorOf('CLOSED', 'closed', key, request, Number.POSITIVE_INFINITY)
}

const MAX_POLICIES = 1_000

/** What the limiters of keys are made from. */
interface KeyLimitersParts {
  readonly policy: Policy | undefined
  readonly policyFor: ((key: string) => Policy | undefined) | undefined
  readonly limiter: OutboundLimiter | undefined
  readonly maxKeys: number
  readonly clock: Clock
}

/** The limiter of each key: the one that was given, or one for each policy, made when it is first needed. */
export class KeyLimiters {
  private readonly parts: KeyLimitersParts
  private readonly made = new Map<string, Limiter>()

  /** @throws {PolicyError} `POLICY_INVALID` */
  constructor(parts: KeyLimitersParts) {
    this.parts = parts
    // An invalid policy throws when the options are given.
    if (parts.policy !== undefined) this.limiterOf(parts.policy)
  }

  /** Undefined for a key without a limit. @throws {PolicyError} `POLICY_INVALID` */
  of(key: string): OutboundLimiter | undefined {
    const { policy, policyFor, limiter } = this.parts
    if (limiter !== undefined) return limiter
    const found = policyFor?.(key) ?? policy
    return found === undefined ? undefined : this.limiterOf(found)
  }

  close(): void {
    for (const limiter of this.made.values()) limiter.close()
  }

  private limiterOf(policy: Policy): OutboundLimiter {
    // Policies with the same content have one limiter.
    const name = JSON.stringify(policy)
    const known = this.made.get(name)
    if (known !== undefined) return known
    if (this.made.size >= MAX_POLICIES) {
      throw new PolicyError('POLICY_INVALID', 'policyFor', policy, `returned more than ${MAX_POLICIES} different policies`)
    }
    const { maxKeys, clock } = this.parts
    // Each key waits at most once.
    const limiter = makeLimiter(policy, { maxKeys, maxWaiting: maxKeys, clock })
    this.made.set(name, limiter)
    return limiter
  }
}
