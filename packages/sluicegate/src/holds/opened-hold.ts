import { type Answered, type Awaitable, ignore, type When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { PermitDecision } from '../decision/permit.js'
import { checkPrice, type Hold } from './hold.js'

/** Open work of a limiter, in memory or over a store. */
export interface Work<Time extends When> {
  readonly held: number
  readonly used: number
  readonly over: number
  /** Whether it, or its limiter, is closed. */
  readonly isOver: boolean
  add(cost: number): Awaitable<boolean>
  close(cost: number | undefined): Answered<Time, Decision>
  /** Tokens that it may still spend at once. */
  affordable(): number
}

/** Open work, which is logged as its decision. */
export class OpenedHold<Added extends Awaitable<boolean>, Time extends When> extends PermitDecision implements Hold<Added, Time> {
  readonly #work: Work<Time>

  constructor(decision: Decision, work: Work<Time>) {
    super(decision)
    this.#work = work
  }

  get held(): number {
    return this.#work.held
  }

  get used(): number {
    return this.#work.used
  }

  get over(): number {
    return this.#work.over
  }

  // In memory a promise with `over: 'wait'` alone, whose type says so.
  add(cost: number): Added {
    return this.#work.add(cost) as Added
  }

  close(cost?: number): Answered<Time, Decision> {
    return this.#work.close(cost)
  }

  affordable(price: number): number {
    checkPrice(price)
    return Math.floor(this.#work.affordable() / price)
  }

  /** A `using` block may end after its limiter is closed. That is no error: nobody counts any more, or what was held ends by itself. */
  [Symbol.dispose](): void {
    if (!this.#work.isOver) ignore(this.close())
  }
}
