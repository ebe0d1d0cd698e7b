import type { Awaitable } from '../awaitable.js'
import type { BanOptions } from '../ban-options.js'
import type { HeaderOptions, HeaderVersion } from '../headers/header-options.js'
import type { HeaderPair } from '../headers/header-pair.js'
import type { QuotaUnit } from '../headers/quota.js'
import type { RequestFacts } from '../keys/key-reader.js'
import type { NoPolicy, Policy } from '../policy/policy.js'
import type { SlowDownOptions } from '../slow-down.js'
import type { Denial, DenialKind, ProblemKind } from './denial.js'
import type { Body, BodyOption } from './denial-response.js'
import type { KeySource } from './key-source.js'
import type { EdgeLimiter } from './middleware-limiter.js'
import type { OutageOption } from './outage-choice.js'

/** Says which policy is for a request. It throws, or rejects with, what is an error of the request. */
export type PolicyChoice<Request> = (request: Request, facts: RequestFacts) => Awaitable<Policy>

/** Makes the limiter of a policy, once for all policies that say the same. */
export type LimiterMaker = (policy: Policy) => EdgeLimiter

/** One limit. */
export interface LimitOptions<Request> extends NoPolicy {
  /**
   * A policy, for which a limiter in this process is made. Or a function that says which policy is for a request, such as that of its user's
   * plan: policies that say the same have one limiter and one budget for each key, however often they are made anew, and there may be 1,000
   * different ones. Make them of your own data, not of what clients send.
   */
  readonly policy?: Policy | PolicyChoice<Request>
  /** Or a limiter, of this process or of a fleet. Or, beside `policy`, what makes the limiter of a policy: `(policy) => createRedisLimiter(policy, { client })`. */
  readonly limiter?: EdgeLimiter | LimiterMaker
  /** Who is limited; default the address of the socket. Several for `allOf`. */
  readonly key?: KeySource<Request>
  /** Tokens that a request takes, default 1; 0 lets it pass uncounted. */
  readonly cost?: number | ((request: Request, facts: RequestFacts) => Awaitable<number>)
  /** Count as ever, but let everything pass, and tell clients nothing; `onDenied` is told. */
  readonly shadow?: boolean
  /** What the tokens are, for `RateLimit-Policy`; default `requests`. */
  readonly unit?: QuotaUnit
  /** What being denied by this limit is; default `quota-exceeded`. */
  readonly problem?: ProblemKind
  /** Delay requests of a key that has used more than so much, before it is denied: `{ after: 50, delay: (over) => over * 100 }`. */
  readonly slowDown?: SlowDownOptions<Request>
  /** Block a key that is denied again and again: an option of the limiter that is made for `policy`. A limiter of your own has it itself. */
  readonly banAfter?: BanOptions
}

/**
 * Which requests count, by the status of their response: `failures` those from 400 on, `successes` those below. What does not count comes
 * back when the response has ended; until then it is taken, so that never more are under way than the limit allows. Requests whose
 * response never ended count, as do those that end after their key was as good as new: nothing is left of them to come back.
 *
 * Nothing comes back of a key that has `allOf` for a policy of its own, and `allOf` itself is refused: its policies wear off apart. Nor of what
 * was decided without the store: that was charged to this process's share, and the store is told of it afterwards.
 *
 * Of `fixedWindow` never more than the limit count. Of the others a client that holds requests open on purpose, until part of their
 * charge has worn off, may get at most one burst beyond the policy: who gives back only what surely has not worn off would deny clients that
 * have several requests under way and never fail.
 */
export type Counts<Request> = 'all' | 'failures' | 'successes' | ((status: number, request: Request) => Awaitable<boolean>)

/** What `onDenied` may change about the answer. */
export interface AnswerChange {
  /** From 200 to 599, of a response with a body: not 204, 205 and 304. */
  readonly status?: number
  /** Set after those of the answer. */
  readonly headers?: readonly HeaderPair[]
  /** A string is sent as text, an object as JSON. */
  readonly body?: string | Body | object
}

/** What all adapters take. */
export interface GatekeeperOptions<Request> extends LimitOptions<Request> {
  /**
   * Several limits at once, instead of one: a request passes when all let it, and otherwise none is charged. Up to 8, each with its own name.
   * Those of this process are looked at first; those of a fleet are then asked one after another, up to the first that denies.
   */
  readonly limits?: readonly (LimitOptions<Request> & OneLimit)[]
  /** Requests that pass uncounted. */
  readonly skip?: (request: Request, facts: RequestFacts) => Awaitable<boolean>
  /** Default `all`. Places of `concurrency` come back in any case. */
  readonly counts?: Counts<Request>
  /** Default `draft-11`. */
  readonly headers?: HeaderVersion | HeaderOptions
  /** Default `problem`. */
  readonly body?: BodyOption<Request>
  /** Of a denial, default 429; or of each kind: `{ denied: 429, impossible: 422, listed: 403, outage: 503 }`. */
  readonly status?: number | Partial<Record<DenialKind, number>>
  /** Told of each denial, also in the shadow. What it returns changes the answer. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that only looks returns nothing
  readonly onDenied?: (denial: Denial, request: Request) => Awaitable<AnswerChange | undefined | void>
  readonly onOutage?: OutageOption<Request>
}

/** The same, of which nothing contradicts another. */
export type LimitingOptions<Request> = GatekeeperOptions<Request> & LimitChoice

/** A limit has one of these; or a policy, and a function that makes its limiter. */
export type OneLimit = { readonly policy?: undefined } | { readonly limiter?: LimiterMaker }

/** What options have in common with all: one limit, or several, of which each has a cost and so on of its own. */
export type LimitChoice =
  | (OneLimit & { readonly limits?: undefined })
  | {
      readonly policy?: undefined
      readonly limiter?: undefined
      readonly cost?: undefined
      readonly unit?: undefined
      readonly problem?: undefined
    }
