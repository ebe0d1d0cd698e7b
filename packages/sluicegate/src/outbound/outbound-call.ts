import { type Awaitable, chained, ignore } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import type { HeaderSource } from '../headers/header-source.js'
import type { RateLimitReading } from '../headers/rate-limit-reading.js'
import { readRateLimit } from '../headers/read-rate-limit.js'
import type { Lines } from './key-queues.js'
import { OutboundError } from './outbound-error.js'
import type { OutboundSettings } from './outbound-options.js'
import type { OutboundRequest, SentRequest } from './outbound-request.js'
import { isRefusal } from './pace.js'
import { isSafeToRepeat, type Outcome } from './retry-rule.js'
import type { Turn } from './turn.js'

/** What came back, as far as a call goes by it. */
export interface Answer {
  readonly status: number
  readonly headers: HeaderSource
  /** Whether it is from where redirects led to that were followed on the way. */
  readonly isRedirected: boolean
  /** Where that is, if anybody knows. */
  readonly at?: URL | undefined
}

/** One call, from the first attempt to the last: whoever sends asks it for turns, and tells it what came of them. */
export class OutboundCall {
  private readonly lines: Lines
  private readonly settings: OutboundSettings
  private readonly request: SentRequest
  private readonly key: string
  private readonly order: number
  private readonly startMs: number
  private attempt = 1
  private delayMs = 0

  constructor(lines: Lines, settings: OutboundSettings, request: SentRequest) {
    this.lines = lines
    this.settings = settings
    this.request = request
    this.key = keyOf(settings, request)
    this.order = lines.nextOrder()
    this.startMs = lines.nowMs()
  }

  /** Leave to send. Rejects with {@link OutboundError}, with the signal's reason, or with what the limiter or a hook throws. */
  async turn(): Promise<Turn> {
    const { signal } = this.request
    if (this.delayMs > 0) await this.lines.pause(this.delayMs, this.key, this.request)
    const leftMs = this.startMs + this.settings.maxTotalMs - this.lines.nowMs()
    const turn = await this.lines.turn(this.key, this.request, this.order, this.attempt > 1 ? leftMs : undefined)
    // Given up just as the turn came.
    if (!signal?.aborted) return turn
    turn.unused()
    throw signal.reason
  }

  /** Tells what came back. True when the request is to be sent again, and the response to be dropped. A promise where a hook takes its time. */
  answered(turn: Turn, answer: Answer): Awaitable<boolean> {
    const { key, reading, hooked } = this.tell(turn, answer)
    const { status, isRedirected } = answer
    // The line of the key keeps the pause itself; its first in order is this request.
    const isPaced = key === this.key && isRefusal(status) && this.lines.isSlowed(key)
    return chained(hooked, () => this.again({ status, isRedirected }, isPaced ? 0 : reading.retryAfterMs, reading.retryAfterMs))
  }

  /** The same where something else than a response follows, so that there is no other attempt. */
  upgraded(turn: Turn, answer: Answer): void {
    try {
      ignore(this.tell(turn, answer).hooked)
    } finally {
      turn.end()
    }
  }

  /**
   * The same where nothing came back.
   *
   * @param isRedirected whether redirects were followed before that; undefined when nobody knows.
   */
  failed(turn: Turn, error: unknown, isRedirected: boolean | undefined): Awaitable<boolean> {
    turn.end()
    if (this.request.signal?.aborted) return false
    return this.again({ error, isRedirected }, undefined, undefined)
  }

  private tell(turn: Turn, { status, headers, at }: Answer): Told {
    const reading = readRateLimit(headers, { nowMs: this.lines.nowMs() })
    const key = at === undefined || at.host === this.request.url.host ? this.key : keyOf(this.settings, redirected(this.request, at))
    if (key === this.key) {
      if (at !== undefined) this.lines.charge(key)
      return { key, reading, hooked: turn.answered(status, reading) }
    }
    // All that is known of the host that was asked is that it answered.
    turn.answered(302, {})
    return { key, reading, hooked: this.lines.visited(key, this.request, status, reading) }
  }

  private again(outcome: Outcome, ownDelayMs: number | undefined, toldMs = 0): Awaitable<boolean> {
    const { request, settings } = this
    if (outcome.status !== undefined && outcome.status < 400) return false
    if (this.attempt >= settings.attempts || !request.isRepeatable) return false
    const isSafe = isSafeToRepeat(request, outcome)
    const word = settings.given.retry?.(request, outcome, isSafe) ?? isSafe
    return chained(word, (isWanted) => checkedWord(isWanted, isSafe) && this.isPlanned(outcome, ownDelayMs, toldMs))
  }

  /** Rather the response than an error later on. */
  private isPlanned(outcome: Outcome, ownDelayMs: number | undefined, toldMs: number): Awaitable<boolean> {
    const { maxTotalMs, maxPauseMs, backoffMs, random, given, pace } = this.settings
    const { request, key, lines } = this
    const backoff = Math.min(pace.maxBackoffMs, backoffMs * 2 ** (this.attempt - 1)) * (0.5 + random() / 2)
    const delayMs = ownDelayMs ?? backoff
    const leastMs = Math.max(delayMs, toldMs, lines.statsOf(key)?.pauseMs ?? 0)
    if (lines.isClosed || toldMs > maxPauseMs || lines.isTooLate(key)) return false
    if (lines.nowMs() - this.startMs + leastMs > maxTotalMs) return false
    this.attempt++
    this.delayMs = delayMs
    const { url, method } = request
    return chained(given.onRetry?.({ key, url, method, attempt: this.attempt, delayMs: leastMs, ...outcome }), () => true)
  }
}

/** What came back, as it was told. */
interface Told {
  /** Of whom it is. */
  readonly key: string
  readonly reading: RateLimitReading
  /** What a hook says. */
  readonly hooked: unknown
}

/** Who has the last word and says nothing leaves it. @throws {PolicyError} `OPTION_INVALID` */
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
