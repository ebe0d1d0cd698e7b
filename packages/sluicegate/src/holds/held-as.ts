import { ignore } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { StoreError } from '../errors.js'
import type { AnyHold } from './metered.js'

/** The same hold with another decision, or with verbs of its own around those of the hold. */
export function heldAs(hold: AnyHold, decision: Decision, verbs: Partial<Pick<AnyHold, 'add' | 'close'>>): AnyHold {
  const add = verbs.add ?? ((cost: number) => hold.add(cost))
  const close = verbs.close ?? ((cost?: number) => hold.close(cost))
  const affordable = (price: number): number => hold.affordable(price)
  const own = { ...decision, add, close, affordable, [Symbol.dispose]: () => disposed(close) }
  // What changes is read from the hold each time.
  return Object.defineProperties(own as unknown as AnyHold, {
    held: { get: () => hold.held, enumerable: true, configurable: true },
    used: { get: () => hold.used, enumerable: true, configurable: true },
    over: { get: () => hold.over, enumerable: true, configurable: true },
  })
}

/** A `using` block may end after its limiter is closed. That is no error: nobody counts any more. */
function disposed(close: () => unknown): void {
  try {
    ignore(close())
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
  }
}
