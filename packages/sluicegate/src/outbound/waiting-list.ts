import { ignore } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { PolicyError } from '../errors.js'
import type { RateLimitReading } from '../headers/read-rate-limit.js'
import { type Due, DueHeap } from '../waiting/due-heap.js'
import type { SentRequest } from './retry-rule.js'

/** A request in the queue of its key: higher priority first, then in the order of calls. */
export class WaitingRequest implements Due {
  dueUs: number
  order: number
  place = -1
  readonly request: SentRequest
  readonly key: string
  /** The reading until which it waits. */
  readonly deadlineMs: number
  /** It is sent at once or not at all. */
  readonly isImmediate: boolean
  /** It is a retry. */
  readonly isAgain: boolean
  /** Called once, when it got its turn or was rejected. */
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
    this.isImmediate = at.maxWaitMs <= 0
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

/** NaN would break the order of the heap. @throws {PolicyError} `OPTION_INVALID` */
function rankOf(priority: unknown): number {
  if (priority === undefined) return 0
  if (typeof priority === 'number') return Number.isNaN(priority) ? 0 : priority
  ignore(priority)
  throw new PolicyError('OPTION_INVALID', 'priority', priority, 'must return a number')
}

/** The waiting requests of one key. */
export class WaitingList {
  private readonly heap = new DueHeap<WaitingRequest>()
  private readonly all = new Set<WaitingRequest>()
  /** Those that do not wait. */
  private readonly immediate = new Set<WaitingRequest>()
  /** The latest deadline. */
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
    if (waiting.isImmediate) this.immediate.add(waiting)
    this.latestMs = Math.max(this.latestMs, waiting.deadlineMs)
  }

  remove(waiting: WaitingRequest): void {
    this.all.delete(waiting)
    this.immediate.delete(waiting)
    this.heap.remove(waiting)
    if (this.all.size === 0) this.latestMs = Number.NEGATIVE_INFINITY
  }

  /** The longest time that a request will still wait; 0 if none waits. */
  patienceMs(nowMs: number): number {
    return this.immediate.size === this.all.size ? 0 : Math.max(0, this.latestMs - nowMs)
  }

  rejectAll(reason: (waiting: WaitingRequest) => unknown): void {
    reject(this.all, reason)
  }

  rejectImmediate(reason: (waiting: WaitingRequest) => unknown): void {
    reject(this.immediate, reason)
  }

  /** Rejects requests whose deadline is before a reading. */
  rejectBefore(ms: number, reason: (waiting: WaitingRequest) => unknown): void {
    for (const waiting of [...this.all]) if (waiting.deadlineMs < ms) waiting.reject(reason(waiting))
  }
}

/** Rejected requests leave the list. */
function reject(waiters: Iterable<WaitingRequest>, reason: (waiting: WaitingRequest) => unknown): void {
  for (const waiting of [...waiters]) waiting.reject(reason(waiting))
}

/** What a turn reports to its queue. */
interface TurnKeeper {
  /** Returns what the hook returns. */
  answered(status: number, reading: RateLimitReading): unknown
  failed(): void
  /** @param cost what the request cost, if that is known. */
  left(cost: number | undefined): void
  giveBack(): void
}

/** Permission to send one request. It counts until {@link end} is called. */
export class Turn {
  /** What the limiter gave; undefined without a limit. */
  readonly decision: Decision | undefined
  /** What the request cost, once that is known. */
  cost: number | undefined
  private readonly keeper: TurnKeeper
  private isUnderWay = true
  private isHeld = true

  constructor(decision: Decision | undefined, keeper: TurnKeeper) {
    this.decision = decision
    this.keeper = keeper
  }

  /** The status and headers of the response have arrived. Returns what the hook returns. */
  answered(status: number, reading: RateLimitReading): unknown {
    if (!this.isUnderWay) return undefined
    this.isUnderWay = false
    return this.keeper.answered(status, reading)
  }

  /** Nothing was sent: the charge is returned. */
  unused(): void {
    if (this.isUnderWay) this.keeper.giveBack()
    this.end()
  }

  /** Everything has ended, the response's body included; without an answer so far there was none. Further calls do nothing. */
  end(): void {
    if (this.isUnderWay) {
      this.isUnderWay = false
      this.keeper.failed()
    }
    if (!this.isHeld) return
    this.isHeld = false
    this.keeper.left(this.cost)
  }
}

/** The turn, once the hook has resolved as well; the request fails with what the hook rejects with. */
export async function afterHook(hooked: Promise<unknown>, turn: Promise<Turn>, fail: (error: unknown) => void): Promise<Turn> {
  hooked.then(undefined, fail)
  const leave = await turn
  try {
    await hooked
  } catch (error) {
    leave.unused()
    throw error
  }
  return leave
}
