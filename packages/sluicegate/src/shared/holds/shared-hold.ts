import { type Awaitable, ignore } from '../../awaitable.js'
import type { Decision } from '../../decision/decision.js'
import { PermitDecision } from '../../decision/permit.js'
import { checkPrice, type Hold } from '../../holds/hold.js'
import type { SharedWork } from './shared-work.js'

/** Open work over a store, which is logged as its decision. */
export class SharedHold extends PermitDecision implements Hold<Awaitable<boolean>, 'later'> {
  readonly #work: SharedWork

  constructor(decision: Decision, work: SharedWork) {
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

  add(cost: number): Awaitable<boolean> {
    return this.#work.add(cost)
  }

  close(cost?: number): Promise<Decision> {
    return this.#work.close(cost)
  }

  affordable(price: number): number {
    checkPrice(price)
    return Math.floor(this.#work.affordable() / price)
  }

  /** Of a limiter that is closed meanwhile it is no error: what was held ends by itself. */
  [Symbol.dispose](): void {
    ignore(this.close())
  }
}
