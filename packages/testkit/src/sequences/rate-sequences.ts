import type { RatePolicySpec } from '../oracle/oracle.js'
import { exactEmission, type RateSpec } from '../oracle/oracle.js'
import { Random } from '../random.js'
import type { Place, Sequence, Step } from './draws.js'
import {
  DAY_MS,
  finerThanUs,
  HOUR_MS,
  LARGE_LIMITS,
  LARGE_SEEDS,
  LAST_MS,
  LIMITS,
  MOST_ENDS,
  MOST_KEYS,
  randomBlockMs,
  randomCost,
  randomLimit,
  WINDOWS_MS,
  YEAR_MS,
} from './draws.js'

/** A full burst's debt and eleven times that stay below 2^53. */
const MOST_TOKENS = 750_599_937_895_082

/**
 * The clock may step back, by an hour, within this time after the last policy. Later a key without debt may have been
 * forgotten and found again, and a step back holds it for the step at most, but how long exactly is the store's affair. The same
 * goes for a key whose entry made room for another key or a block: so a sequence has those or steps back.
 */
export const CERTAIN_MS = 5 * HOUR_MS

/** The sequence of a token bucket or GCRA that belongs to a seed: always the same one. */
export function rateSequenceOf(seed: number): Sequence {
  const random = new Random(seed)
  const algorithm = random.chance(0.5) ? 'token-bucket' : 'gcra'
  const policy = { algorithm, ...randomRate(random) } as const
  return { policy, steps: randomSteps(random, policy) }
}

/** A policy from the whole range that is accepted: limits from 1 per 366 days to 10^9 a second, bursts to 10^9; of large seeds up to 7.5 * 10^14. */
export function randomRate(random: Random): RateSpec {
  const isLarge = random.seed >= LARGE_SEEDS
  for (;;) {
    const limit = randomLimit(random, MOST_TOKENS)
    const windowMs = random.chance(0.6) ? random.pick(WINDOWS_MS) : random.magnitude(1000, 366 * DAY_MS * 1000) / 1000
    const burst = random.pick([
      1,
      2,
      limit,
      random.pick(isLarge ? LARGE_LIMITS : LIMITS),
      random.magnitude(1, isLarge ? MOST_TOKENS : 1_000_000_000),
    ])
    const policy = { limit, windowMs, burst }
    if (exactEmission(policy) !== undefined) return policy
  }
}

function randomSteps(random: Random, first: RatePolicySpec): Step[] {
  const steps: Step[] = []
  const length = random.integer(5, 40)
  let policy = first
  let atMs = random.pick([2 * HOUR_MS, 1_789_000_000_000, random.fraction() * 30 * YEAR_MS, HOUR_MS + random.fraction() * 1000])
  let sinceMs = atMs
  let latestMs = atMs
  const forward = random.chance(0.4)
  const keys = forward ? random.integer(1, MOST_KEYS) : 1
  const ends = random.integer(1, MOST_ENDS)
  const gap = random.chance(0.3) ? pollGap(random) : (spec: RateSpec) => randomRateGapMs(random, spec)
  for (let i = 0; i < length; i++) {
    const mayStepBack = !forward && latestMs - sinceMs < CERTAIN_MS
    const nextMs = Math.round((atMs + gap(policy)) * 1000) / 1000 + finerThanUs(random)
    atMs = Math.min(LAST_MS, Math.max(mayStepBack ? sinceMs - HOUR_MS : latestMs, nextMs))
    latestMs = Math.max(latestMs, atMs)
    const step = randomStep(random, policy, randomPlace(random, atMs, keys, ends), forward)
    if (step.verb === 'update') policy = step.policy as RatePolicySpec
    if (i === 0 || step.verb === 'update') {
      sinceMs = atMs
      latestMs = atMs
    }
    steps.push(step)
  }
  return steps
}

/** A fixed gap for a whole sequence: a poller. */
function pollGap(random: Random): (spec: RateSpec) => number {
  const choice = random.integer(0, 2)
  if (choice === 0) return () => 0.001
  const factor = random.pick([0.1, 0.5, 0.999, 1, 1.001, 2])
  return (spec) => (spec.windowMs / spec.limit) * (choice === 1 ? factor : factor * spec.burst)
}

export function randomRateGapMs(random: Random, { limit, windowMs, burst }: RateSpec): number {
  const intervalMs = windowMs / limit
  const aroundMs = random.pick([intervalMs, windowMs, intervalMs * burst, intervalMs * random.integer(1, burst), 1])
  const edgeMs = random.pick([0, 0, -0.001, 0.001, 1, -1])
  switch (random.integer(0, 9)) {
    case 0:
    case 1:
      return 0
    case 2:
      return random.magnitude(1, 1000) / 1000
    case 3:
      return random.fraction() * aroundMs
    case 4: // the clock steps back
      return -random.pick([0.001, 1, 1000, random.fraction() * aroundMs, random.fraction() * HOUR_MS])
    case 5:
      return random.chance(0.2) ? random.fraction() * 10 * YEAR_MS : random.fraction() * 40 * DAY_MS
    default:
      return Math.max(0, aroundMs + edgeMs)
  }
}

function randomPlace(random: Random, atMs: number, keys: number, ends: number): Place {
  return { atMs, key: `key ${random.integer(1, keys)}`, end: random.integer(0, ends - 1) }
}

function randomStep(random: Random, policy: RatePolicySpec, place: Place, blocks: boolean): Step {
  const die = random.integer(0, 99)
  if (die < 72) return { ...place, verb: 'take', cost: randomCost(random, policy.burst) }
  if (die < 82) return { ...place, verb: 'peek', cost: randomCost(random, policy.burst) }
  if (die < 87) return { ...place, verb: 'refund', tokens: randomCost(random, policy.burst) }
  if (die < 92) return { ...place, verb: 'penalize', tokens: randomCost(random, policy.burst * 4) }
  if (die < 95 && blocks) return { ...place, verb: 'block', durationMs: randomBlockMs(random, policy.windowMs) }
  if (die < 97) return { ...place, verb: 'reset' }
  const { algorithm } = policy
  return { ...place, verb: 'update', policy: { algorithm, ...(random.chance(0.5) ? randomRate(random) : siblingRate(random, policy)) } }
}

/** The same policy with one number changed, as people do. */
export function siblingRate(random: Random, { limit, windowMs, burst }: RateSpec): RateSpec {
  const policy = { limit, windowMs, burst }
  const most = random.seed >= LARGE_SEEDS ? MOST_TOKENS : 1_000_000_000
  const changed = random.pick([
    { ...policy, burst: random.integer(1, policy.burst) },
    { ...policy, limit: random.integer(1, policy.limit) },
    { ...policy, limit: Math.min(most, policy.limit * 2) },
    { ...policy, burst: Math.min(most, policy.burst * 2) },
  ])
  return exactEmission(changed) === undefined ? policy : changed
}
