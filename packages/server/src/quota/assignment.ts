/** A token bucket as Envoy runs it: it begins full, and fills evenly. */
export interface TokenBucket {
  readonly maxTokens: number
  readonly tokensPerFill: number
  readonly fillSeconds: number
}

/** What a data plane does with the requests of one bucket id, for `ttlSeconds` from the arrival of the message. */
export type Assignment =
  | { readonly kind: 'tokens'; readonly bucket: TokenBucket; readonly ttlSeconds: number }
  | { readonly kind: 'deny' | 'allow'; readonly ttlSeconds: number }
  /** Forgets the bucket id; the next request begins again. */
  | { readonly kind: 'abandon' }
