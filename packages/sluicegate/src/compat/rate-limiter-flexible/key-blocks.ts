import { type Awaitable, chained, isPromise } from '../../awaitable.js'
import type { Decision } from '../../decision/decision.js'
import { StoreError } from '../../errors.js'
import type { LimiterVerbs } from '../limiter-verbs.js'

/** Above any debt. */
const ALL = Number.MAX_SAFE_INTEGER

/**
 * Blocks keys as rate-limiter-flexible does: for an exact time, independent of the window, after which all points are new. No state is kept
 * here: a blocked key always has points remaining, which tells its denials from those of a spent key.
 */
export class KeyBlocks {
  /** Whether every denial blocks. */
  readonly isAtDenial: boolean
  private readonly limiter: LimiterVerbs
  private readonly blockMs: number
  /** Blocks after a denial that are on their way to the store: denials of this process in the meantime share them. */
  private readonly underWay = new Map<string, Promise<Decision>>()

  /** @param blockMs after a denial; 0 for none. */
  constructor(limiter: LimiterVerbs, blockMs: number) {
    this.limiter = limiter
    this.blockMs = blockMs
    this.isAtDenial = blockMs > 0
  }

  /** Blocks first, then refunds, so that no request passes in between. @returns the state of the key. */
  block(key: string, ms: number): Awaitable<Decision> {
    const { limiter } = this
    const given = chained(limiter.block(key, ms), () => limiter.refund(key, ALL))
    // With a sliding window the previous count may leave nothing, which a refund does not change.
    const blocked = chained(given, (state) => (state.remaining > 0 ? state : chained(limiter.reset(key), () => limiter.block(key, ms))))
    // The time that the answer took is over already; it is not subtracted.
    return chained(blocked, (state) => (state.allowed ? state : { ...state, retryAfterMs: Math.max(state.retryAfterMs, Math.round(ms)) }))
  }

  /** Blocks a key after a denial of `points`, unless it is blocked. @returns the denial with the block. */
  afterDenial(denial: Decision, key: string, points: number): Awaitable<Decision> {
    if (!this.isAtDenial || denial.source === 'outage' || isBlocked(denial, points)) return denial
    if (denial.remaining === 0 && denial.retryAfterMs !== Number.POSITIVE_INFINITY) return this.blockedNow(denial, key)
    // If more was requested than is left, or than there ever is, only a peek at one point tells whether the key is blocked.
    return chained(this.limiter.peek(key), (state) => {
      const isOnDenyList = state.retryAfterMs === Number.POSITIVE_INFINITY
      return isOnDenyList || state.source === 'outage' || isBlocked(state) ? denial : this.blockedNow(denial, key)
    })
  }

  private blockedNow(denial: Decision, key: string): Awaitable<Decision> {
    const { underWay } = this
    const blocking = underWay.get(key) ?? unlessFull(() => this.block(key, this.blockMs), denial)
    if (isPromise(blocking) && !underWay.has(key)) {
      underWay.set(key, blocking)
      const isOver = (): unknown => underWay.delete(key)
      blocking.then(isOver, isOver)
    }
    return chained(blocking, ({ retryAfterMs }) => ({ ...denial, retryAfterMs }))
  }
}

/** Without room for the block in a full table the denial is returned unchanged. */
function unlessFull(block: () => Awaitable<Decision>, denial: Decision): Awaitable<Decision> {
  const denialOr = (error: unknown): Decision => {
    if (error instanceof StoreError && error.code === 'TABLE_FULL') return denial
    throw error
  }
  try {
    const blocked = block()
    return isPromise(blocked) ? blocked.catch(denialOr) : blocked
  } catch (error) {
    return denialOr(error)
  }
}

/** Whether a denial of `points` comes from a block: otherwise enough points would be left. */
export function isBlocked({ allowed, remaining, source }: Decision, points = 1): boolean {
  return !allowed && remaining >= points && source !== 'outage'
}
