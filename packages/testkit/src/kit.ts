import {
  allOf,
  attachLimiter,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  manualClock,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from 'sluicegate'
import type { CalendarSpec, PolicySpec, SinglePolicySpec } from './oracle/oracle.js'
import type { Replayed } from './replay.js'
import type { Sequence } from './sequences/draws.js'

/** Keys of a sequence and their blocks, with all-of one each part. */
const MOST_ENTRIES = 8
const MOST_ENTRIES_OF_PARTS = 64

/** A policy of the library from plain numbers. */
export function policyOf(spec: PolicySpec, more: { readonly name?: string } = {}): Policy {
  switch (spec.algorithm) {
    case 'token-bucket':
    case 'gcra': {
      const { limit, windowMs: window, burst } = spec
      return (spec.algorithm === 'gcra' ? gcra : tokenBucket)({ limit, window, burst, ...more })
    }
    case 'fixed-window': {
      const { limit, windowMs: window, calendar } = spec
      if (calendar === undefined) return fixedWindow({ limit, window, ...more })
      return fixedWindow({ limit, window: calendar.unit, timeZone: calendar.timeZone, ...more })
    }
    case 'sliding-window':
      return slidingWindow({ limit: spec.limit, window: spec.windowMs, ...more })
    case 'sliding-log':
      return slidingLog({ limit: spec.limit, window: spec.windowMs, ...more })
    case 'concurrency':
      return concurrency({ limit: spec.limit, ttl: spec.windowMs, ...more })
    case 'all-of':
      return allOf(
        spec.parts.map((part) => policyOf(part)),
        more,
      )
  }
}

/** The plain numbers of a policy of the library; of a calendar only those that the oracle knows. */
export function specOf(policy: Policy): PolicySpec {
  const { algorithm, limit, windowMs, burst, calendar, policies } = policy
  switch (algorithm) {
    case 'token-bucket':
    case 'gcra':
      return { algorithm, limit, windowMs, burst }
    case 'fixed-window':
      return { algorithm, limit, windowMs, ...(calendar && { calendar: calendar as CalendarSpec }) }
    case 'all-of':
      return { algorithm, parts: (policies ?? []).map(specOf) as SinglePolicySpec[] }
    default:
      return { algorithm, limit, windowMs }
  }
}

/** A fresh limiter in memory for a sequence, with as many ends as it asks for, on its own clock. */
export function replayedInMemory({ policy, steps }: Sequence): Replayed {
  const clock = manualClock(steps[0]?.atMs)
  const maxKeys = policy.algorithm === 'all-of' ? MOST_ENTRIES_OF_PARTS : MOST_ENTRIES
  const limiter = createLimiter(policyOf(policy), { maxKeys, clock })
  const ends = Math.max(...steps.map(({ end }) => end)) + 1
  return {
    ends: Array.from({ length: ends }, (_, end) => (end === 0 ? limiter : attachLimiter(limiter.handle()))),
    set: (ms) => clock.set(ms),
    update: (end, spec) => end.update(policyOf(spec)),
  }
}
