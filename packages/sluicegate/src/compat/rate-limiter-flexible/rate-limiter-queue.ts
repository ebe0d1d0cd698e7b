import type { Decision } from '../../decision.js'
import { PolicyError, StoreError } from '../../errors.js'
import type { WaitOptions } from '../../limiter.js'
import type { LimiterVerbs } from '../limiter-verbs.js'
import type { RateLimiterSluicegate } from './rate-limiter-sluicegate.js'

/** Options of {@link RateLimiterQueue}. */
export interface RateLimiterQueueOptions {
  /** How many may wait for one key at once; default as many as the limiter's `maxWaiters` lets wait for all keys together. */
  readonly maxQueueSize?: number
}

/** A limiter whose callers can wait: those in memory and those of a fleet. */
export interface WaitingVerbs extends LimiterVerbs {
  wait(key: string, options?: WaitOptions): Promise<Decision>
}

/** The key of calls that name none, as in rate-limiter-flexible. */
const KEY = 'limiter'

/** What {@link RateLimiterQueue} rejects with where nothing is to be waited for. */
export class RateLimiterQueueError extends Error {
  override readonly name = 'RateLimiterQueueError'
}

/**
 * `RateLimiterQueue` of rate-limiter-flexible: callers of a key wait for tokens, first come, first served, by the limiter's own `wait`. Its
 * `maxWaiters`, 10,000 unless the limiter was told otherwise, bounds those who wait for all keys together; `blockDuration` does not apply.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 * @example
 * const queue = new RateLimiterQueue(new RateLimiterMemory({ points: 5, duration: 1 }), { maxQueueSize: 100 })
 * await queue.removeTokens(1)
 */
export class RateLimiterQueue {
  private readonly limiter: RateLimiterSluicegate<WaitingVerbs>
  private readonly maxQueueSize: number
  /** How many wait for each key: keys that nobody waits for are not in it. */
  private readonly waiting = new Map<string, number>()

  constructor(limiter: RateLimiterSluicegate<WaitingVerbs>, { maxQueueSize = Number.POSITIVE_INFINITY }: RateLimiterQueueOptions = {}) {
    if (typeof limiter?.getKey !== 'function' || typeof limiter.limiter?.wait !== 'function') {
      throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'must be a limiter such as new RateLimiterMemory({ points, duration })')
    }
    if (typeof maxQueueSize !== 'number' || !(maxQueueSize >= 0)) {
      throw new PolicyError('OPTION_INVALID', 'maxQueueSize', maxQueueSize, 'must be a number >= 0')
    }
    this.limiter = limiter
    this.maxQueueSize = maxQueueSize
  }

  /** Tokens that may be had now. Of a limiter that cannot be read all of them, as there. */
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
   * @param expiresUnixAt Unix time in seconds after which they are not wanted any more; 0 is never. What cannot be had by then rejects at once.
   * @returns {Promise} of what is left. It rejects with {@link RateLimiterQueueError} where more is asked for than there ever is, the queue is
   * full, or the time has come; with `StoreError` where the limiter cannot decide.
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
    if (decision.source === 'outage')
      throw new StoreError('OUTAGE', 'the store does not answer, and without it nothing is to be waited for')
    if (decision.retryAfterMs > maxWaitMs) {
      throw new RateLimiterQueueError('The request to remove tokens expired before it could be fulfilled')
    }
    throw new RateLimiterQueueError('Number of requests reached the maximum of the limiter: raise maxWaiters')
  }
}
