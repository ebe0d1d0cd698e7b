import { ignore, isPromise, type When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { isPermit } from '../decision/permit.js'
import type { Reservation } from '../decision/reservation.js'
import { takeOf, waitOf } from '../decision/settled-takes.js'
import { openOf } from '../holds/metered.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { type Due, DueHeap } from '../waiting/due-heap.js'
import type { Job, Rank } from './job.js'
import type { Cost, QueueLimiter } from './queue-options.js'
import { QueueError } from './work-queue.js'

/** Concurrent takes of one key, for limiters that answer later. */
const MOST_TAKES = 16
/** A leased limiter that denies briefly is asked again by `take`, without a call of the store, at most this often in a row. */
const MOST_LOOKS = 8
const SOON_MS = 1_000
/** Latest retry after a limiter has refused a waiter. */
const LATEST_RETRY_MS = 1_000

/** What a lane needs of its queue. */
export interface LaneHost {
  readonly limiter: QueueLimiter
  nowMs(): number
  after(ms: number, fn: () => void): () => void
  /** Whether one job more may start now. */
  canStart(): boolean
  /** Starts a job that waits; it leaves its lane. */
  start(job: Job, reservation: Reservation<When>): void
  /** Rejects a job that waits; it leaves its lane. */
  reject(job: Job, reason: unknown): void
  /** A take that is under way keeps a place for the job that it lets start. */
  keepPlaces(change: 1 | -1): void
  /** To be called when the lane may be able to ask again. */
  changed(lane: Lane): void
}

/**
 * The waiting jobs of one key.
 *
 * A lane asks the limiter by `take`, and after a denial by `wait`. Tokens are not tied to a job: the first job when they arrive gets
 * them, so priorities count until the last moment. Tokens that no job can use go back.
 */
export class Lane implements Due {
  // In the queue's heap of lanes that can ask: the rank of the first job.
  dueUs = 0
  order = 0
  place = -1
  readonly key: Key
  readonly name: string
  readonly drops = new DueHeap<Rank>()
  size = 0
  /** Takes under way. */
  takes = 0
  private readonly turns = new DueHeap<Rank>()
  /** How many jobs have each cost. */
  private readonly costs = new Map<Cost, number>()
  private readonly host: LaneHost
  private mostTakes = 1
  private looks = 0
  /** Whether a take would be denied: the last decision left too few tokens. */
  private isSpent = false
  private waiting: { readonly controller: AbortController; readonly cost: Cost } | undefined
  private cancelSleep: (() => void) | undefined
  private readonly nowMs = (): number => this.host.nowMs()

  constructor(key: Key, name: string, host: LaneHost) {
    this.key = key
    this.name = name
    this.host = host
  }

  get first(): Job | undefined {
    return this.turns.first?.job
  }

  /** Whether the limiter can be asked for a token now. */
  get canAsk(): boolean {
    if (this.waiting !== undefined || this.cancelSleep !== undefined) return false
    return this.takes < Math.min(this.size, this.costs.size > 1 ? 1 : this.mostTakes)
  }

  add(job: Job): void {
    const { cost } = job.settings
    this.size++
    this.turns.add(job.turn)
    if (job.laneDrop !== undefined) this.drops.add(job.laneDrop)
    this.costs.set(cost, (this.costs.get(cost) ?? 0) + 1)
    this.reconsider()
  }

  remove(job: Job): void {
    const { cost } = job.settings
    this.size--
    this.turns.remove(job.turn)
    if (job.laneDrop !== undefined) this.drops.remove(job.laneDrop)
    const others = (this.costs.get(cost) as number) - 1
    if (others > 0) this.costs.set(cost, others)
    else this.costs.delete(cost)
    this.reconsider()
  }

  /** Asks for a token for the first job. Only where {@link canAsk}. */
  ask(): void {
    const job = this.first as Job
    const { cost } = job.settings
    try {
      if (this.isSpent && typeof cost === 'number') {
        this.wait(job, cost)
        return
      }
      const answer =
        typeof cost === 'number' ? takeOf(this.host.limiter, this.key, cost, this.nowMs) : openOf(this.host.limiter, this.key, cost)
      if (isPromise(answer)) this.takeLater(answer, cost)
      else this.taken(answer, cost)
    } catch (error) {
      this.waiting = undefined
      this.host.reject(job, error)
    }
  }

  /** Stops asking. Tokens that still arrive go back. */
  stop(): void {
    this.waiting?.controller.abort()
    this.waiting = undefined
    this.cancelSleep?.()
    this.cancelSleep = undefined
  }

  /** A hold of the key has closed: the lane does not sleep on. */
  wake(): void {
    this.cancelSleep?.()
    this.cancelSleep = undefined
  }

  private takeLater(answer: Promise<Reservation<When>>, cost: Cost): void {
    const over = (): void => {
      this.takes--
      this.host.keepPlaces(-1)
    }
    this.takes++
    this.host.keepPlaces(1)
    answer
      .then(
        (reservation) => {
          over()
          this.taken(reservation, cost)
        },
        (error) => {
          over()
          this.failed(error)
        },
      )
      // An error of the clock rejects the first job.
      .catch((error) => this.failed(error))
      .then(() => this.host.changed(this))
  }

  private taken(reservation: Reservation<When>, cost: Cost): void {
    const { decision } = reservation
    if (decision.allowed) this.looks = 0
    // What each hold will be is not known.
    const fitting = typeof cost === 'number' ? Math.floor(decision.remaining / cost) : 1
    this.mostTakes = decision.allowed ? Math.max(1, Math.min(MOST_TAKES, fitting)) : 1
    this.answered(reservation, cost)
  }

  /** @param maxWaitMs the job's own ends by a timer of the queue in any case. */
  private wait(job: Job, cost: number, maxWaitMs = Math.max(0, job.deadlineMs - this.host.nowMs())): void {
    const controller = new AbortController()
    const { signal } = controller
    this.waiting = { controller, cost }
    const over = (next: () => void): void => {
      this.waiting = undefined
      try {
        next()
      } catch (error) {
        this.failed(error)
      }
      this.host.changed(this)
    }
    waitOf(this.host.limiter, this.key, { cost, maxWait: maxWaitMs, signal }, this.nowMs).then(
      (reservation) => {
        const { decision } = reservation
        if (signal.aborted) {
          if (decision.allowed) giveBack(reservation)
          return
        }
        over(() => {
          this.isSpent = decision.allowed && decision.remaining < cost
          this.answered(reservation, cost, maxWaitMs)
        })
      },
      (error) => {
        if (!signal.aborted) over(() => this.failed(error))
      },
    )
  }

  /** @param waitedMs for how long at most the limiter was asked to wait, if it was: a denial then says that it would take too long. */
  private answered(reservation: Reservation<When>, cost: Cost, waitedMs?: number): void {
    const { decision } = reservation
    const job = this.first
    const isFor = job?.settings.cost === cost
    if (!decision.allowed) {
      if (isFor) this.denied(job, decision, waitedMs)
    } else if (isFor && this.host.canStart()) {
      this.host.start(job, reservation)
    } else {
      this.isSpent = false
      giveBack(reservation)
    }
  }

  private denied(job: Job, decision: Decision, waitedMs: number | undefined): void {
    const { retryAfterMs, source } = decision
    const leftMs = job.deadlineMs - this.host.nowMs()
    const isLate = leftMs <= 0 || (waitedMs !== undefined && leftMs < retryAfterMs)
    if (isLate || retryAfterMs === Number.POSITIVE_INFINITY) {
      this.host.reject(
        job,
        retryAfterMs === Number.POSITIVE_INFINITY ? refusalOf(job, decision, this.host.limiter) : tooLate(job, decision),
      )
      return
    }
    // Another concurrent take was denied before.
    if (this.waiting !== undefined || this.cancelSleep !== undefined) return
    const { cost } = job.settings
    // Nobody waits for a hold in its limiter: the lane looks again, also when one of its own closes.
    if (waitedMs === Number.POSITIVE_INFINITY || typeof cost !== 'number') {
      this.sleep(Math.min(LATEST_RETRY_MS, retryAfterMs))
    } else if (waitedMs !== undefined) {
      // Those before it may give up, or tokens come back, which a sleeping lane would not hear of.
      this.wait(job, cost, Number.POSITIVE_INFINITY)
    } else if (source === 'lease' && retryAfterMs <= SOON_MS && this.looks < MOST_LOOKS) {
      this.looks++
      this.sleep(retryAfterMs)
    } else {
      this.looks = 0
      this.wait(job, cost)
    }
  }

  private sleep(ms: number): void {
    this.isSpent = false
    this.cancelSleep = this.host.after(ms, () => {
      this.cancelSleep = undefined
      this.host.changed(this)
    })
  }

  private failed(error: unknown): void {
    if (this.first !== undefined) this.host.reject(this.first, error)
  }

  /** A wait is for one cost: when the first job has another cost, the lane asks again. */
  private reconsider(): void {
    if (this.waiting !== undefined && this.waiting.cost !== this.first?.settings.cost) this.stop()
  }
}

/** For a token that no job can use. */
function giveBack(reservation: Reservation<When>): void {
  const { decision } = reservation
  try {
    ignore(isPermit(decision) ? decision.release() : reservation.cancel())
  } catch {
    // The limiter is closed or out of reach: the token stays spent.
  }
}

function refusalOf(job: Job, decision: Decision, limiter: QueueLimiter): QueueError {
  const { cost } = job.settings
  const { source, policy } = decision
  if (source === 'outage') return new QueueError('OUTAGE', `policy "${policy}" cannot reach its store`, job.key, decision)
  const tokens = typeof cost === 'number' ? cost : typeof cost.expect === 'number' ? cost.expect : 1
  if (tokens > mostAtOnce(limiter.policyOf?.(job.key) ?? limiter.policy))
    return new QueueError('IMPOSSIBLE', `a cost of ${tokens} can never pass policy "${policy}"`, job.key, decision)
  return new QueueError('DENIED', `policy "${policy}" never admits this key at a cost of ${tokens}`, job.key, decision)
}

function mostAtOnce({ burst, policies }: Policy): number {
  return policies === undefined ? burst : Math.min(...policies.map((part) => part.burst))
}

/** A job that did not start in time. An outage is named as such. */
export function tooLate(job: Job, decision?: Decision): QueueError {
  if (decision?.source === 'outage') return new QueueError('OUTAGE', 'the limiter cannot reach its store in time', job.key, decision)
  return new QueueError('WAIT_TOO_LONG', `not started within ${job.settings.maxWaitMs} ms`, job.key, decision)
}
