import { onceInProcess } from '../once-in-process.js'

/**
 * Why a request was not sent. Each code is explained in `docs/outbound.md`.
 *
 * - `WAIT_TOO_LONG`: its turn does not come within `maxWaitMs`.
 * - `PAUSED`: the server asked for a pause longer than `maxPauseMs`.
 * - `DENIED`: the limiter never lets this key pass.
 * - `OUTAGE`: as `WAIT_TOO_LONG`, while the limiter cannot reach its store.
 * - `QUEUE_FULL`: `maxWaiting` requests are waiting.
 * - `KEYS_FULL`: all `maxKeys` keys have requests under way.
 * - `CLOSED`: `close()` was called.
 */
export type OutboundErrorCode = 'WAIT_TOO_LONG' | 'PAUSED' | 'DENIED' | 'OUTAGE' | 'QUEUE_FULL' | 'KEYS_FULL' | 'CLOSED'

/** The details of an {@link OutboundError}. */
export interface OutboundErrorFacts {
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
