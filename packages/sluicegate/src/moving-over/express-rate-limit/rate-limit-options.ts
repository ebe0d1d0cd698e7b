import type { NextFunction, Request, Response } from 'express'
import type { Awaitable } from '../../awaitable.js'
import type { MakeLimiter } from '../made-limiter.js'
import type { Ipv6Subnet } from './request-ip-key.js'
import type { SluicegateStore } from './sluicegate-store.js'

/** A function of the request, as express-rate-limit calls it. */
export type OfRequest<Value> = (request: Request, response: Response) => Awaitable<Value>

/** Answers a request that is denied. Headers are set already. */
export type DenialHandler = (request: Request, response: Response, next: NextFunction, used: UsedOptions) => unknown

/** Where errors are told that no request can hear of. */
export interface Logger {
  error(error: unknown, message?: string): void
}

/** Options of {@link rateLimit}: those of express-rate-limit 8. */
export interface RateLimitOptions {
  /** Milliseconds, default 60,000. Windows are aligned to UTC. */
  readonly windowMs?: number
  /** Default 5; 0 denies every request. */
  readonly limit?: number
  /** The older name of `limit`. */
  readonly max?: number
  /** The body of a denial, or a function of the request; what `response.send` takes. */
  readonly message?: unknown
  /** Default 429. */
  readonly statusCode?: number
  /** `X-RateLimit-*`, default true. */
  readonly legacyHeaders?: boolean
  /** The older name of `legacyHeaders`. */
  readonly headers?: boolean
  /** Default false; true is `draft-6`. */
  readonly standardHeaders?: boolean | StandardHeaders
  /** The name of the policy, which `draft-8` tells; default `5-in-1min`. */
  readonly identifier?: string
  /** Seconds that `Retry-After` says instead of the truth. */
  readonly retryAfter?: number | OfRequest<number>
  /** Where the count is left for handlers, default `rateLimit`. */
  readonly requestPropertyName?: string
  /** Requests that were not successful are not counted. */
  readonly skipFailedRequests?: boolean
  /** Requests that were successful are not counted. */
  readonly skipSuccessfulRequests?: boolean
  /** Default: a status below 400. */
  readonly requestWasSuccessful?: OfRequest<boolean>
  /** Requests that pass uncounted. */
  readonly skip?: OfRequest<boolean>
  /** Who is counted; default {@link requestIpKey}. */
  readonly keyGenerator?: OfRequest<string | number | bigint | undefined>
  /** Default 56. */
  readonly ipv6Subnet?: Ipv6Subnet
  /** Default: `statusCode` and `message`. */
  readonly handler?: DenialHandler
  /** Let requests pass that the limiter cannot decide. */
  readonly passOnStoreError?: boolean
  /** Default `console`. */
  readonly logger?: Logger
  /**
   * `false`, or `{ trustProxy: false }` and the like: leave out the warnings that express-rate-limit has too, `trustProxy`,
   * `xForwardedForHeader` and `keyGeneratorIpFallback`; any other has no effect.
   */
  readonly validate?: boolean | Readonly<Record<string, boolean>>
  /** Who makes the limiter, for a fleet `(policy) => createRedisLimiter(policy, { client })`. */
  readonly create?: MakeLimiter
  /** Or a store of this library, `new MemoryStore()`; any other store is for express-rate-limit itself. */
  readonly store?: SluicegateStore
}

export type StandardHeaders = 'draft-6' | 'draft-7' | 'draft-8'

/** The options that are in force. */
export interface UsedOptions {
  readonly windowMs: number
  readonly limit: number
  readonly message: unknown
  readonly statusCode: number
  readonly legacyHeaders: boolean
  readonly standardHeaders: false | StandardHeaders
  readonly identifier: string
  readonly retryAfter: number | OfRequest<number> | undefined
  readonly requestPropertyName: string
  readonly skipFailedRequests: boolean
  readonly skipSuccessfulRequests: boolean
  readonly requestWasSuccessful: OfRequest<boolean>
  readonly skip: OfRequest<boolean>
  readonly keyGenerator: OfRequest<string | number | bigint | undefined>
  readonly handler: DenialHandler
  readonly passOnStoreError: boolean
  readonly logger: Logger
}
