import { type Awaitable, ignore, isPromise } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { PolicyError, type StoreError } from '../errors.js'
import type { HeaderOptions, HeaderVersion } from '../headers/header-writer.js'
import type { OpenOptions } from '../holds/hold.js'
import type { AnyHold, Metered } from '../holds/metered.js'
import type { RequestFacts } from '../keys/key-reader.js'
import type { WITHIN } from '../layers/shadow-limiter.js'
import type { Key, LimiterOptions } from '../limiter.js'
import type { NoPolicy, Policy } from '../policy/policy.js'
import type { Store } from '../shared/store.js'
import type { SlowDownOptions } from '../slow-down.js'
import type { Denial, DenialKind } from './denial.js'
import type { AnswerChange, BodyOption } from './denial-response.js'
import type { KeySource, MissingKeyOption } from './key-source.js'

/** Chooses the policy for a request. It throws, or rejects, for a request that is in error. */
export type PolicyChoice<Request> = (request: Request, facts: RequestFacts) => Awaitable<Policy>

/** Makes the limiter of a policy, once for all policies with the same content. */
export type LimiterMaker = (policy: Policy) => MiddlewareLimiter

/** Options of one limit. */
export interface LimitOptions<Request> extends NoPolicy, Pick<LimiterOptions, 'shadow'>, Pick<HeaderOptions, 'unit'> {
  /**
   * A policy, for which a limiter is made; or a function that returns the policy of a request. Policies with the same content
   * share one limiter; at most 1,000 different ones.
   *
   * @defaultValue none: give `policy`, `limiter` or `limits`
   * @example rateLimit({ policy: tokenBucket({ limit: 100, window: '1m' }) })
   */
  readonly policy?: Policy | PolicyChoice<Request>
  /**
   * {@link SharedOptions.store} of the limiter made for `policy`. Of an app, also for the policies of its routes; beside `limits`, for each that has no
   * limiter.
   */
  readonly store?: Store | undefined
  /**
   * Instead of `policy`: a limiter, in memory or over a store. Or, beside `policy`, a function that makes the limiter of a policy.
   *
   * @defaultValue one in memory, or over `store`
   * @example rateLimit({ policy, limiter: (policy) => createLimiter(policy, { store, outage: 'open' }) })
   */
  readonly limiter?: MiddlewareLimiter | LimiterMaker
  /**
   * What requests are counted by. For `allOf` an array, one for each of its policies; a function may return them by the names of `levels`.
   *
   * @defaultValue the address of the socket
   * @example rateLimit({ policy, key: header('x-user') })
   */
  readonly key?: KeySource<Request>
  /**
   * What a request without a key gets: `deny` answers 401 where the key is a credential (`apiKey()`, `subject()`), else 400, with
   * `application/problem+json`; `skip` lets it pass uncounted by this limit; another key is that which it is counted by, for example
   * `address()`, or `() => 'anonymous'` for one budget of all of them. In shadow mode such requests pass.
   *
   * @defaultValue `'deny'`, with a warning
   * @example rateLimit({ policy, key: apiKey(), onMissingKey: address() })
   */
  readonly onMissingKey?: MissingKeyOption<Request>
  /**
   * Tokens that a request takes, an integer >= 0. With 0 a request passes uncounted. `'metered'`, or what {@link OpenOptions} say, where the
   * cost is known only afterwards: the request opens a hold, which `holdOf(request)` gives to its handler. It is renewed until the response ends,
   * in any way, and closed then.
   *
   * @defaultValue `1`
   * @example rateLimit({ policy, cost: (request) => (request.method === 'POST' ? 5 : 1) })
   * @example rateLimit({ policy, cost: { most: 4_096, over: 'wait' } })
   */
  readonly cost?: number | Metered | ((request: Request, facts: RequestFacts) => Awaitable<number | Metered>)
  /**
   * Delays requests of a key that has used more than a number of tokens, before it is denied.
   *
   * @defaultValue none
   * @example rateLimit({ policy, slowDown: { after: 50, delay: (over) => over * 100 } })
   */
  readonly slowDown?: SlowDownOptions<Request>
}

/**
 * Which requests count, by the status of their response: `failures` are those from 400 on, `successes` those below. Or a function of the status.
 * A request is charged when it arrives, so that no more are under way than the limit allows, and refunded after the response if it does not
 * count.
 *
 * Not refunded are:
 *
 * - requests whose response never ended;
 * - requests that end after their key was full again;
 * - requests of a key that has `allOf` as its own policy. `allOf` as the limit's policy is refused: its policies wear off at different times;
 * - decisions made without the store in an outage: they are charged to this process's share, and reported to the store later.
 *
 * With `fixedWindow` no more than the limit count. With other policies a client that holds requests open on purpose, until part of their charge
 * has worn off, can get up to one burst beyond the policy. A refund of only what cannot have worn off would deny clients that have several
 * requests under way and never fail.
 */
export type Counts<Request> = 'all' | 'failures' | 'successes' | ((status: number, request: Request) => Awaitable<boolean>)

/** Options of the middleware of all frameworks. */
export interface MiddlewareOptions<Request> extends LimitOptions<Request> {
  /**
   * Several limits instead of one, 1 to 8 with different names: a request passes if all allow it; otherwise none is charged.
   *
   * @defaultValue one limit
   * @example rateLimit({ limits: [{ policy }, { policy: fixedWindow({ limit: 1000, window: 'day' }) }] })
   */
  readonly limits?: readonly (LimitOptions<Request> & OneLimit)[]
  /**
   * True for requests that pass uncounted.
   *
   * @defaultValue none
   * @example rateLimit({ policy, skip: (request) => request.url === '/health' })
   */
  readonly skip?: (request: Request, facts: RequestFacts) => Awaitable<boolean>
  /**
   * Which responses count: `all`, `failures`, `successes`, or a function of the status. Others get their tokens back. Permits of
   * `concurrency` are released in any case.
   *
   * @defaultValue `'all'`
   * @example rateLimit({ policy, counts: 'failures' })
   */
  readonly counts?: Counts<Request>
  /**
   * Which rate limit headers responses have, by version or in detail.
   *
   * @defaultValue `'draft-11'`
   * @example rateLimit({ policy, headers: 'x-ratelimit' })
   */
  readonly headers?: HeaderVersion | HeaderOptions
  /**
   * The body of a denial: `problem` (RFC 9457), `text`, a text or an object of yours, or a function.
   *
   * @defaultValue `'problem'`
   * @example rateLimit({ policy, body: 'Too many requests' })
   */
  readonly body?: BodyOption<Request>
  /**
   * The status of a denial; or one for each kind: `denied`, `impossible`, `listed`, `outage`, `keyless`.
   *
   * @defaultValue `429`
   * @example rateLimit({ policy, status: { outage: 503 } })
   */
  readonly status?: number | Partial<Record<DenialKind, number>>
  /**
   * Called with each denial, also in shadow mode. What it returns changes the response.
   *
   * @defaultValue none
   * @example rateLimit({ policy, onDenied: ({ key }) => console.warn(key) })
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that only looks returns nothing
  readonly onDenied?: (denial: Denial, request: Request) => Awaitable<AnswerChange | undefined | void>
  /**
   * What an outage of the limiter's store means for the request.
   *
   * @defaultValue what the limiter itself decides
   * @example rateLimit({ limiter, onOutage: 'open' })
   */
  readonly onOutage?: OutageOption<Request>
}

/** {@link MiddlewareOptions} without options that contradict each other. */
export type LimitingOptions<Request> = MiddlewareOptions<Request> & LimitChoice

/** A policy or a limiter; or a policy and a function that makes its limiter. */
type OneLimit = { readonly policy?: undefined } | { readonly limiter?: LimiterMaker }

/** One limit; or several, each of which has a cost and so on of its own. */
type LimitChoice =
  | (OneLimit & { readonly limits?: undefined })
  | {
      readonly policy?: undefined
      readonly limiter?: undefined
      readonly cost?: undefined
      readonly unit?: undefined
    }

/**
 * The methods of a limiter that middleware calls; in-memory and shared limiters have all of them. A thrown or rejected `StoreError` is an outage,
 * and so is an answer that is not a decision. Any other error is one of the application.
 */
export interface MiddlewareLimiter {
  readonly policy: Policy
  /** Of a shadow limiter: the limiter that decides and denies. */
  readonly [WITHIN]?: MiddlewareLimiter
  /** The policy in force for a key, where keys may have a policy of their own. @param decision of several sources: one of theirs. */
  policyOf?(key: Key, decision?: Decision): Policy
  take(key: Key, cost?: number): Awaitable<Decision>
  /** What a take would decide. Called only where several limits apply; once it answered by a promise it is not called again. */
  peek(key: Key, cost?: number): Awaitable<Decision>
  refund(key: Key, tokens: number): Awaitable<Decision>
  /** Of metered requests. */
  open?(key: Key, options?: OpenOptions): Awaitable<AnyHold>
}

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
