import type { NextFunction, Request, Response } from 'express'
import { type Awaitable, chained, isPromise } from '../../awaitable.js'
import { preciseClock } from '../../clock.js'
import { PolicyError } from '../../errors.js'
import { retryAfterS } from '../../headers/quota.js'
import { fittedKey } from '../../keys/fitted-key.js'
import { denialOf } from '../../middleware/denial.js'
import { bodyMaker, statusesOf } from '../../middleware/denial-response.js'
import type { LimitRule } from '../../middleware/limit.js'
import type { Asked } from '../../middleware/limit-result.js'
import { limitRules } from '../../middleware/limits.js'
import { MisuseWatch } from '../../middleware/misuse-watch.js'
import { faultOf, followLater, isGone, sendAnswer } from '../../middleware/node-exchange.js'
import type { OutageOption } from '../../middleware/outage-choice.js'
import { onceInProcess } from '../../once-in-process.js'
import type { LimiterVerbs } from '../limiter-verbs.js'
import { decidingLimiter } from './deciding-limiter.js'
import { DecidedHits, type HitCount } from './hit-counts.js'
import { addressCheck, validates } from './ip-keys.js'
import { ToldLimit } from './limit-info.js'
import { type RateLimitOptions, type UsedOptions, usedOptions } from './rate-limit-options.js'

/** Told of the first requests. */
type OnRequest = (request: Pick<Request, 'socket'>) => OnRequest | undefined

/** Middleware of Express, with what express-rate-limit puts beside it. */
export interface RateLimitMiddleware {
  (request: Request, response: Response, next: NextFunction): void
  /** The key begins anew. */
  resetKey(key: string): Promise<void>
  /** How often a key was counted, or undefined where nothing is known of it. */
  getKey(key: string): Promise<HitCount | undefined>
}

/**
 * Middleware of Express that takes the options of express-rate-limit, and answers as it does: statuses, headers and bodies are the same.
 * What is denied is not counted; without `create` windows are counted in the shared memory of this process. What the functions among
 * the options throw goes to `next`.
 *
 * @throws {PolicyError} on an option that cannot be honoured; the message says what to write instead.
 * @example
 * app.use(rateLimit({ windowMs: 15 * 60_000, limit: 100, standardHeaders: 'draft-8', legacyHeaders: false }))
 */
export function rateLimit(options: RateLimitOptions = {}): RateLimitMiddleware {
  const used = usedOptions(options)
  const { skip, keyGenerator } = used
  const limiter = decidingLimiter(options, used)
  const rule = requestRule(limiter, used)
  const hits = new DecidedHits(limiter)
  const told = new ToldLimit(used, hits)
  const looksAtKeys = options.keyGenerator !== undefined && validates(options.validate, 'keyGeneratorIpFallback')
  const checkAddress = looksAtKeys ? addressCheck() : undefined

  const ask = (request: Request, response: Response): Awaitable<Asked | undefined> =>
    chained(skip(request, response), (isSkipped) => {
      if (isSkipped) return undefined
      return chained(keyGenerator(request, response), (key) => {
        checkAddress?.(key, request)
        return rule.take(keyText(key), 1, request)
      })
    })

  /** Whether the request goes on. */
  const follow = (asked: Asked | undefined, request: Request, response: Response, next: NextFunction): boolean => {
    if (asked?.denies === true && asked.decision.source === 'outage') {
      answerOutage(asked, response)
      return false
    }
    // Nobody knows how often a request was counted that passes because the limiter could not decide.
    if (asked !== undefined && !(used.passOnStoreError && asked.decision.source === 'outage')) told.tell(asked, request, response)
    if (asked?.denies === true) {
      deny(told, used, request, response, next).catch((error) => next(faultOf(error)))
      return false
    }
    if (asked?.isOpen === true) settleAtEnd(asked, used, request, response)
    return !isGone(request, response)
  }

  let onRequest: OnRequest | undefined = ({ socket }) => requestWatch.serving((socket?.bytesRead ?? 0) > 0)
  const middleware = (request: Request, response: Response, next: NextFunction): void => {
    if (isGone(request, response)) return
    onRequest = onRequest?.(request)
    let asked: Awaitable<Asked | undefined>
    try {
      asked = ask(request, response)
    } catch (error) {
      next(faultOf(error))
      return
    }
    if (isPromise(asked)) followLater(asked, (later) => follow(later, request, response, next), next)
    else if (follow(asked, request, response, next)) next()
  }
  return Object.assign(middleware, {
    resetKey: async (key: string) => {
      await limiter.reset(keyText(key))
    },
    getKey: async (key: string) => hits.seen(keyText(key)),
  })
}

async function deny(told: ToldLimit, used: UsedOptions, request: Request, response: Response, next: NextFunction): Promise<void> {
  const { retryAfter, handler } = used
  if (retryAfter !== undefined) {
    told.tellRetryAfter(typeof retryAfter === 'function' ? await retryAfter(request, response) : retryAfter, response)
  }
  await handler(request, response, next, used)
}

function keyText(key: unknown): string {
  const text = Number.isFinite(key) || typeof key === 'bigint' ? String(key) : key
  if (typeof text === 'string' && text !== '') return fittedKey(text)
  throw new PolicyError(
    'KEY_MISSING',
    'keyGenerator',
    key,
    'gave no key for this request: return a string or a finite number, or let skip pass such requests',
  )
}

/** Told of each request that is asked about. */
export const requestWatch = /* @__PURE__ */ onceInProcess('misuse watch of moved routes', () => new MisuseWatch())

/** What asks a limiter about requests, as all middleware here does it. */
export function requestRule(limiter: LimiterVerbs, used: UsedOptions): LimitRule<Request> {
  const { skipFailedRequests, skipSuccessfulRequests, passOnStoreError, logger } = used
  const mayComeBack = skipFailedRequests || skipSuccessfulRequests
  const pass: OutageOption<Request> = ({ error }) => {
    if (error !== undefined) logger.error(error, 'error from the limiter, the request passes without it')
    return 'open'
  }
  const [rule] = limitRules<Request>(
    { limiter, counts: mayComeBack ? 'successes' : 'all', ...(passOnStoreError && { onOutage: pass }) },
    { watch: requestWatch, nowMs: preciseClock().nowMs },
  )
  return rule as LimitRule<Request>
}

/**
 * Gives back what was taken once the response has ended, if its success or failure is not to count. What ended otherwise counts, or
 * breaking off would be free.
 */
export function settleAtEnd(asked: Asked, used: UsedOptions, request: Request, response: Response): void {
  if (isGone(request, response)) {
    asked.settle(true)
    return
  }
  let isFinished = false
  response.once('finish', () => {
    isFinished = true
    const { logger } = used
    const failed = (error: unknown): void => {
      asked.settle(true)
      logger.error(error, 'error of requestWasSuccessful, the request counts')
    }
    try {
      const settled = settledBy(asked, used, request, response)
      if (isPromise(settled)) settled.catch(failed)
    } catch (error) {
      failed(error)
    }
  })
  response.once('close', () => {
    if (!isFinished) asked.settle(true)
  })
}

function settledBy(asked: Asked, used: UsedOptions, request: Request, response: Response): Awaitable<void> {
  const { requestWasSuccessful, skipFailedRequests, skipSuccessfulRequests } = used
  return chained(requestWasSuccessful(request, response), (isSuccess) =>
    asked.settle(isSuccess ? !skipSuccessfulRequests : !skipFailedRequests),
  )
}

const { outage: OUTAGE_STATUS } = statusesOf()
const bodyOf = bodyMaker()

/** Answers a request that the limiter could not decide, and that does not pass without it: no fault of the client, hence not 429. */
export function answerOutage(asked: Asked, response: Response): void {
  const { decision } = asked
  void chained(bodyOf(denialOf([asked], false), OUTAGE_STATUS, undefined), ({ type, text }) => {
    const headers = [
      ['Retry-After', retryAfterS(decision.retryAfterMs)],
      ['Content-Type', type],
      ['Cache-Control', 'no-store'],
    ] as const
    sendAnswer(response, { passes: false, status: OUTAGE_STATUS, headers, body: text, decision })
  })
}
