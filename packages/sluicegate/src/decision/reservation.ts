import { checkActualCost, type WaitOptions } from '../arguments.js'
import type { Answered, Awaitable, When } from '../awaitable.js'
import type { Key } from '../key.js'
import { Shown } from '../shown.js'
import type { Decision } from './decision.js'

/**
 * Tokens that were charged for work whose cost is not known yet, or that may be called off: by {@link Limiter.reserve}, also ahead of their
 * time. Over a store, `Reservation<'later'>`, it answers with promises.
 */
export interface Reservation<Time extends When = 'now', Answer extends Decision = Decision> {
  /** Whether they are charged; if not, nothing was. */
  readonly allowed: boolean
  /** Milliseconds from the charge until they may be spent, rounded up: 0 at once, `Infinity` when the cost can never pass. */
  readonly waitMs: number
  /** The state of the key right after the charge. */
  readonly decision: Answer
  /**
   * Corrects the cost once it is known: below the estimate the rest comes back as by {@link Reservation.cancel}, above it the key
   * goes into debt. A second call, or one after `cancel`, changes nothing. Never settled, the estimate stays charged.
   */
  settle(actualCost: number): Answered<Time, Decision>
  /**
   * Gives back what the reservation still holds, see the guide for how much that is. Once; after `settle` it changes nothing. This is also
   * what releases a place under `concurrency` once the work is done: settled, it would be held until its `ttl` is over.
   */
  cancel(): Answered<Time, Decision>
}

/**
 * Where something was charged, and the way back for it: to the key that was charged, whatever policy it has by then, and never more than is
 * safe (docs/waiting.md, "What is returned").
 */
export interface Account<Time extends When = When> {
  /** Gives back as many of `tokens` as is safe. */
  giveBack(tokens: number): Answered<Time, Decision>
  /** Charges `tokens` more, into debt if need be. */
  penalize(tokens: number): Answered<Time, Decision>
  /** How the key stands; absent where nobody asks. */
  peek?(): Answered<Time, Decision>
}

/** A charge in the hands of its taker: the one place that says what becomes of an estimate. */
export class ChargedReservation<Time extends When = When, Answer extends Decision = Decision>
  extends Shown
  implements Reservation<Time, Answer>
{
  readonly allowed: boolean
  readonly waitMs: number
  readonly decision: Answer
  readonly #cost: number
  readonly #account: Account<Time> | undefined
  #isOpen: boolean

  /** @param account undefined where nothing was charged that can come back. */
  constructor(decision: Answer, allowed: boolean, waitMs: number, cost: number, account: Account<Time> | undefined) {
    super()
    this.allowed = allowed
    this.waitMs = waitMs
    this.decision = decision
    this.#cost = cost
    this.#account = account
    this.#isOpen = allowed
  }

  settle(actualCost: number): Answered<Time, Decision> {
    checkActualCost(actualCost)
    const account = this.#account
    const more = this.#isOpen ? actualCost - this.#cost : 0
    // What throws has changed nothing and may be tried again; what rejects may have been made, and is not.
    const known = more === 0 ? account?.peek?.() : more > 0 ? account?.penalize(more) : account?.giveBack(-more)
    this.#isOpen = false
    return known ?? (this.decision as Decision as Answered<Time, Decision>)
  }

  cancel(): Answered<Time, Decision> {
    return this.settle(0)
  }

  toJSON(): object {
    const { allowed, waitMs, decision } = this
    return { allowed, waitMs, decision }
  }
}

/** One that charged nothing, allowed as `decision` is. `settle` and `cancel` answer with `state()`. */
export function uncharged<Answer extends Decision>(decision: Answer, state?: () => Decision): Reservation<'now', Answer>
export function uncharged<Answer extends Decision>(decision: Answer, state: () => Awaitable<Decision>): Reservation<When, Answer>
export function uncharged<Answer extends Decision>(decision: Answer, state?: () => Awaitable<Decision>): Reservation<When, Answer> {
  const account = state && { giveBack: state, penalize: state, peek: state }
  // A limiter of the user's may answer with anything.
  return new ChargedReservation<When, Answer>(decision, decision?.allowed, decision?.retryAfterMs, 0, account)
}

/** The same one with another decision. */
export function decidedAs<Answer extends Decision>(reservation: Reservation<When>, decision: Answer): Reservation<When, Answer> {
  if (reservation.decision === decision) return reservation as Reservation<When, Answer>
  const { waitMs } = reservation
  const settle = (actualCost: number): Awaitable<Decision> => reservation.settle(actualCost)
  return { allowed: decision.allowed, waitMs, decision, settle, cancel: () => reservation.cancel() }
}

/** The methods of a limiter of this library whose answers can be settled: `take` and `wait`, at the cost of an object more. */
export const TAKE: unique symbol = Symbol.for('sluicegate.take')
export const WAIT: unique symbol = Symbol.for('sluicegate.wait')

/** A limiter of this library; `Taken` where takes answer at once. */
export interface Settling<Answer extends Decision = Decision, Taken = Awaitable<Reservation<When, Answer>>> {
  [TAKE](key: Key, cost?: number): Taken
  [WAIT](key: Key, options?: WaitOptions): Promise<Reservation<When, Answer>>
}
