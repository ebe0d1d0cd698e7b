import type { LimiterMaker } from './gatekeeper-options.js'

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
