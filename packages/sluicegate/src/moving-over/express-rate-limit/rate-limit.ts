import type { NextFunction, Request, Response } from 'express'
import { type Awaitable, chained, isPromise } from '../../awaitable.js'
import type { Asked } from '../../edge/asked.js'
import { faultOf, followLater, isGone } from '../../edge/node-exchange.js'
import { PolicyError } from '../../errors.js'
import { fittedKey } from '../../keys/fitted-key.js'
import { addressCheck } from './address-check.js'
import { DecidedHits } from './decided-hits.js'
import { decidingLimiter } from './deciding-limiter.js'
import type { HitCount } from './hits.js'
import { answerOutage } from './outage-answer.js'
import type { RateLimitOptions, UsedOptions } from './rate-limit-options.js'
import { requestRule, requestWatch } from './request-rule.js'
import { settleAtEnd } from './settled-request.js'
import { ToldLimit } from './told-limit.js'
import { usedOptions } from './used-options.js'
import { validates } from './validates.js'

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
