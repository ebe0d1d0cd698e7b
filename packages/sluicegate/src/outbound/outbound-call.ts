import { type Awaitable, chained, ignore } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { type HeaderSource, headerOf, lowerCased } from '../headers/header.js'
import { type RateLimitReading, readRateLimit } from '../headers/read-rate-limit.js'
import { checkSpent } from '../holds/hold.js'
import type { KeyQueues } from './key-queues.js'
import { OutboundError } from './outbound-error.js'
import type { OutboundSettings } from './outbound-options.js'
import { isRefusal } from './pace.js'
import { isSafeToRepeat, type OutboundRequest, type Outcome, type SentRequest } from './retry-rule.js'
import type { Turn } from './waiting-list.js'

/** The part of a response that a call uses. */
export interface Answer {
  readonly status: number
  readonly headers: HeaderSource
  /** Whether redirects were followed before it. */
  readonly isRedirected: boolean
  /** Where it came from after redirects, if known. */
  readonly at?: URL | undefined
}

/** One call, from its first attempt to its last. The sender waits for turns, and reports the outcome of each. */
export class OutboundCall {
  private readonly queues: KeyQueues
  private readonly settings: OutboundSettings
  private readonly request: SentRequest
  private readonly key: string
  private readonly order: number
  private readonly startMs: number
  private attempt = 1
  private delayMs = 0

  constructor(queues: KeyQueues, settings: OutboundSettings, request: SentRequest) {
    this.queues = queues
    this.settings = settings
    this.request = request
    this.key = keyOf(settings, request)
    this.order = queues.nextOrder()
    this.startMs = queues.nowMs()
  }

  /**
   * Waits for the turn of the next attempt. Rejects with {@link OutboundError}, with the signal's reason, or with what the limiter or a
   * hook throws.
   */
  async turn(): Promise<Turn> {
    const { signal } = this.request
    if (this.delayMs > 0) await this.queues.pause(this.delayMs, this.key, this.request)
    const leftMs = this.startMs + this.settings.maxTotalMs - this.queues.nowMs()
    const turn = await this.queues.turn(this.key, this.request, this.order, this.attempt > 1 ? leftMs : undefined)
    // Aborted just as the turn came.
    if (!signal?.aborted) return turn
    turn.unused()
    throw signal.reason
  }

  /** Reports a response. True if the request is to be sent again and the response discarded. A promise if a hook returns one. */
  answered(turn: Turn, answer: Answer): Awaitable<boolean> {
    const { key, reading, hooked } = this.report(turn, answer)
    const { status, headers, isRedirected } = answer
    // The queue of the key keeps the pause itself, and this request is first in its order.
    const isPaced = key === this.key && isRefusal(status) && this.queues.isSlowed(key)
    return chained(hooked, () => {
      turn.cost = this.costOf(status, headers)
      return this.again({ status, isRedirected }, isPaced ? 0 : reading.retryAfterMs, reading.retryAfterMs)
    })
  }

  /** Reports an upgrade, after which there is no other attempt. */
  upgraded(turn: Turn, answer: Answer): void {
    try {
      ignore(this.report(turn, answer).hooked)
    } finally {
      turn.end()
    }
  }

  /**
   * Reports that there was no response.
   *
   * @param isRedirected whether redirects were followed before; undefined if not known.
   */
  failed(turn: Turn, error: unknown, isRedirected: boolean | undefined): Awaitable<boolean> {
    turn.end()
    if (this.request.signal?.aborted) return false
    return this.again({ error, isRedirected }, undefined, undefined)
  }

  private report(turn: Turn, { status, headers, at }: Answer): Reported {
    const reading = readRateLimit(headers, { nowMs: this.queues.nowMs() })
    const key = at === undefined || at.host === this.request.url.host ? this.key : keyOf(this.settings, redirected(this.request, at))
    if (key === this.key) {
      if (at !== undefined) this.queues.charge(key)
      return { key, reading, hooked: turn.answered(status, reading) }
    }
    // The first host answered with a redirect: nothing else is known of it.
    turn.answered(302, {})
    return { key, reading, hooked: this.queues.arrivedByRedirect(key, this.request, status, reading) }
  }

  /** @throws {PolicyError} `COST_INVALID` */
  private costOf(status: number, headers: HeaderSource): number | undefined {
    const names = lowerCased(headers)
    const cost = this.settings.given.costOf?.({ status, header: (name) => headerOf(names, name) })
    if (cost !== undefined) checkSpent(cost)
    return cost
  }

  private again(outcome: Outcome, ownDelayMs: number | undefined, announcedMs = 0): Awaitable<boolean> {
    const { request, settings } = this
    if (outcome.status !== undefined && outcome.status < 400) return false
    if (this.attempt >= settings.attempts || !request.isRepeatable) return false
    const isSafe = isSafeToRepeat(request, outcome)
    const word = settings.given.retry?.(request, outcome, isSafe) ?? isSafe
    return chained(word, (isWanted) => checkedWord(isWanted, isSafe) && this.isPlanned(outcome, ownDelayMs, announcedMs))
  }

  /** A retry that cannot succeed in time is not begun: the caller gets the response instead of a later error. */
  private isPlanned(outcome: Outcome, ownDelayMs: number | undefined, announcedMs: number): Awaitable<boolean> {
    const { maxTotalMs, maxPauseMs, backoffMs, given, pace } = this.settings
    const { request, key, queues } = this
    const backoff = Math.min(pace.maxBackoffMs, backoffMs * 2 ** (this.attempt - 1)) * (0.5 + pace.random() / 2)
    const delayMs = ownDelayMs ?? backoff
    const leastMs = Math.max(delayMs, announcedMs, queues.statsOf(key)?.pauseMs ?? 0)
    if (queues.isClosed || announcedMs > maxPauseMs || queues.isTooLate(key)) return false
    if (queues.nowMs() - this.startMs + leastMs > maxTotalMs) return false
    this.attempt++
    this.delayMs = delayMs
    const { url, method } = request
    return chained(given.onRetry?.({ key, url, method, attempt: this.attempt, delayMs: leastMs, ...outcome }), () => true)
  }
}

/** A reported response. */
interface Reported {
  /** The key that it belongs to. */
  readonly key: string
  readonly reading: RateLimitReading
  /** What the hook returned. */
  readonly hooked: unknown
}

/** Without a result of `retry` the default counts. @throws {PolicyError} `OPTION_INVALID` */
function checkedWord(word: unknown, isSafe: boolean): boolean {
  if (typeof word === 'boolean') return word
  if (word === undefined || word === null) return isSafe
  throw new PolicyError('OPTION_INVALID', 'retry', word, 'must return true or false, or a promise of it')
}

function keyOf({ given }: OutboundSettings, request: OutboundRequest): string {
  return given.key === undefined ? request.url.host : given.key(request)
}

function redirected(request: SentRequest, url: URL): OutboundRequest {
  return { url, method: request.method, header: (name) => request.header(name) }
}
