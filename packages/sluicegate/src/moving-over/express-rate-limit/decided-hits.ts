import type { Decision } from '../../decision.js'
import { type Awaitable, chained } from '../../edge/awaitable.js'
import { PolicyError, StoreError } from '../../errors.js'
import { standingOf } from '../key-standing.js'
import type { LimiterVerbs } from '../limiter-verbs.js'
import { BEYOND_ANY_LIMIT, type HitCount, type Hits } from './hits.js'
import { resetTimeOf } from './reset-time.js'

/**
 * Hits under a limiter that decides by itself: what it lets pass is at most the limit, what it denies is above it. What is denied is
 * not counted.
 */
export class DecidedHits implements Hits {
  readonly limiter: LimiterVerbs
  /** Undefined where it is a function of the request. */
  private readonly limit: number | undefined

  /**
   * @param limit that of express-rate-limit: a number has to be what the limiter lets pass at once.
   * @throws {PolicyError} `OPTION_INVALID`
   */
  constructor(limiter: LimiterVerbs, limit: unknown) {
    const { burst, name } = limiter.policy
    if (typeof limit !== 'function' && limit !== burst) {
      throw new PolicyError('OPTION_INVALID', 'limit', limit, `must be ${burst}, which is what the policy '${name}' lets pass at once`)
    }
    this.limiter = limiter
    this.limit = typeof limit === 'number' ? limit : undefined
  }

  hit(key: string): Awaitable<HitCount> {
    return chained(this.limiter.take(key), (decision) => this.countOf(key, decision))
  }

  seen(key: string): Awaitable<HitCount | undefined> {
    return chained(this.limiter.peek(key), (decision) =>
      standingOf(this.limiter, key, decision).isAsNew ? undefined : this.countOf(key, decision),
    )
  }

  /** How a decision about a key is told. */
  countOf(key: string, decision: Decision): HitCount {
    const { allowed, source } = decision
    if (!allowed && source === 'outage') throw new StoreError('OUTAGE', 'the store does not answer, and without it this does not pass')
    const { burst, spent } = standingOf(this.limiter, key, decision)
    return { totalHits: allowed ? Math.max(1, spent) : this.above(burst), resetTime: resetTimeOf(decision) }
  }

  /** The limiter's policy may have changed since: what it denies is above both. */
  private above(burst: number): number {
    return this.limit === undefined ? BEYOND_ANY_LIMIT : Math.max(this.limit, burst) + 1
  }
}
