import { onceInProcess } from '../once-in-process.js'
import type { LimiterClient } from './limiter-client.js'
import type { Pace } from './pace.js'
import type { WaitingRequest } from './waiting-list.js'

/**
 * Why a request was not sent. Each code is explained in `docs/outbound.md`.
 *
 * - `WAIT_TOO_LONG`: its turn does not come within `maxWait`.
 * - `PAUSED`: the server asked for a pause longer than `maxPause`.
 * - `DENIED`: the limiter never lets this key pass.
 * - `OUTAGE`: as `WAIT_TOO_LONG`, while the limiter cannot reach its store.
 * - `QUEUE_FULL`: `maxWaiting` requests are waiting.
 * - `KEYS_FULL`: all `maxKeys` keys have requests under way.
 * - `CLOSED`: `close()` was called.
 */
export type OutboundErrorCode = 'WAIT_TOO_LONG' | 'PAUSED' | 'DENIED' | 'OUTAGE' | 'QUEUE_FULL' | 'KEYS_FULL' | 'CLOSED'

/** The details of an {@link OutboundError}. */
interface OutboundErrorFacts {
  readonly key: string
  readonly host: string
  readonly retryAfterMs: number
}

/** A request that was not sent, or not sent again. Responses are never errors, and errors of `fetch` are passed on unchanged. */
class OutboundError extends Error {
  override readonly name = 'OutboundError'
  readonly code: OutboundErrorCode
  /** The key whose turn it waited for. */
  readonly key: string
  /** Of the request's URL. */
  readonly host: string
  /** Milliseconds until the key may be asked again, as far as is known: >= 0, `Infinity` for never. */
  readonly retryAfterMs: number

  constructor(code: OutboundErrorCode, message: string, { key, host, retryAfterMs }: OutboundErrorFacts) {
    super(`${host}: ${message}`)
    this.code = code
    this.key = key
    this.host = host
    this.retryAfterMs = retryAfterMs
  }
}

/** One class for both forms of the package, so that `instanceof` agrees. */
const OnceOutboundError: typeof OutboundError = /* @__PURE__ */ onceInProcess('OutboundError', () => OutboundError)
type OnceOutboundError = OutboundError

export { OnceOutboundError as OutboundError }

/** What the errors of a queue are made from. */
interface QueueFacts {
  readonly key: string
  readonly pace: Pace
  readonly client: LimiterClient | undefined
  nowMs(): number
}

/** The errors that waiting requests are rejected with. */
export class QueueErrors {
  private readonly queue: QueueFacts

  constructor(queue: QueueFacts) {
    this.queue = queue
  }

  of(waiting: WaitingRequest, code: OutboundErrorCode, message: string, retryAfterMs = this.knownDelayMs()): OutboundError {
    return new OutboundError(code, message, { key: this.queue.key, host: waiting.request.url.host, retryAfterMs })
  }

  /** The request has waited as long as it may. */
  tooLate(waiting: WaitingRequest): OutboundError {
    const isOut = this.queue.client?.isOut
    if (isOut) return this.of(waiting, 'OUTAGE', 'its limiter cannot reach its store, and denies without it')
    return this.of(waiting, 'WAIT_TOO_LONG', 'its turn did not come in time')
  }

  /** The request cannot get its turn in time. */
  tooEarly(waiting: WaitingRequest): OutboundError {
    return this.of(waiting, 'WAIT_TOO_LONG', 'its turn would come too late')
  }

  /** Milliseconds until the next request may be sent, as far as is known, including what depends on requests under way. */
  knownDelayMs(): number {
    const { pace, client } = this.queue
    const nowMs = this.queue.nowMs()
    const readyMs = pace.readyMs(nowMs)
    const paceMs = readyMs === Number.POSITIVE_INFINITY ? pace.blockedUntilMs : readyMs
    return Math.max(0, Math.ceil(Math.max(paceMs, client?.expectedMs ?? paceMs) - nowMs))
  }
}
