import type { LimiterClient } from './limiter-client.js'
import { OutboundError, type OutboundErrorCode } from './outbound-error.js'
import type { Pace } from './pace.js'
import type { WaitingRequest } from './waiting-list.js'

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
