import type { NextFunction, Request, Response } from 'express'
import type { Awaitable } from '../../awaitable.js'
import { PolicyError } from '../../errors.js'
import { asGiven, checkFunction, checkOptions, isInteger } from '../../options/option-checks.js'
import { checkedTokenCount, checkedWindowMs } from '../../policy/policy-options.js'
import { checkedPolicyName, type MakeLimiter } from '../limiter-verbs.js'
import { type Ipv6Subnet, requestIpKey } from './ip-keys.js'
import type { SluicegateStore } from './sluicegate-store.js'

/** A function of the request, as express-rate-limit calls it. */
export type OfRequest<Value> = (request: Request, response: Response) => Awaitable<Value>

/** Answers a denied request. Headers are set already. */
export type DenialHandler = (request: Request, response: Response, next: NextFunction, used: UsedOptions) => unknown

/** Receives errors that cannot be passed to a request. */
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
  /** The body of a denial, for `response.send`, or a function of the request. */
  readonly message?: unknown
  /** Default 429. */
  readonly statusCode?: number
  /** `X-RateLimit-*`, default true. */
  readonly legacyHeaders?: boolean
  /** The older name of `legacyHeaders`. */
  readonly headers?: boolean
  /** Default false; true is `draft-6`. */
  readonly standardHeaders?: boolean | StandardHeaders
  /** The name of the policy, which `draft-8` shows; default `5-in-1min`. */
  readonly identifier?: string
  /** Seconds for `Retry-After`, instead of the exact value. */
  readonly retryAfter?: number | OfRequest<number>
  /** The property of the request with the count; default `rateLimit`. */
  readonly requestPropertyName?: string
  /** Requests that failed are not counted. */
  readonly skipFailedRequests?: boolean
  /** Requests that succeeded are not counted. */
  readonly skipSuccessfulRequests?: boolean
  /** Default: a status below 400. */
  readonly requestWasSuccessful?: OfRequest<boolean>
  /** True for requests that pass uncounted. */
  readonly skip?: OfRequest<boolean>
  /** What requests are counted by; default {@link requestIpKey}. */
  readonly keyGenerator?: OfRequest<string | number | bigint | undefined>
  /** Default 56. */
  readonly ipv6Subnet?: Ipv6Subnet
  /** Default: sends `statusCode` and `message`. */
  readonly handler?: DenialHandler
  /** Requests pass that the limiter cannot decide. Default false. */
  readonly passOnStoreError?: boolean
  /** Default `console`. */
  readonly logger?: Logger
  /**
   * `false`, or an object such as `{ trustProxy: false }`, disables warnings that express-rate-limit has, too: `trustProxy`,
   * `xForwardedForHeader` and `keyGeneratorIpFallback`. Other names have no effect.
   */
  readonly validate?: boolean | Readonly<Record<string, boolean>>
  /** Makes the limiter, for several processes `(policy) => createLimiter(policy, { store: redis(client) })`. */
  readonly create?: MakeLimiter
  /** Instead: a store of this library, `new MemoryStore()`. Other stores are refused. */
  readonly store?: SluicegateStore
}

export type StandardHeaders = 'draft-6' | 'draft-7' | 'draft-8'

/** The options with their defaults. */
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

const OPTIONS = [
  'windowMs',
  'limit',
  'max',
  'message',
  'statusCode',
  'legacyHeaders',
  'headers',
  'standardHeaders',
  'identifier',
  'retryAfter',
  'requestPropertyName',
  'skipFailedRequests',
  'skipSuccessfulRequests',
  'requestWasSuccessful',
  'skip',
  'keyGenerator',
  'ipv6Subnet',
  'handler',
  'passOnStoreError',
  'logger',
  'validate',
  'create',
  'store',
] satisfies (keyof RateLimitOptions)[]

const OF_SLOW_DOWN =
  'is of express-slow-down: say slowDown in rateLimit() of sluicegate/express, { policy, slowDown: { after, delay, maxDelay } }'

/** Options of older versions and related libraries that are not supported, with what to write instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  onLimitReached: 'is not an option any more: use handler',
  draft_polli_ratelimit_headers: "is not an option any more: use standardHeaders: 'draft-6'",
  delayAfter: OF_SLOW_DOWN,
  delayMs: OF_SLOW_DOWN,
  maxDelayMs: OF_SLOW_DOWN,
}

const EXAMPLE = '{ windowMs: 60_000, limit: 100 }'
const MOST_LIMIT = 1_000_000_000
const FUNCTIONS = ['requestWasSuccessful', 'skip', 'keyGenerator', 'handler'] as const
const DRAFTS: readonly unknown[] = ['draft-6', 'draft-7', 'draft-8'] satisfies StandardHeaders[]
const WINDOW_UNITS = [
  ['day', 86_400_000],
  ['hr', 3_600_000],
  ['min', 60_000],
] as const

/** Options from {@link checkedNames} with the defaults of express-rate-limit. @throws {PolicyError} */
export function usedOptions(options: RateLimitOptions): UsedOptions {
  const {
    windowMs = 60_000,
    max = 5,
    limit = max,
    message = 'Too many requests, please try again later.',
    statusCode = 429,
    headers = true,
    legacyHeaders = headers,
    standardHeaders = false,
    identifier = defaultIdentifier(limit, windowMs),
    retryAfter,
    requestPropertyName = 'rateLimit',
    skipFailedRequests = false,
    skipSuccessfulRequests = false,
    requestWasSuccessful = (_request, response) => response.statusCode < 400,
    skip = () => false,
    handler = sendMessage,
    passOnStoreError = false,
    logger = console,
  } = options
  checkLogger(logger)
  for (const name of FUNCTIONS) {
    checkFunction(name, options[name], 'must be a function of the request')
  }
  return Object.freeze({
    windowMs: checkedWindow(windowMs),
    limit: checkedLimit(limit),
    message,
    statusCode: checkedStatus(statusCode),
    legacyHeaders,
    standardHeaders: checkedDraft(standardHeaders),
    identifier: checkedIdentifier(identifier),
    retryAfter: checkedRetryAfter(retryAfter),
    requestPropertyName,
    skipFailedRequests,
    skipSuccessfulRequests,
    requestWasSuccessful,
    skip,
    keyGenerator: keyGeneratorOf(options),
    handler,
    passOnStoreError,
    logger,
  })
}

/** `5-in-1min`, as in express-rate-limit. */
function defaultIdentifier(limit: number, windowMs: number): string {
  for (const [unit, ms] of WINDOW_UNITS) {
    const many = windowMs / ms
    if (many >= 1) return `${limit}-in-${many}${unit}${many > 1 && unit !== 'min' ? 's' : ''}`
  }
  return `${limit}-in-${windowMs / 1000}sec`
}

async function sendMessage(request: Request, response: Response, _: unknown, { statusCode, message }: UsedOptions): Promise<void> {
  response.status(statusCode)
  const body: unknown = typeof message === 'function' ? await message(request, response) : message
  if (!response.writableEnded) response.send(body)
}

/** The options to read, see `asGiven`. @throws {PolicyError} on an option that is not supported. */
export function checkedNames(options: RateLimitOptions): RateLimitOptions {
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined)
  for (const [name, value] of given) {
    const mend = Object.hasOwn(INSTEAD, name) ? INSTEAD[name] : undefined
    if (mend !== undefined) throw new PolicyError('OPTION_INVALID', name, value, mend)
  }
  checkOptions(typeof options === 'object' && options !== null ? Object.fromEntries(given) : options, OPTIONS, EXAMPLE)
  return asGiven(options, OPTIONS)
}

function checkedLimit(limit: unknown): number {
  if (typeof limit === 'function') {
    const mend =
      'must be a number: say policy: (request) => ... in rateLimit() of sluicegate/express, or keep express-rate-limit with SluicegateStore'
    throw new PolicyError('LIMIT_INVALID', 'limit', limit, mend)
  }
  return limit === 0 ? 0 : checkedTokenCount('limit', limit, MOST_LIMIT)
}

/** Checked when the middleware is made: an error while an error is logged would end the process. */
function checkLogger(logger: unknown): void {
  if (typeof logger === 'object' && typeof (logger as Logger | null)?.error === 'function') return
  throw new PolicyError('OPTION_INVALID', 'logger', logger, 'must be an object with a method error, such as console')
}

function checkedWindow(windowMs: unknown): number {
  if (typeof windowMs === 'number') return checkedWindowMs(windowMs, 'windowMs')
  throw new PolicyError('WINDOW_INVALID', 'windowMs', windowMs, 'must be a number of milliseconds')
}

function checkedStatus(statusCode: unknown): number {
  if (isInteger(statusCode, 200, 599)) return statusCode
  throw new PolicyError('OPTION_INVALID', 'statusCode', statusCode, 'must be the status of a response, from 200 to 599')
}

function checkedDraft(standardHeaders: boolean | StandardHeaders): false | StandardHeaders {
  if (standardHeaders === true) return 'draft-6'
  if (standardHeaders === false || DRAFTS.includes(standardHeaders)) return standardHeaders
  throw new PolicyError('OPTION_INVALID', 'standardHeaders', standardHeaders, `must be true, false, ${DRAFTS.join(', ')}`)
}

function checkedIdentifier(identifier: unknown): string {
  if (typeof identifier === 'string') return checkedPolicyName('identifier', identifier)
  throw new PolicyError(
    'OPTION_INVALID',
    'identifier',
    identifier,
    'must be a string: it is the name of the policy, the same for all requests',
  )
}

function checkedRetryAfter(retryAfter: unknown): number | OfRequest<number> | undefined {
  if (retryAfter === undefined || typeof retryAfter === 'function' || (typeof retryAfter === 'number' && retryAfter >= 0)) {
    return retryAfter as number | OfRequest<number> | undefined
  }
  throw new PolicyError('OPTION_INVALID', 'retryAfter', retryAfter, 'must be a number of seconds >= 0 or a function of the request')
}

function keyGeneratorOf({ keyGenerator, ipv6Subnet, validate }: RateLimitOptions): UsedOptions['keyGenerator'] {
  if (keyGenerator === undefined) return requestIpKey(ipv6Subnet ?? 56, validate)
  if (ipv6Subnet === undefined) return keyGenerator
  const mend = 'has no effect beside keyGenerator: call ipKeyGenerator(request.ip, ipv6Subnet) there'
  throw new PolicyError('OPTION_INVALID', 'ipv6Subnet', ipv6Subnet, mend)
}

/** In milliseconds, for `windowMs`. */
export const SECOND = 1_000
export const MINUTE: number = 60 * SECOND
export const HOUR: number = 60 * MINUTE
export const DAY: number = 24 * HOUR
