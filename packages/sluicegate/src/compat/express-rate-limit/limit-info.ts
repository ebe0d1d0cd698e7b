import type { Request, Response } from 'express'
import type { Decision } from '../../decision/decision.js'
import { HeaderWriter } from '../../headers/header-writer.js'
import type { LimitResult } from '../../middleware/limit-result.js'
import { setHeaders } from '../../middleware/node-exchange.js'
import type { Policy } from '../../policy/policy.js'
import type { DecidedHits } from './hit-counts.js'
import type { UsedOptions } from './rate-limit-options.js'

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
export class LimitInfo {
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
