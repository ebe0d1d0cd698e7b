import type { Clock } from '../../clock.js'
import { createLimiter } from '../../create-limiter.js'
import type { Decision } from '../../decision.js'
import type { Limiter } from '../../limiter.js'
import { gcra } from '../../policy/rate-policy.js'
import type { LimiterVerbs } from '../limiter-verbs.js'

/** What {@link BlocksAtDenial} may be told of its memory. */
export interface BlockMemory {
  readonly maxKeys?: number
  readonly clock?: Clock
}

/** Blocks are remembered in units of a millionth of those at a denial, of at least 1 ms. */
const UNITS = 1_000_000
/** Blocks by hand may be longer: those are remembered in full up to so many times as long, and never for longer than 20 years. */
const MOST_TIMES = 100
const MOST_MS = 20 * 366 * 86_400_000

/**
 * Blocks a key when it is first denied. Who asks again and again would else be blocked anew each time: of blocks the longest wins, so this
 * process remembers whom it has blocked for as long as the block lasts, in a memory of fixed size. Forgotten keys are blocked anew.
 */
export class BlocksAtDenial {
  private readonly limiter: LimiterVerbs
  private readonly blockMs: number
  private readonly unitMs: number
  private readonly mostUnits: number
  private readonly blocked: Limiter

  constructor(limiter: LimiterVerbs, blockMs: number, memory: BlockMemory) {
    this.limiter = limiter
    this.blockMs = blockMs
    this.unitMs = Math.max(1, Math.ceil(blockMs / UNITS))
    this.mostUnits = Math.floor(Math.min(blockMs * MOST_TIMES, MOST_MS) / this.unitMs)
    // A token comes back in each unit. There is one more than any block takes, so that any key can be forgotten for another.
    this.blocked = createLimiter(gcra({ limit: 1, window: this.unitMs, burst: this.mostUnits + 1 }), memory)
  }

  /** Blocks a key of which too little is left, unless that was done already. The denial as it then is. */
  async after(denial: Decision, key: string, points: number): Promise<Decision> {
    const { blocked, limiter, blockMs } = this
    // Where enough is left it is a block that denies.
    if (denial.remaining >= points || denial.source === 'outage' || blocked.peek(key).resetAfterMs > 0) return denial
    this.remember(key, blockMs)
    try {
      const { retryAfterMs } = await limiter.block(key, blockMs)
      return { ...denial, retryAfterMs: Math.max(denial.retryAfterMs, retryAfterMs) }
    } catch (error) {
      blocked.reset(key)
      throw error
    }
  }

  /** The key is blocked for so long: until then its denials are no first ones. */
  remember(key: string, ms: number): void {
    const { blocked, unitMs, mostUnits } = this
    // The longest block counts, and two of them do not last for their sum.
    if (blocked.peek(key).resetAfterMs >= ms) return
    blocked.reset(key)
    blocked.take(key, Math.min(Math.ceil(ms / unitMs), mostUnits))
  }

  forget(key: string): void {
    this.blocked.reset(key)
  }

  close(): void {
    this.blocked.close()
  }
}
