import { createLimiter, gcra, type Limiter, type LimiterOptions, manualClock, type Policy, type RateOptions, tokenBucket } from 'sluicegate'
import type { RateSpec } from './oracle-emission.js'
import type { Replayed } from './replay.js'
import type { Sequence } from './sequences.js'

/** A policy of the library from plain numbers. */
export function policyOf(algorithm: Sequence['algorithm'], { limit, windowMs, burst }: RateSpec, more: Partial<RateOptions> = {}): Policy {
  return (algorithm === 'gcra' ? gcra : tokenBucket)({ limit, window: windowMs, burst, ...more })
}

/** A fresh limiter in memory for a sequence, on a clock of its own. */
export function replayedInMemory({ algorithm, policy }: Sequence, options: LimiterOptions = {}): Replayed & { readonly limiter: Limiter } {
  const clock = manualClock()
  const limiter = createLimiter(policyOf(algorithm, policy), { maxKeys: 8, clock, ...options })
  return { limiter, set: (ms) => clock.set(ms), update: (spec) => limiter.update(policyOf(algorithm, spec)) }
}
