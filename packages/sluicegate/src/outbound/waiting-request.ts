import { ignore } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import type { Due } from '../waiting/due-heap.js'
import type { SentRequest } from './outbound-request.js'
import type { Turn } from './turn.js'

/** A request that waits in the line of its key: higher priority first, then in the order of calls. */
export class WaitingRequest implements Due {
  dueUs: number
  order: number
  place = -1
  readonly request: SentRequest
  readonly key: string
  /** The reading from which on it waits no longer. */
  readonly deadlineMs: number
  /** It goes at once or not at all. */
  readonly isHasty: boolean
  /** It was sent before. */
  readonly isAgain: boolean
  /** Called once, when it has got its turn or none. */
  onEnd: (() => void) | undefined
  isOver = false
  private readonly settle: { readonly resolve: (turn: Turn) => void; readonly reject: (reason: unknown) => void }

  constructor(
    request: SentRequest,
    at: { readonly key: string; readonly order: number; readonly nowMs: number; readonly maxWaitMs: number; readonly isAgain: boolean },
    settle: { readonly resolve: (turn: Turn) => void; readonly reject: (reason: unknown) => void },
  ) {
    this.request = request
    this.key = at.key
    this.order = at.order
    this.deadlineMs = at.nowMs + at.maxWaitMs
    this.isHasty = at.maxWaitMs <= 0
    this.isAgain = at.isAgain
    this.dueUs = -rankOf(request.priority)
    this.settle = settle
  }

  resolve(turn: Turn): void {
    if (this.end()) this.settle.resolve(turn)
  }

  reject(reason: unknown): void {
    if (this.end()) this.settle.reject(reason)
  }

  private end(): boolean {
    if (this.isOver) return false
    this.isOver = true
    this.onEnd?.()
    return true
  }
}

/** What compares with nothing would put others out of order, too. @throws {PolicyError} `OPTION_INVALID` */
function rankOf(priority: unknown): number {
  if (priority === undefined) return 0
  if (typeof priority === 'number') return Number.isNaN(priority) ? 0 : priority
  ignore(priority)
  throw new PolicyError('OPTION_INVALID', 'priority', priority, 'must return a number')
}
