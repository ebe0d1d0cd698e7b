import type { Clock } from '../time/clock.js'
import type { Home } from './home.js'

/** What a limiter gives to its home. */
export interface HomeParts {
  /** Begins all keys at the home. */
  readonly prefix: string
  /** How long a call to the home may take. */
  readonly timeoutMs: number
  readonly clock: Clock
}

/** Makes the home of one limiter. */
export const MAKE_HOME: unique symbol = Symbol.for('sluicegate.make-home')

/** A store that holds the budgets of all regions: what `storeHome()` and `postgresHome()` return, for the option `home.store`. */
export interface StoreHome {
  /** For the limiter. */
  readonly [MAKE_HOME]: (parts: HomeParts) => Home
}
