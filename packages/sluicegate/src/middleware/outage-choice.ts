import { ignore, isPromise } from '../awaitable.js'
import type { Decision } from '../decision.js'
import { PolicyError, type StoreError } from '../errors.js'

/** A decision that was made without the store. */
export interface OutageDecision {
  /** By the limiter itself, or, when it threw, a denial. */
  readonly decision: Decision
  /** What it threw, if it did. */
  readonly error: StoreError | undefined
}

/**
 * What becomes of a request that the limiter decides without its store: `open` lets it pass, `closed` does not, whatever the limiter said. A
 * function is told of each and may say either; undefined leaves it as it is. Without this option the limiter's own choice stands, and where it
 * made none, because it threw, the request does not pass.
 */
export type OutageOption<Request> = 'open' | 'closed' | OutageChoice<Request>

/** See {@link OutageOption}. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function that only looks returns nothing
export type OutageChoice<Request> = (outage: OutageDecision, request: Request) => 'open' | 'closed' | undefined | void

/** @throws {PolicyError} `OPTION_INVALID` */
export function outageChoice<Request>(option: OutageOption<Request> | undefined): OutageChoice<Request> | undefined {
  if (option === undefined || typeof option === 'function') return option
  if (option === 'open' || option === 'closed') return () => option
  throw new PolicyError(
    'OPTION_INVALID',
    'onOutage',
    option,
    "must be 'open', 'closed' or a function that returns one of them or undefined",
  )
}

/**
 * What a choice came to, undefined where it was none: a short arrow function returns whatever it did last, such as the length of a list.
 *
 * @throws {PolicyError} `OPTION_INVALID` where it was meant as one: other words, and what comes later
 */
export function checkedChoice(returned: unknown): 'open' | 'closed' | undefined {
  if (returned === 'open' || returned === 'closed') return returned
  if (typeof returned !== 'string' && !isPromise(returned)) return undefined
  ignore(returned)
  throw new PolicyError('OPTION_INVALID', 'onOutage', returned, "must return 'open', 'closed' or undefined, at once")
}
