import { ignore } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { type Due, DueHeap } from '../waiting/due-heap.js'
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

/** Those who wait for one key. */
export class WaitingList {
  private readonly heap = new DueHeap<WaitingRequest>()
  private readonly all = new Set<WaitingRequest>()
  /** Of them those that do not wait. */
  private readonly hasty = new Set<WaitingRequest>()
  /** Nobody waits for longer. */
  private latestMs = Number.NEGATIVE_INFINITY

  get size(): number {
    return this.all.size
  }

  get first(): WaitingRequest | undefined {
    return this.heap.first
  }

  add(waiting: WaitingRequest): void {
    this.all.add(waiting)
    this.heap.add(waiting)
    if (waiting.isHasty) this.hasty.add(waiting)
    this.latestMs = Math.max(this.latestMs, waiting.deadlineMs)
  }

  remove(waiting: WaitingRequest): void {
    this.all.delete(waiting)
    this.hasty.delete(waiting)
    this.heap.remove(waiting)
    if (this.all.size === 0) this.latestMs = Number.NEGATIVE_INFINITY
  }

  /** How long anybody waits from now on; 0 where nobody is there who could wait. */
  patienceMs(nowMs: number): number {
    return this.hasty.size === this.all.size ? 0 : Math.max(0, this.latestMs - nowMs)
  }

  rejectAll(reason: (waiting: WaitingRequest) => unknown): void {
    reject(this.all, reason)
  }

  rejectHasty(reason: (waiting: WaitingRequest) => unknown): void {
    reject(this.hasty, reason)
  }

  /** Those who do not wait as long as that. */
  rejectBefore(ms: number, reason: (waiting: WaitingRequest) => unknown): void {
    for (const waiting of [...this.all]) if (waiting.deadlineMs < ms) waiting.reject(reason(waiting))
  }
}

/** Who is rejected leaves the list. */
function reject(waiters: Iterable<WaitingRequest>, reason: (waiting: WaitingRequest) => unknown): void {
  for (const waiting of [...waiters]) waiting.reject(reason(waiting))
}
