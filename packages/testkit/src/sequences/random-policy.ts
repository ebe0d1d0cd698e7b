import type { FixedWindowSpec, RateSpec, SlidingWindowSpec } from '../oracle/oracle.js'
import { type AlgorithmName, isCounted, mostCost, type PolicySpec, type SinglePolicySpec } from '../oracle/oracle.js'
import type { Random } from '../random.js'
import { DAY_MS, randomLimit, WINDOWS_MS } from './draws.js'
import { randomRate, siblingRate } from './rate-sequences.js'

const MOST_LOG_LIMIT = 100_000
const MOST_PERMITS = 10_000
const MOST_LIMIT = 2 ** 53 - 1
const MOST_SLIDING_LIMIT = 799_644_820_200
const PARTS = ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log'] as const
const UNITS = ['day', 'week', 'month', 'year'] as const

/** A policy from the whole range that is accepted; windows of the calendar where `calendars` is true. */
export function randomPolicyOf(random: Random, algorithm: AlgorithmName, calendars = false): PolicySpec {
  if (algorithm !== 'all-of') return randomSingle(random, algorithm, calendars)
  const most = random.magnitude(1, random.pick([10, 1000, MOST_LOG_LIMIT]))
  return { algorithm, parts: Array.from({ length: random.integer(1, 4) }, () => randomPart(random, most, calendars)) }
}

/** Another policy that may follow on this one by `update`: often with one number changed, as people do. */
export function nextPolicy(random: Random, policy: PolicySpec, calendars: boolean): PolicySpec {
  if (policy.algorithm === 'all-of') {
    return { ...policy, parts: policy.parts.map((part) => (random.chance(0.5) ? part : nextSingle(random, part, calendars))) }
  }
  return nextSingle(random, policy, calendars)
}

function nextSingle(random: Random, policy: SinglePolicySpec, calendars: boolean): SinglePolicySpec {
  if (random.chance(0.3)) {
    const other = randomSingle(random, policy.algorithm, calendars)
    // A log keeps the size of its slots.
    return policy.algorithm === 'sliding-log' ? { ...policy, limit: other.limit, windowMs: other.windowMs } : other
  }
  if ('burst' in policy) return { algorithm: policy.algorithm, ...siblingRate(random, policy) }
  const other = randomSingle(random, policy.algorithm, false)
  const changed = random.pick<Exclude<SinglePolicySpec, { burst: number }>>([
    { ...policy, limit: random.integer(1, policy.limit) },
    { ...policy, limit: Math.min(mostLimit(policy.algorithm), policy.limit * 2) },
    { ...policy, windowMs: other.windowMs },
    { ...policy, windowMs: Math.min(366 * DAY_MS, policy.windowMs * 2) },
  ])
  return isCounted(changed) ? changed : policy
}

/** Limits near each other, so that now one part binds and now another. */
function randomPart(random: Random, most: number, calendars: boolean): SinglePolicySpec {
  const algorithm = random.pick(PARTS)
  for (;;) {
    const part = randomSingle(random, algorithm, calendars)
    const limit = Math.min(mostLimit(algorithm), random.pick([most, most + 1, 2 * most, random.integer(1, 3 * most)]))
    if (!('burst' in part)) return { ...part, limit }
    if (mostCost(part) <= 4 * most) return part
  }
}

function randomSingle(random: Random, algorithm: SinglePolicySpec['algorithm'], calendars: boolean): SinglePolicySpec {
  switch (algorithm) {
    case 'token-bucket':
    case 'gcra':
      return { algorithm, ...randomRate(random) }
    case 'fixed-window': {
      const spec = countedOf(() => ({ algorithm, ...randomCount(random, MOST_LIMIT) }))
      if (!calendars || random.chance(0.5)) return spec
      return { ...spec, calendar: { unit: random.pick(UNITS), timeZone: random.pick(['UTC', 'Europe/Rome']) } }
    }
    case 'sliding-window':
      return countedOf(() => ({ algorithm, ...randomCount(random, MOST_SLIDING_LIMIT) }))
    case 'sliding-log':
      // Each key takes as much memory as its limit: seldom a large one.
      return { algorithm, ...randomCount(random, random.chance(0.03) ? MOST_LOG_LIMIT : 300) }
    case 'concurrency':
      return { algorithm, ...randomCount(random, MOST_PERMITS) }
  }
}

/** The first that is accepted. */
function countedOf<Spec extends FixedWindowSpec | SlidingWindowSpec>(next: () => Spec): Spec {
  for (;;) {
    const spec = next()
    if (isCounted(spec)) return spec
  }
}

function randomCount(random: Random, most: number): Omit<RateSpec, 'burst'> {
  const limit = randomLimit(random, most)
  const windowMs = random.chance(0.6) ? random.pick(WINDOWS_MS) : random.magnitude(1000, 366 * DAY_MS * 1000) / 1000
  return { limit, windowMs }
}

function mostLimit(algorithm: AlgorithmName): number {
  if (algorithm === 'sliding-log') return MOST_LOG_LIMIT
  return algorithm === 'concurrency' ? MOST_PERMITS : MOST_LIMIT
}
