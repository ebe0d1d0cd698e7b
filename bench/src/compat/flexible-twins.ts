import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { type ManualClock, manualClock } from 'sluicegate'
import { RateLimiterMemory, RateLimiterRes } from 'sluicegate/rate-limiter-flexible'
import { requireRival } from '../rivals.js'

/** What both sides have. */
export interface FlexibleLimiter {
  consume(key: string, points?: number | `${number}`): Promise<RateLimiterRes>
  penalty(key: string, points?: number): Promise<RateLimiterRes>
  reward(key: string, points?: number): Promise<RateLimiterRes>
  block(key: string, seconds: number): Promise<RateLimiterRes>
  get(key: string): Promise<RateLimiterRes | null>
  delete(key: string): Promise<boolean>
}

interface Options {
  readonly points: number
  readonly duration: number
  readonly blockDuration?: number
}

interface Rival {
  readonly RateLimiterMemory: new (options: Options) => FlexibleLimiter
  readonly RateLimiterRes: new () => RateLimiterRes
}

const rival = requireRival('rate-limiter-flexible') as Rival

/** What a call came to: `denied` where it rejected with no error. */
export type Outcome = { readonly passed: RateLimiterRes | boolean | null } | { readonly denied: RateLimiterRes }

/** Both limiters, asked the same. */
export type Twins = Pick<FlexibleTwins, 'mostMsApart' | 'nowMs' | 'intoWindowMs' | 'advance' | 'leave' | 'both'> & { stop(): unknown }

/** rate-limiter-flexible and what stands in for it here, on one clock. */
export class FlexibleTwins {
  /** By how much lengths of time may be apart that both tell. */
  readonly mostMsApart: number = 0
  readonly theirs: FlexibleLimiter
  readonly ours: FlexibleLimiter
  private readonly clock: ManualClock
  private readonly windowMs: number

  /** Theirs reads the time of the system and sets timers: both stand still until {@link FlexibleTwins.stop}. */
  constructor(options: Options) {
    this.windowMs = options.duration * 1000
    const startMs = 1_000 * this.windowMs
    mock.timers.enable({ apis: ['setTimeout', 'Date'], now: startMs })
    this.clock = manualClock(startMs)
    this.theirs = new rival.RateLimiterMemory(options)
    this.ours = new RateLimiterMemory({ ...options, clock: this.clock })
  }

  get nowMs(): number {
    return this.clock.nowMs()
  }

  /** Milliseconds since the window at hand began. */
  get intoWindowMs(): number {
    return this.nowMs % this.windowMs
  }

  advance(ms: number): void {
    mock.timers.tick(ms)
    this.clock.advance(ms)
  }

  /** To the beginning of the window that is `count` after this one. */
  leave(windows: number): void {
    this.advance(windows * this.windowMs - this.intoWindowMs)
  }

  async both(call: (limiter: FlexibleLimiter) => Promise<RateLimiterRes | boolean | null>): Promise<readonly [Outcome, Outcome]> {
    return [await outcome(call(this.theirs), rival.RateLimiterRes), await outcome(call(this.ours), RateLimiterRes)]
  }

  stop(): void {
    mock.timers.reset()
  }
}

/** @param Denials what either side rejects with when it denies. */
export async function outcome(
  answer: Promise<RateLimiterRes | boolean | null>,
  ...Denials: readonly (new () => RateLimiterRes)[]
): Promise<Outcome> {
  try {
    return { passed: await answer }
  } catch (reason) {
    if (Denials.some((Res) => reason instanceof Res) && !(reason instanceof Error)) return { denied: reason as RateLimiterRes }
    return assert.fail(reason as Error)
  }
}
