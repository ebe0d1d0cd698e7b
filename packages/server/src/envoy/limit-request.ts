import type { Entry } from './find-rule.js'

/** A request to Envoy's rate limit service, whatever protocol brought it. */
export interface LimitRequest {
  readonly domain: string
  readonly descriptors: readonly Descriptor[]
  /** Hits of each descriptor that says nothing else; 0 is the default, 1. */
  readonly hitsAddend: number
}

/** Who sends a request, in one of the ways that the rules may limit. */
export interface Descriptor {
  readonly entries: readonly Entry[]
  /** A limit in the place of the rule's. */
  readonly limit: LimitOverride | undefined
  /** 0 only looks. */
  readonly hitsAddend: number | undefined
  /** The hits are given back. */
  readonly isNegativeHits: boolean
}

export interface LimitOverride {
  readonly requestsPerUnit: number
  /** The number of Envoy's unit. */
  readonly unit: number
}

/** The answer to a {@link LimitRequest}. */
export interface LimitResponse {
  readonly over: boolean
  /** One for each descriptor, in their order. */
  readonly statuses: readonly DescriptorStatus[]
  /** For the response to the client of Envoy. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Dynamic metadata; undefined where it is not asked for. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined
}

export interface DescriptorStatus {
  readonly over: boolean
  /** Undefined where no limit applies. */
  readonly limit: CurrentLimit | undefined
  readonly remaining: number
  /** Whole seconds until the window ends; until the request would pass where it is over the limit of a bucket. */
  readonly resetS: number
}

export interface CurrentLimit {
  readonly requestsPerUnit: number
  /** The number of Envoy's unit; 0 for a window that is none. */
  readonly unit: number
  readonly name: string
}

/** A request that makes no sense. */
export class LimitRequestError extends Error {
  override readonly name = 'LimitRequestError'
  /** `unset`: the domain or the descriptors are empty. `invalid`: something else. */
  readonly reason: 'unset' | 'invalid'

  constructor(reason: LimitRequestError['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}
