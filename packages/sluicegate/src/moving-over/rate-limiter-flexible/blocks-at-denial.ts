import type { Clock } from '../../clock.js'
import { createLimiter } from '../../create-limiter.js'
import type { Decision } from '../../decision.js'
import type { Limiter } from '../../limiter.js'
import { checkedWindowMs } from '../../policy/policy-options.js'
import { gcra } from '../../policy/rate-policy.js'
import type { LimiterVerbs } from '../limiter-verbs.js'

/** What {@link BlocksAtDenial} may be told of its memory. */
export interface BlockMemory {
  readonly maxKeys?: number
  readonly clock?: Clock
}

/**
 * Blocks a key when it is first denied. Who asks again and again would else be blocked anew each time: of blocks the longest wins, so this
 * process remembers whom it has blocked for as long as the block lasts, in a memory of fixed size. Forgotten keys are blocked anew.
 */
export class BlocksAtDenial {
  private readonly limiter: LimiterVerbs
  private readonly blockMs: number
  private readonly blocked: Limiter

  /** @throws {PolicyError} `WINDOW_INVALID` */
  constructor(limiter: LimiterVerbs, blockMs: number, memory: BlockMemory) {
    this.limiter = limiter
    this.blockMs = checkedWindowMs(blockMs, 'blockDuration')
    // A debt of one token lasts a block. With two there is always room for one more, so that any key can be forgotten for another.
    this.blocked = createLimiter(gcra({ limit: 1, window: blockMs, burst: 2 }), memory)
  }

  /** Blocks a key of which too little is left, unless that was done already. The denial as it then is. */
  async after(denial: Decision, key: string, points: number): Promise<Decision> {
    const { blocked, limiter, blockMs } = this
    // Where enough is left it is a block that denies.
    if (denial.remaining >= points || denial.source === 'outage' || blocked.peek(key).resetAfterMs > 0) return denial
    blocked.take(key)
    try {
      const { retryAfterMs } = await limiter.block(key, blockMs)
      return { ...denial, retryAfterMs: Math.max(denial.retryAfterMs, retryAfterMs) }
    } catch (error) {
      blocked.reset(key)
      throw error
    }
  }

  /** The key was blocked by hand: its next denial is no first one. */
  remember(key: string): void {
    // One debt, however often: two would last for two blocks.
    this.blocked.reset(key)
    this.blocked.take(key)
  }

  forget(key: string): void {
    this.blocked.reset(key)
  }

  close(): void {
    this.blocked.close()
  }
}
