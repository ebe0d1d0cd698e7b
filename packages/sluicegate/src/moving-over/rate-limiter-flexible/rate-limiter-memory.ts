import type { Clock } from '../../clock.js'
import { createLimiter } from '../../create-limiter.js'
import type { Limiter } from '../../limiter.js'
import { checkedOptions, FLEXIBLE_OPTIONS, type FlexibleOptions, flexiblePolicy } from './flexible-options.js'
import { RateLimiterSluicegate } from './rate-limiter-sluicegate.js'

/** Options of {@link RateLimiterMemory}: those of rate-limiter-flexible, and two of `createLimiter`. */
export interface RateLimiterMemoryOptions extends FlexibleOptions {
  /** How many keys are tracked at once, at least; default 100,000. */
  readonly maxKeys?: number
  /** Default `preciseClock()`. */
  readonly clock?: Clock
}

const OPTIONS = [...FLEXIBLE_OPTIONS, 'maxKeys', 'clock'] as const satisfies readonly (keyof RateLimiterMemoryOptions)[]

/**
 * `RateLimiterMemory` of rate-limiter-flexible: points in windows, in the shared memory of this process.
 *
 * @throws {PolicyError} on an option that cannot be honoured; the message says what to write instead.
 * @example
 * const limiter = new RateLimiterMemory({ points: 5, duration: 60 })
 * limiter.consume(request.ip).then(() => serve(), (denied) => denied instanceof Error ? fail(denied) : tooMany(denied.msBeforeNext))
 */
export class RateLimiterMemory extends RateLimiterSluicegate<Limiter> {
  constructor(options: RateLimiterMemoryOptions) {
    const { blockDuration, keyPrefix, maxKeys, clock } = checkedOptions(options, OPTIONS)
    const memory = { ...(maxKeys !== undefined && { maxKeys }), ...(clock !== undefined && { clock }) }
    super({ limiter: createLimiter(flexiblePolicy(options), memory), blockDuration, keyPrefix }, memory)
  }

  override close(): void {
    super.close()
    this.limiter.close()
  }
}
