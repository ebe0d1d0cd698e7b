import type { Decision } from '../../decision/decision.js'
import { PolicyError, StoreError } from '../../errors.js'
import type { WaitOptions } from '../../limiter.js'
import { asGiven } from '../../options/option-checks.js'
import type { LimiterVerbs } from '../limiter-verbs.js'
import type { RateLimiterSluicegate } from './rate-limiter-sluicegate.js'

/** Options of {@link RateLimiterQueue}. */
export interface RateLimiterQueueOptions {
  /** Calls that may wait for one key; default as many as `maxWaiters` of the limiter allows for all keys together. */
  readonly maxQueueSize?: number
}

/** A limiter with `wait`: in memory or shared. */
export interface WaitingVerbs extends LimiterVerbs {
  wait(key: string, options?: WaitOptions): Promise<Decision>
}

/** The default key, as in rate-limiter-flexible. */
const KEY = 'limiter'

/** What {@link RateLimiterQueue} rejects with if a call cannot be satisfied. */
export class RateLimiterQueueError extends Error {
  override readonly name = 'RateLimiterQueueError'
}

/**
 * `RateLimiterQueue` of rate-limiter-flexible: calls wait for tokens of a key, first come, first served, by the limiter's own `wait`. Its
 * `maxWaiters`, default 10,000, bounds the waiting calls of all keys together; `blockDuration` does not apply.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 * @example
 * const queue = new RateLimiterQueue(new RateLimiterMemory({ points: 5, duration: 1 }), { maxQueueSize: 100 })
 * await queue.removeTokens(1)
 */
export class RateLimiterQueue {
  private readonly limiter: RateLimiterSluicegate<WaitingVerbs>
  private readonly maxQueueSize: number
  /** Waiting calls by key; keys without any are removed. */
  private readonly waiting = new Map<string, number>()

  constructor(limiter: RateLimiterSluicegate<WaitingVerbs>, options: RateLimiterQueueOptions = {}) {
    const { maxQueueSize = Number.POSITIVE_INFINITY } = asGiven(options, ['maxQueueSize'])
    if (typeof limiter?.getKey !== 'function' || typeof limiter.limiter?.wait !== 'function') {
      throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'must be a limiter such as new RateLimiterMemory({ points, duration })')
    }
    if (typeof maxQueueSize !== 'number' || !(maxQueueSize >= 0)) {
      throw new PolicyError('OPTION_INVALID', 'maxQueueSize', maxQueueSize, 'must be a number >= 0')
    }
    this.limiter = limiter
    this.maxQueueSize = maxQueueSize
  }

  /** Tokens that are available now. All of them if the limiter fails, as in rate-limiter-flexible. */
  async getTokensRemaining(key = KEY): Promise<number> {
    const { limiter } = this
    try {
      const known = await limiter.get(key)
      return known === null ? limiter.points : known.remainingPoints
    } catch {
      return limiter.points
    }
  }

  /**
   * Waits for tokens.
   *
   * @param expiresUnixAt Unix time in seconds of a deadline; 0 for none. A call that cannot meet it rejects at once.
   * @returns {Promise} of what remains. It rejects with {@link RateLimiterQueueError} if more is requested than there ever is, the queue is
   *   full, or the deadline has passed; with `StoreError` if the limiter cannot decide.
   */
  async removeTokens(tokens: number, key = KEY, expiresUnixAt = 0): Promise<number> {
    const { limiter, maxQueueSize } = this
    if (tokens > limiter.points) {
      throw new RateLimiterQueueError(`Requested tokens ${tokens} exceeds maximum ${limiter.points} tokens per interval`)
    }
    const named = limiter.getKey(key)
    if (!this.waiting.has(named)) {
      const decision = await limiter.limiter.take(named, tokens)
      if (decision.allowed) return decision.remaining
    }
    const queued = this.waiting.get(named) ?? 0
    if (queued >= maxQueueSize) throw new RateLimiterQueueError(`Number of requests reached it's maximum ${maxQueueSize}`)
    this.waiting.set(named, queued + 1)
    try {
      return await this.waited(named, tokens, expiresUnixAt)
    } finally {
      const left = (this.waiting.get(named) as number) - 1
      if (left === 0) this.waiting.delete(named)
      else this.waiting.set(named, left)
    }
  }

  private async waited(named: string, cost: number, expiresUnixAt: number): Promise<number> {
    const maxWaitMs = expiresUnixAt > 0 ? Math.max(0, expiresUnixAt * 1000 - Date.now()) : Number.POSITIVE_INFINITY
    const decision = await this.limiter.limiter.wait(named, { cost, maxWaitMs })
    if (decision.allowed) return decision.remaining
    if (decision.source === 'outage') throw new StoreError('OUTAGE', 'the store does not answer, and calls cannot wait without it')
    if (decision.retryAfterMs > maxWaitMs) {
      throw new RateLimiterQueueError('The request to remove tokens expired before it could be fulfilled')
    }
    throw new RateLimiterQueueError('Number of requests reached the maximum of the limiter: raise maxWaiters')
  }
}
