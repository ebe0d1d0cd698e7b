import type { LimiterDoor } from './limiter-client.js'
import { OutboundError, type OutboundErrorCode } from './outbound-error.js'
import type { Pace } from './pace.js'
import type { WaitingRequest } from './waiting-list.js'

/** What a line's errors are made from. */
interface LineFacts {
  readonly key: string
  readonly pace: Pace
  readonly door: LimiterDoor | undefined
  nowMs(): number
}

/** What those who wait in a line are rejected with. */
export class LineErrors {
  private readonly line: LineFacts

  constructor(line: LineFacts) {
    this.line = line
  }

  of(waiting: WaitingRequest, code: OutboundErrorCode, message: string, retryAfterMs = this.knownDelayMs()): OutboundError {
    return new OutboundError(code, message, { key: this.line.key, host: waiting.request.url.host, retryAfterMs })
  }

  /** For one that has waited as long as it may. */
  tooLate(waiting: WaitingRequest): OutboundError {
    const isOut = this.line.door?.isOut
    if (isOut) return this.of(waiting, 'OUTAGE', 'its limiter cannot reach its store, and nothing was left without it')
    return this.of(waiting, 'WAIT_TOO_LONG', 'its turn did not come in time')
  }

  /** For one of whom that is known before. */
  tooEarly(waiting: WaitingRequest): OutboundError {
    return this.of(waiting, 'WAIT_TOO_LONG', 'its turn would come too late')
  }

  /** Milliseconds until the next may go as far as that is known, also where it depends on others under way. */
  knownDelayMs(): number {
    const { pace, door } = this.line
    const nowMs = this.line.nowMs()
    const readyMs = pace.readyMs(nowMs)
    const paceMs = readyMs === Number.POSITIVE_INFINITY ? pace.blockedUntilMs : readyMs
    return Math.max(0, Math.ceil(Math.max(paceMs, door?.expectedMs ?? paceMs) - nowMs))
  }
}
