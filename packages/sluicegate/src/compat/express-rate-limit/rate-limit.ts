import type { NextFunction, Request, Response } from 'express'
import { type Awaitable, chained, isPromise } from '../../awaitable.js'
import { makeLimiter } from '../../create-limiter.js'
import type { Decision } from '../../decision/decision.js'
import { droppable } from '../../dropped-promise.js'
import { PolicyError } from '../../errors.js'
import { HeaderWriter } from '../../headers/header-writer.js'
import { retryAfterS } from '../../headers/quota.js'
import { fittedKey } from '../../keys/key-reader.js'
import { type Denial, denialOf } from '../../middleware/denial.js'
import { bodyMaker } from '../../middleware/denial-response.js'
import { KeylessRequest } from '../../middleware/keyless.js'
import type { Limit } from '../../middleware/limit.js'
import type { LimitResult } from '../../middleware/limit-result.js'
import { limitsOf } from '../../middleware/limits.js'
import type { OutageOption } from '../../middleware/middleware-options.js'
import { MisuseWatch } from '../../middleware/misuse-watch.js'
import { faultOf, followLater, isGone, sendDenial, setHeaders } from '../../middleware/node-exchange.js'
import { onceInProcess } from '../../once-in-process.js'
import { changedPolicy, type Policy } from '../../policy/policy.js'
import { meantWindow } from '../../policy/policy-options.js'
import { fixedWindow } from '../../policy/single-policy.js'
import { preciseClock } from '../../time/clock.js'
import { type LimiterVerbs, madeLimiter } from '../limiter-verbs.js'
import { DecidedHits, type HitCount } from './hit-counts.js'
import { addressCheck, validates } from './ip-keys.js'
import { checkedNames, type RateLimitOptions, type UsedOptions, usedOptions } from './rate-limit-options.js'
import { SluicegateStore } from './sluicegate-store.js'

/** Called with the first requests. */
type OnRequest = (request: Pick<Request, 'socket'>) => OnRequest | undefined

/** Express middleware with the methods that express-rate-limit adds to it. */
export interface RateLimitMiddleware {
  (request: Request, response: Response, next: NextFunction): void
  /** Resets the count of a key. */
  resetKey(key: string): Promise<void>
  /** The count of a key; undefined for an unknown key. */
  getKey(key: string): Promise<HitCount | undefined>
}

const watch = /* @__PURE__ */ onceInProcess('misuse watch of moved routes', () => new MisuseWatch())

/** An outage is not the client's fault, hence not 429. */
const OUTAGE_STATUS = 503
const KEYLESS_STATUS = 400

/**
 * Express middleware with the options of express-rate-limit, and its statuses, headers and bodies. Denied requests are not counted; without `create`
 * windows are counted in the shared memory of this process. Errors of the functions among the options go to `next`.
 *
 * @throws {PolicyError} on an option that is not supported; the message says what to write instead.
 * @example
 * app.use(rateLimit({ windowMs: 15 * 60_000, limit: 100, standardHeaders: 'draft-8', legacyHeaders: false }))
 */
export function rateLimit(options: RateLimitOptions = {}): RateLimitMiddleware {
  const checked = checkedNames(options)
  const used = usedOptions(checked)
  const { skip, keyGenerator } = used
  const limiter = decidingLimiter(checked, used)
  const limit = limitOf(limiter, used)
  const hits = new DecidedHits(limiter)
  const info = new LimitInfo(used, hits)
  const problemBody = bodyMaker<Request>()
  const checksKeys = checked.keyGenerator !== undefined && validates(checked.validate, 'keyGeneratorIpFallback')
  const checkAddress = checksKeys ? addressCheck() : undefined

  /** Undefined for a request that passes uncounted. */
  const take = (request: Request, response: Response): Awaitable<LimitResult | KeylessRequest | undefined> =>
    chained(skip(request, response), (isSkipped) => {
      if (isSkipped) return undefined
      return chained(keyGenerator(request, response), (key) => {
        if (key === undefined || key === null || key === '') return new KeylessRequest(limiter.policy, () => key)
        checkAddress?.(key, request)
        return limit.take({ limit, key: keyText(key), cost: 1, metered: undefined }, request)
      })
    })

  /** True if the request goes on. */
  const apply = (result: LimitResult | KeylessRequest | undefined, request: Request, response: Response, next: NextFunction): boolean => {
    if (result instanceof KeylessRequest) {
      result.warnOfDefault()
      sendProblem(problemBody, result.denial, KEYLESS_STATUS, request, response)
      return false
    }
    if (result?.denies === true && result.decision.source === 'outage') {
      sendProblem(problemBody, denialOf([result], false), OUTAGE_STATUS, request, response)
      return false
    }
    // The count of a request that passes without the store is not known.
    if (result !== undefined && !(used.passOnStoreError && result.decision.source === 'outage')) info.publish(result, request, response)
    if (result?.denies === true) {
      deny(info, used, request, response, next).catch((error) => next(faultOf(error)))
      return false
    }
    if (result?.needsSettling === true) settleAtEnd(result, used, request, response)
    return !isGone(request, response)
  }

  let onRequest: OnRequest | undefined = ({ socket }) => watch.firstRequest((socket?.bytesRead ?? 0) > 0)
  const middleware = (request: Request, response: Response, next: NextFunction): void => {
    if (isGone(request, response)) return
    onRequest = onRequest?.(request)
    let result: Awaitable<LimitResult | KeylessRequest | undefined>
    try {
      result = take(request, response)
    } catch (error) {
      next(faultOf(error))
      return
    }
    if (isPromise(result)) followLater(result, (found) => apply(found, request, response, next), next)
    else if (apply(result, request, response, next)) next()
  }
  const reset = async (key: string): Promise<void> => {
    await limiter.reset(keyText(key))
  }
  return Object.assign(middleware, {
    resetKey: (key: string) => droppable(reset(key), 'resetKey', () => limiter.policy.name),
    getKey: async (key: string) => hits.seen(keyText(key)),
  })
}

/** The limit as the middleware of this library has it. */
function limitOf(limiter: LimiterVerbs, used: UsedOptions): Limit<Request> {
  const { skipFailedRequests, skipSuccessfulRequests, passOnStoreError, logger } = used
  const isRefunding = skipFailedRequests || skipSuccessfulRequests
  const pass: OutageOption<Request> = ({ error }) => {
    if (error !== undefined) logger.error(error, 'error from the limiter, the request passes without it')
    return 'open'
  }
  const [limit] = limitsOf<Request>(
    { limiter, counts: isRefunding ? 'successes' : 'all', ...(passOnStoreError && { onOutage: pass }) },
    { watch, nowMs: preciseClock().nowMs },
  )
  return limit as Limit<Request>
}

async function deny(info: LimitInfo, used: UsedOptions, request: Request, response: Response, next: NextFunction): Promise<void> {
  const { retryAfter, handler } = used
  if (retryAfter !== undefined) {
    info.setRetryAfter(typeof retryAfter === 'function' ? await retryAfter(request, response) : retryAfter, response)
  }
  await handler(request, response, next, used)
}

/** Answers what is no denial of the limit: in the form of the middleware of this library. */
function sendProblem(
  bodyFor: ReturnType<typeof bodyMaker<Request>>,
  denial: Denial,
  status: number,
  request: Request,
  response: Response,
): void {
  const { decision } = denial
  void chained(bodyFor(denial, status, request), ({ type, text }) => {
    const wait = Number.isFinite(decision.retryAfterMs) ? [['Retry-After', retryAfterS(decision.retryAfterMs)] as const] : []
    const headers = [...wait, ['Content-Type', type], ['Cache-Control', 'no-store']] as const
    sendDenial(response, { passes: false, status, headers, body: text, decision })
  })
}

/** Refunds a request after its response if its success or failure does not count. A response that did not finish counts, or clients could avoid being counted by disconnecting. */
function settleAtEnd(result: LimitResult, used: UsedOptions, request: Request, response: Response): void {
  if (isGone(request, response)) {
    result.settle(true)
    return
  }
  let isFinished = false
  response.once('finish', () => {
    isFinished = true
    const fail = (error: unknown): void => {
      result.settle(true)
      used.logger.error(error, 'error of requestWasSuccessful, the request counts')
    }
    try {
      const settled = settleBySuccess(result, used, request, response)
      if (isPromise(settled)) settled.catch(fail)
    } catch (error) {
      fail(error)
    }
  })
  response.once('close', () => {
    if (!isFinished) result.settle(true)
  })
}

function settleBySuccess(result: LimitResult, used: UsedOptions, request: Request, response: Response): Awaitable<void> {
  const { requestWasSuccessful, skipFailedRequests, skipSuccessfulRequests } = used
  return chained(requestWasSuccessful(request, response), (isSuccess) =>
    result.settle(isSuccess ? !skipSuccessfulRequests : !skipFailedRequests),
  )
}

function keyText(key: unknown): string {
  const text = Number.isFinite(key) || typeof key === 'bigint' ? String(key) : key
  if (typeof text === 'string' && text !== '') return fittedKey(text)
  throw new PolicyError(
    'KEY_MISSING',
    'keyGenerator',
    key,
    'returned no key for this request: return a string or a finite number, or use skip for requests without a key',
  )
}

/**
 * The limiter that decides for the middleware: that of the store, the one that `create` makes, or one in memory.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
function decidingLimiter({ create, store }: RateLimitOptions, { limit, windowMs, identifier }: UsedOptions): LimiterVerbs {
  // A policy's limit is at least 1: for 0 it only determines the ends of windows.
  const policy = fixedWindow({ limit: Math.max(1, limit), window: meantWindow(windowMs), name: identifier })
  const limiter = store === undefined ? madeLimiter(create ?? ((own) => makeLimiter(own)), policy) : limiterOf(store, create, policy)
  return limit === 0 ? denyingAll(limiter) : limiter
}

function limiterOf(store: unknown, create: unknown, policy: Policy): LimiterVerbs {
  if (!(store instanceof SluicegateStore)) {
    const mend =
      'must be a MemoryStore or a SluicegateStore: for one of this library say create: (policy) => createLimiter(policy, { store: redis(client) }), or keep express-rate-limit for stores of others'
    throw new PolicyError('OPTION_INVALID', 'store', store, mend)
  }
  if (create !== undefined) throw new PolicyError('OPTION_INVALID', 'create', create, 'makes a limiter: give that or store, and not both')
  return store.decideBy(policy)
}

/** A limit of 0: everything is denied, with the end of the window for `Retry-After`. */
function denyingAll(limiter: LimiterVerbs): LimiterVerbs {
  const denied = (decision: Decision): Decision => {
    const { retryAfterMs, resetAfterMs } = decision
    return { ...decision, allowed: false, limit: 0, remaining: 0, retryAfterMs: Math.max(1, retryAfterMs, resetAfterMs) }
  }
  // One for each policy, as header fields are cached by policy.
  const made = new WeakMap<Policy, Policy>()
  const none = (policy: Policy): Policy => {
    const known = made.get(policy) ?? changedPolicy(policy, { limit: 0, burst: 0 })
    made.set(policy, known)
    return known
  }
  return {
    get policy() {
      return none(limiter.policy)
    },
    policyOf: (key) => none(limiter.policyOf?.(key) ?? limiter.policy),
    take: (key) => chained(limiter.take(key), denied),
    peek: (key) => limiter.peek(key),
    refund: (key, tokens) => limiter.refund(key, tokens),
    penalize: (key, tokens) => limiter.penalize(key, tokens),
    block: (key, duration) => limiter.block(key, duration),
    reset: (key) => limiter.reset(key),
    close: () => limiter.close(),
  }
}

/** What handlers find on the request. */
export interface RateLimitInfo {
  readonly limit: number
  /** At most one above the limit: denied requests are not counted. */
  readonly used: number
  readonly remaining: number
  readonly resetTime: Date | undefined
  readonly key: string
}

/** A request that was limited. */
export type AugmentedRequest = Request & Record<string, RateLimitInfo>

/** Publishes results as express-rate-limit does: on the request, and in the headers that its options ask for. */
class LimitInfo {
  private readonly used: UsedOptions
  private readonly hits: DecidedHits
  private readonly legacy: HeaderWriter | undefined
  private readonly standard: HeaderWriter | undefined

  constructor(used: UsedOptions, hits: DecidedHits) {
    const { legacyHeaders, standardHeaders } = used
    this.used = used
    this.hits = hits
    this.legacy = legacyHeaders ? new HeaderWriter({ version: 'x-ratelimit' }) : undefined
    this.standard = standardHeaders === false ? undefined : new HeaderWriter({ version: standardHeaders })
  }

  publish(result: LimitResult, request: Request, response: Response): void {
    const { requestPropertyName } = this.used
    const { legacy, standard } = this
    const { key, policy, passing: decision } = result
    ;(request as AugmentedRequest)[requestPropertyName] = this.infoOf(key as string, policy, decision)
    if (legacy !== undefined) setHeaders(response, legacy.write(policy, decision))
    if (standard === undefined || response.headersSent) return
    const isList = this.used.standardHeaders === 'draft-8'
    for (const [name, value] of standard.write(policy, decision)) {
      // In draft 8 each limit of a request has an item.
      if (isList && name.startsWith('RateLimit')) response.append(name, value)
      else response.setHeader(name, value)
    }
  }

  /** The option `retryAfter` overrides the exact value, if headers are written at all. */
  setRetryAfter(seconds: number, response: Response): void {
    if (response.headersSent || (this.legacy ?? this.standard) === undefined) return
    response.setHeader('Retry-After', String(seconds))
  }

  private infoOf(key: string, policy: Policy, decision: Decision): RateLimitInfo {
    const { totalHits, resetTime } = this.hits.countOf(key, decision)
    const { allowed, remaining } = decision
    const info = { limit: policy.burst, used: totalHits, remaining: allowed ? remaining : 0, resetTime, key }
    return Object.defineProperty(info, 'current', { configurable: false, enumerable: false, value: totalHits })
  }
}
