import { exactEmission, type RateSpec } from './oracle-emission.js'
import { Random } from './random.js'

/** When, where and on what a step acts. */
interface Place {
  /** The reading of the clock, in milliseconds. */
  readonly atMs: number
  readonly key: string
  /** Which end of the limiter is asked: 0 made it, others are attached to it. */
  readonly end: number
}

/** One call of a sequence. An update has no use for its key. */
export type Step = Place &
  (
    | { readonly verb: 'take' | 'peek'; readonly cost: number }
    | { readonly verb: 'refund' | 'penalize'; readonly tokens: number }
    | { readonly verb: 'block'; readonly durationMs: number }
    | { readonly verb: 'reset' }
    | { readonly verb: 'update'; readonly policy: RateSpec }
  )

/** A policy and what happens to a few keys of it. */
export interface Sequence {
  readonly algorithm: 'token-bucket' | 'gcra'
  readonly policy: RateSpec
  readonly steps: readonly Step[]
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const YEAR_MS = 365.25 * DAY_MS
/** Readings stay where a double of milliseconds still tells every microsecond. */
const LAST_MS = 2 ** 41
/**
 * The clock may step back, by an hour, within this time after the last policy. Later a key without debt may have been
 * forgotten and found again, and a step back holds it for the step at most, but how long exactly is the store's affair. The same
 * goes for a key whose entry made room for another key or a block: so a sequence has those or steps back.
 */
const CERTAIN_MS = 5 * HOUR_MS
/** A table for eight keys has room for these, each with a block. */
const MOST_KEYS = 4
const MOST_ENDS = 3
const WINDOWS_MS = [
  1,
  1.001,
  1.999,
  2,
  7,
  10,
  16.667,
  100,
  997,
  1000,
  1001,
  10_000,
  60_000,
  3_600_000,
  DAY_MS,
  7 * DAY_MS,
  30 * DAY_MS,
  366 * DAY_MS,
]
const LIMITS = [
  1, 2, 3, 7, 10, 11, 60, 97, 100, 999, 1000, 1009, 9973, 10_000, 65_537, 999_983, 1_000_000, 15_485_863, 999_999_937, 1_000_000_000,
]

/** The sequence that belongs to a seed: always the same one. */
export function sequenceOf(seed: number): Sequence {
  const random = new Random(seed)
  const algorithm = random.chance(0.5) ? 'token-bucket' : 'gcra'
  const policy = randomPolicy(random)
  return { algorithm, policy, steps: randomSteps(random, policy) }
}

/** A policy from the whole range that is accepted: limits from 1 per 366 days to 10^9 a second, bursts to 10^9. */
export function randomPolicy(random: Random): RateSpec {
  for (;;) {
    const limit = random.chance(0.5) ? random.pick(LIMITS) : random.magnitude(1, 1_000_000_000)
    const windowMs = random.chance(0.6) ? random.pick(WINDOWS_MS) : random.magnitude(1000, 366 * DAY_MS * 1000) / 1000
    const burst = random.pick([1, 2, limit, random.pick(LIMITS), random.magnitude(1, 1_000_000_000)])
    const policy = { limit, windowMs, burst }
    if (exactEmission(policy) !== undefined) return policy
  }
}

function randomSteps(random: Random, first: RateSpec): Step[] {
  const steps: Step[] = []
  const length = random.integer(5, 40)
  let policy = first
  let atMs = random.pick([2 * HOUR_MS, 1_789_000_000_000, random.fraction() * 30 * YEAR_MS, HOUR_MS + random.fraction() * 1000])
  let sinceMs = atMs
  let latestMs = atMs
  const forward = random.chance(0.4)
  const keys = forward ? random.integer(1, MOST_KEYS) : 1
  const ends = random.integer(1, MOST_ENDS)
  const gap = random.chance(0.3) ? pollGap(random) : (spec: RateSpec) => randomGapMs(random, spec)
  for (let i = 0; i < length; i++) {
    const mayStepBack = !forward && latestMs - sinceMs < CERTAIN_MS
    const nextMs = Math.round((atMs + gap(policy)) * 1000) / 1000 + finerThanUs(random)
    atMs = Math.min(LAST_MS, Math.max(mayStepBack ? sinceMs - HOUR_MS : latestMs, nextMs))
    latestMs = Math.max(latestMs, atMs)
    const step = randomStep(random, policy, randomPlace(random, atMs, keys, ends), forward)
    if (step.verb === 'update') policy = step.policy
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

function randomGapMs(random: Random, { limit, windowMs, burst }: RateSpec): number {
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

/** Clock readings are seldom whole microseconds. */
function finerThanUs(random: Random): number {
  return random.chance(0.2) ? (random.fraction() - 0.5) / 1000 : 0
}

function randomPlace(random: Random, atMs: number, keys: number, ends: number): Place {
  return { atMs, key: `key ${random.integer(1, keys)}`, end: random.integer(0, ends - 1) }
}

function randomStep(random: Random, policy: RateSpec, place: Place, blocks: boolean): Step {
  const die = random.integer(0, 99)
  if (die < 72) return { ...place, verb: 'take', cost: randomCost(random, policy.burst) }
  if (die < 82) return { ...place, verb: 'peek', cost: randomCost(random, policy.burst) }
  if (die < 87) return { ...place, verb: 'refund', tokens: randomCost(random, policy.burst) }
  if (die < 92) return { ...place, verb: 'penalize', tokens: randomCost(random, policy.burst * 4) }
  if (die < 95 && blocks) return { ...place, verb: 'block', durationMs: randomBlockMs(random, policy) }
  if (die < 97) return { ...place, verb: 'reset' }
  return { ...place, verb: 'update', policy: random.chance(0.5) ? randomPolicy(random) : sibling(random, policy) }
}

function randomBlockMs(random: Random, { windowMs }: RateSpec): number {
  return random.pick([0, 0.001, 1, 1000, windowMs, random.fraction() * DAY_MS])
}

/** The same policy with one number changed, as people do. */
function sibling(random: Random, policy: RateSpec): RateSpec {
  const changed = random.pick([
    { ...policy, burst: random.integer(1, policy.burst) },
    { ...policy, limit: random.integer(1, policy.limit) },
    { ...policy, limit: Math.min(1_000_000_000, policy.limit * 2) },
    { ...policy, burst: Math.min(1_000_000_000, policy.burst * 2) },
  ])
  return exactEmission(changed) === undefined ? policy : changed
}

function randomCost(random: Random, burst: number): number {
  switch (random.integer(0, 7)) {
    case 0:
      return burst
    case 1:
      return Math.max(1, burst - 1)
    case 2:
      return burst + (random.chance(0.3) ? 1 : 0)
    case 3:
    case 4:
      return random.magnitude(1, burst)
    default:
      return 1
  }
}
