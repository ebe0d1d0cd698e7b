import type { RatePolicySpec } from '../oracle/oracle.js'
import { exactEmission, type RateSpec } from '../oracle/oracle.js'
import { RateOracle } from '../oracle/rate-oracle.js'
import { Random } from '../random.js'
import type { Place, Sequence, Step } from './draws.js'

const LIMITS = [3, 7, 11, 30, 97, 999, 9973, 999_983]
const WINDOWS_MS = [1, 16.667, 100, 1000, 60_000, 3_600_000]
const MOST_BOOKINGS = 6
const START_MS = 1_789_000_000_000

/** Bookings that are given up again. */
export interface NewestFirst extends Sequence {
  readonly policy: RatePolicySpec
  /** The number of first steps that count in the end: the rest is given up, or tried in vain. */
  readonly kept: number
}

/**
 * A burst, then bookings behind it, at random microseconds, each of which is cancelled before the first is due, the newest first, but for one that
 * stays, or none: what was booked after that comes back, what before it does not. A microsecond's inflow is no whole part of a
 * token, and at most one. In the end it is asked at the very microsecond at which all is there, and at the one before.
 */
export function newestFirst(seed: number): NewestFirst {
  const random = new Random(seed)
  const policy = randomUnevenRate(random)
  const bookings = random.integer(1, MOST_BOOKINGS)
  const stays = random.chance(0.5) ? random.integer(0, bookings - 1) : -1
  const tokenUs = (policy.windowMs * 1000) / policy.limit
  let us = 0
  const next = (): Place => {
    us += Math.floor((random.fraction() * tokenUs) / (2 * bookings + 1))
    return { atMs: START_MS + us / 1000, key: 'k', end: 0 }
  }
  const steps: Step[] = [{ ...next(), verb: 'take', cost: policy.burst }]
  for (let i = 0; i < bookings; i++) steps.push({ ...next(), verb: 'reserve', cost: random.pick([policy.burst, policy.burst, 1]) })
  for (let booking = bookings - 1; booking >= 0; booking--) if (booking !== stays) steps.push({ ...next(), verb: 'cancel', booking })
  const endMs = START_MS + us / 1000
  return { policy, steps: [...steps, ...edge(policy, steps, endMs)], kept: stays + 2 }
}

function edge(policy: RatePolicySpec, steps: readonly Step[], endMs: number): Step[] {
  const oracle = played(policy, steps)
  let firstUs = Math.round(endMs * 1000) + oracle.peek('k', policy.burst, endMs).retryAfterMs * 1000
  // What is returned is rounded up to a millisecond.
  for (let stepUs = 512; stepUs >= 1; stepUs /= 2) {
    if (oracle.peek('k', policy.burst, (firstUs - stepUs) / 1000).allowed) firstUs -= stepUs
  }
  return [firstUs - 1, firstUs].map((us) => ({ atMs: us / 1000, key: 'k', end: 0, verb: 'peek', cost: policy.burst }))
}

/** The oracle of a rate after takes, bookings and cancels. */
export function played(policy: RateSpec, steps: readonly Step[]): RateOracle {
  const oracle = new RateOracle(policy)
  const booked: ReturnType<RateOracle['reserve']>[] = []
  for (const step of steps) {
    if (step.verb === 'take') oracle.take(step.key, step.cost, step.atMs)
    if (step.verb === 'reserve') booked.push(oracle.reserve(step.key, step.cost, step.atMs))
    const booking = step.verb === 'cancel' ? booked[step.booking] : undefined
    if (booking !== undefined) oracle.cancel(booking, Number(booking.cost), step.atMs)
  }
  return oracle
}

function randomUnevenRate(random: Random): RatePolicySpec {
  for (;;) {
    const spec = { limit: random.pick(LIMITS), windowMs: random.pick(WINDOWS_MS), burst: random.pick([1, 1, 2, 5]) }
    const emission = exactEmission(spec)
    if (emission === undefined || emission.perToken < emission.q || emission.perToken % emission.q === 0n) continue
    return { algorithm: random.pick(['token-bucket', 'gcra']), ...spec }
  }
}
