import { type Awaitable, chained, isPromise } from '../../awaitable.js'
import type { Decision } from '../../decision.js'
import type { LimiterVerbs } from '../limiter-verbs.js'

/** More than any debt. */
const ALL = Number.MAX_SAFE_INTEGER

/**
 * Blocks keys as rate-limiter-flexible does: for exactly so long, whatever the window, after which all points are new. Nothing is remembered
 * here: under a block there is always something left, so that a denial of a point tells whether it is one.
 */
export class KeyBlocks {
  /** Whether every denial blocks. */
  readonly isAtDenial: boolean
  private readonly limiter: LimiterVerbs
  private readonly blockMs: number
  /** Those at a denial that the store is being told of: who is denied meanwhile, in this process, is denied by the same. */
  private readonly underWay = new Map<string, Promise<Decision>>()

  /** @param blockMs at a denial; 0 for none. */
  constructor(limiter: LimiterVerbs, blockMs: number) {
    this.limiter = limiter
    this.blockMs = blockMs
    this.isAtDenial = blockMs > 0
  }

  /** The block first, or somebody would slip through in between. @returns how the key then stands. */
  block(key: string, ms: number): Awaitable<Decision> {
    const { limiter } = this
    const given = chained(limiter.block(key, ms), () => limiter.refund(key, ALL))
    // Of a sliding window the one before may leave nothing, which a refund does not change.
    const blocked = chained(given, (standing) =>
      standing.remaining > 0 ? standing : chained(limiter.reset(key), () => limiter.block(key, ms)),
    )
    // What the answer took on its way is over already; there it is not told either.
    return chained(blocked, (standing) =>
      standing.allowed ? standing : { ...standing, retryAfterMs: Math.max(standing.retryAfterMs, Math.round(ms)) },
    )
  }

  /** Blocks a key of which so many points were denied, unless it is blocked. @returns the denial as it then is. */
  afterDenial(denial: Decision, key: string, points: number): Awaitable<Decision> {
    if (!this.isAtDenial || denial.source === 'outage' || isBlocked(denial, points)) return denial
    if (denial.remaining === 0 && denial.retryAfterMs !== Number.POSITIVE_INFINITY) return this.blockedNow(denial, key)
    // Where more is asked for than is left, or than there ever is, only a point alone tells whether the key is blocked.
    return chained(this.limiter.peek(key), (standing) => {
      const isOnDenyList = standing.retryAfterMs === Number.POSITIVE_INFINITY
      return isOnDenyList || standing.source === 'outage' || isBlocked(standing) ? denial : this.blockedNow(denial, key)
    })
  }

  private blockedNow(denial: Decision, key: string): Awaitable<Decision> {
    const { underWay } = this
    const blocking = underWay.get(key) ?? this.block(key, this.blockMs)
    if (isPromise(blocking) && !underWay.has(key)) {
      underWay.set(key, blocking)
      const isOver = (): unknown => underWay.delete(key)
      blocking.then(isOver, isOver)
    }
    return chained(blocking, ({ retryAfterMs }) => ({ ...denial, retryAfterMs }))
  }
}

/** Whether it is a block that denies, of an answer about so many points: where enough is left nothing else does. */
export function isBlocked({ allowed, remaining, source }: Decision, points = 1): boolean {
  return !allowed && remaining >= points && source !== 'outage'
}
