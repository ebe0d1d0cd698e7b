import { createLimiter } from '../../create-limiter.js'
import type { Limiter, LimiterOptions } from '../../limiter.js'
import { checkedOptions, FLEXIBLE_OPTIONS, type FlexibleOptions, flexiblePolicy } from './flexible-options.js'
import { RateLimiterSluicegate } from './rate-limiter-sluicegate.js'

/** Options of {@link RateLimiterMemory}: those of rate-limiter-flexible, and some of `createLimiter`. */
export interface RateLimiterMemoryOptions
  extends FlexibleOptions,
    Pick<LimiterOptions, 'maxKeys' | 'growTo' | 'clock' | 'onFull' | 'newcomers' | 'hotKeys' | 'maxWaiters'> {}

const OPTIONS = [
  ...FLEXIBLE_OPTIONS,
  'maxKeys',
  'growTo',
  'clock',
  'onFull',
  'newcomers',
  'hotKeys',
  'maxWaiters',
] as const satisfies readonly (keyof RateLimiterMemoryOptions)[]

/**
 * `RateLimiterMemory` of rate-limiter-flexible: points in windows, in the shared memory of this process.
 *
 * @throws {PolicyError} on an option that is not supported; the message says what to write instead.
 * @example
 * const limiter = new RateLimiterMemory({ points: 5, duration: 60 })
 * limiter.consume(request.ip).then(() => serve(), (denied) => denied instanceof Error ? fail(denied) : tooMany(denied.msBeforeNext))
 */
export class RateLimiterMemory extends RateLimiterSluicegate<Limiter> {
  constructor(options: RateLimiterMemoryOptions) {
    const { points, duration, blockDuration, keyPrefix, ...memory } = checkedOptions(options, OPTIONS)
    super({ limiter: createLimiter(flexiblePolicy({ points, duration }), memory), blockDuration, keyPrefix })
  }

  override close(): void {
    this.limiter.close()
  }
}
