import { fixedWindow, gcra, slidingLog, slidingWindow, tokenBucket } from '../../../sluicegate/dist/index.js'
import { leaseUsOf, whyNotLeased } from '../../../sluicegate/dist/lease/leasing.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { encodingsOf, type PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import type { Random } from '../random.js'

/** A policy that is leased, with the length of its leases; 0 where it is taken from exactly. */
export interface LeasedPolicy {
  readonly policy: Policy
  readonly encoding: PolicyEncoding
  readonly horizonMs: number
  readonly leaseUs: number
}

/** The number of histories of ten with a single version. */
const SINGLE = 0.4

const HORIZONS_MS = [1, 2, 5, 20, 50]
const MOST_TRIES = 100

/** A small policy, so that its budget is often spent to the last token. */
function randomLeasedPolicy(random: Random, encodings: readonly PolicyEncoding['name'][]): LeasedPolicy {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const horizonMs = random.pick(HORIZONS_MS)
    const policy = drawn(random, random.pick(encodings), horizonMs)
    if (whyNotLeased(policy, horizonMs) !== undefined) continue
    return versionOf(policy, horizonMs)
  }
  throw new Error('no policy that can be leased')
}

/** One to three versions of a policy, of which the first is leased: another burst, limit or horizon, or one that is taken from exactly. */
export function randomVersions(random: Random, encodings: readonly PolicyEncoding['name'][]): readonly [LeasedPolicy, ...LeasedPolicy[]] {
  const first = randomLeasedPolicy(random, encodings)
  if (random.chance(SINGLE)) return [first]
  return [first, ...Array.from({ length: random.integer(1, 2) }, () => changed(random, first))]
}

function changed(random: Random, { policy, horizonMs }: LeasedPolicy): LeasedPolicy {
  const { algorithm, limit, windowMs: window, burst } = policy
  const horizon = random.chance(0.3) ? random.pick(HORIZONS_MS) : horizonMs
  const exactly = random.chance(0.25) ? 0 : horizon
  const more = random.pick([0, 0, -1, 1, 3, random.integer(1, 12)])
  if (algorithm === 'token-bucket' || algorithm === 'gcra') {
    const make = algorithm === 'gcra' ? gcra : tokenBucket
    const next = Math.max(1, limit + random.pick([0, 0, 0, 1, -1, Math.ceil(limit / 2), -Math.ceil(limit / 2)]))
    return versionOf(make({ limit: next, window, burst: Math.max(1, burst + more) }), exactly)
  }
  const make = { 'fixed-window': fixedWindow, 'sliding-window': slidingWindow, 'sliding-log': slidingLog }[algorithm as 'fixed-window']
  return versionOf(make({ limit: limit + more, window }), exactly)
}

/** What cannot be leased runs exact by itself. */
function versionOf(policy: Policy, horizonMs: number): LeasedPolicy {
  const leaseUs = horizonMs > 0 && whyNotLeased(policy, horizonMs) === undefined ? leaseUsOf(horizonMs) : 0
  const encoding = encodingsOf(policy, () => leaseUs).encodings[0] as PolicyEncoding
  return { policy, encoding, horizonMs, leaseUs }
}

function drawn(random: Random, encoding: PolicyEncoding['name'], horizonMs: number): Policy {
  const leaseMs = leaseUsOf(horizonMs) / 1000
  if (encoding === 'rate') {
    const perLease = random.integer(1, 6)
    const limit = random.integer(1, 40)
    const window = Math.max(1, Math.floor((limit * leaseMs) / perLease) - random.integer(0, 1))
    const burst = Math.ceil((limit * leaseMs) / window) + random.integer(2, 8)
    return random.pick([tokenBucket, gcra])({ limit, window, burst })
  }
  // In a sliding window several tokens come due within a horizon only where there are many.
  const limit = encoding === 'sliding-window' ? random.pick([random.integer(20, 26), random.integer(300, 500)]) : random.integer(20, 26)
  const window = random.integer(20 * leaseMs, 24 * leaseMs)
  if (encoding === 'fixed-window') return fixedWindow({ limit, window })
  return encoding === 'sliding-window' ? slidingWindow({ limit, window }) : slidingLog({ limit, window })
}
