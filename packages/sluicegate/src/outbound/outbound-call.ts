import type { HeaderSource } from '../headers/header-source.js'
import type { RateLimitReading } from '../headers/rate-limit-reading.js'
import { readRateLimit } from '../headers/read-rate-limit.js'
import type { Lines } from './lines.js'
import { OutboundError } from './outbound-error.js'
import type { OutboundRequest, SentRequest } from './outbound-request.js'
import type { OutboundSettings } from './outbound-settings.js'
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
    if (this.delayMs > 0) await this.lines.sleep(this.delayMs, this.key, this.request)
    const leftMs = this.startMs + this.settings.maxTotalMs - this.lines.nowMs()
    const turn = await this.lines.turn(this.key, this.request, this.order, this.attempt > 1 ? leftMs : undefined)
    // Given up just as the turn came.
    if (!signal?.aborted) return turn
    turn.unused()
    throw signal.reason
  }

  /** Tells what came back. True when the request is to be sent again, and the response to be dropped. */
  answered(turn: Turn, answer: Answer): boolean {
    const { key, reading } = this.tell(turn, answer)
    const { status, isRedirected } = answer
    // The line of the key keeps the pause itself; its first in order is this request.
    const isPaced = key === this.key && isRefusal(status)
    return this.again({ status, isRedirected }, isPaced ? 0 : reading.retryAfterMs, reading.retryAfterMs)
  }

  /** The same where something else than a response follows, so that there is no other attempt. */
  upgraded(turn: Turn, answer: Answer): void {
    try {
      this.tell(turn, answer)
    } finally {
      turn.end()
    }
  }

  /**
   * The same where nothing came back.
   *
   * @param isRedirected whether redirects were followed before that; undefined when nobody knows.
   */
  failed(turn: Turn, error: unknown, isRedirected: boolean | undefined): boolean {
    turn.end()
    if (this.request.signal?.aborted) return false
    return this.again({ error, isRedirected }, undefined, undefined)
  }

  private tell(turn: Turn, { status, headers, at }: Answer): { readonly key: string; readonly reading: RateLimitReading } {
    const reading = readRateLimit(headers, { nowMs: this.lines.nowMs() })
    const key = at === undefined || at.host === this.request.url.host ? this.key : keyOf(this.settings, redirected(this.request, at))
    if (key === this.key) {
      if (at !== undefined) this.lines.charge(key)
      turn.answered(status, reading)
    } else {
      // All that is known of the host that was asked is that it answered.
      turn.answered(302, {})
      this.lines.visited(key, this.request, status, reading)
    }
    return { key, reading }
  }

  private again(outcome: Outcome, ownDelayMs: number | undefined, toldMs = 0): boolean {
    const { attempts, maxTotalMs, maxPauseMs, backoffMs, random, given, pace } = this.settings
    const { request, key } = this
    if (outcome.status !== undefined && outcome.status < 400) return false
    const isSafe = isSafeToRepeat(request, outcome)
    if (this.attempt >= attempts || !request.isRepeatable) return false
    if (!(given.retry?.(request, outcome, isSafe) ?? isSafe)) return false
    const backoff = Math.min(pace.maxBackoffMs, backoffMs * 2 ** (this.attempt - 1)) * (0.5 + random() / 2)
    const delayMs = ownDelayMs ?? backoff
    const leastMs = Math.max(delayMs, toldMs, this.lines.statsOf(key)?.pauseMs ?? 0)
    // Rather the response than an error later on.
    if (toldMs > maxPauseMs || this.lines.isTooLate(key)) return false
    if (this.lines.nowMs() - this.startMs + leastMs > maxTotalMs) return false
    this.attempt++
    this.delayMs = delayMs
    this.lines.repeats()
    given.onRetry?.({ key, url: request.url, method: request.method, attempt: this.attempt, delayMs: leastMs, ...outcome })
    return true
  }
}

function keyOf({ given }: OutboundSettings, request: OutboundRequest): string {
  return given.key === undefined ? request.url.host : given.key(request)
}

function redirected(request: SentRequest, url: URL): OutboundRequest {
  return { url, method: request.method, header: (name) => request.header(name) }
}
