import { ignore, isPromise } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { PolicyError, type StoreError } from '../errors.js'

/** A decision that was made without the store. */
export interface OutageDecision {
  /** The limiter's own decision; a denial if it threw. */
  readonly decision: Decision
  /** What it threw, if it did. */
  readonly error: StoreError | undefined
}

/**
 * What happens to a request that the limiter decides without its store: `open` lets it pass and `closed` denies it, whatever the limiter decided.
 * A function is called with each such decision and returns either, or undefined to keep the decision. Default: the limiter's own decision; if it
 * threw, the request is denied.
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
 * What a choice returned; undefined for values that are not meant as a choice: a short arrow function returns the value of its last call, such as
 * the length of a list.
 *
 * @throws {PolicyError} `OPTION_INVALID` for other strings, and for promises
 */
export function checkedChoice(returned: unknown): 'open' | 'closed' | undefined {
  if (returned === 'open' || returned === 'closed') return returned
  if (typeof returned !== 'string' && !isPromise(returned)) return undefined
  ignore(returned)
  throw new PolicyError('OPTION_INVALID', 'onOutage', returned, "must return 'open', 'closed' or undefined, and not a promise")
}
