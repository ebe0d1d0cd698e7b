/** A limit has one of these, and not both. */
export type OneLimit = { readonly policy?: undefined } | { readonly limiter?: undefined }

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
