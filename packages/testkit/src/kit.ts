import { attachLimiter, createLimiter, gcra, manualClock, type Policy, type RateOptions, tokenBucket } from 'sluicegate'
import type { RateSpec } from './oracle-emission.js'
import type { Replayed } from './replay.js'
import type { Sequence } from './sequences.js'

/** A policy of the library from plain numbers. */
export function policyOf(algorithm: Sequence['algorithm'], { limit, windowMs, burst }: RateSpec, more: Partial<RateOptions> = {}): Policy {
  return (algorithm === 'gcra' ? gcra : tokenBucket)({ limit, window: windowMs, burst, ...more })
}

/** A fresh limiter in memory for a sequence, with as many ends as it asks for, on a clock of its own. */
export function replayedInMemory({ algorithm, policy, steps }: Sequence): Replayed {
  const clock = manualClock(steps[0]?.atMs)
  const limiter = createLimiter(policyOf(algorithm, policy), { maxKeys: 8, clock })
  const ends = Math.max(...steps.map(({ end }) => end)) + 1
  return {
    ends: Array.from({ length: ends }, (_, end) => (end === 0 ? limiter : attachLimiter(limiter.handle()))),
    set: (ms) => clock.set(ms),
    update: (end, spec) => end.update(policyOf(algorithm, spec)),
  }
}
