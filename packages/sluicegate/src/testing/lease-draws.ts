import type { Random } from 'sluicegate-testkit'
import { fixedWindow, gcra, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import { leaseUsOf, whyNotLeased } from '../lease/leasing.js'
import type { Policy } from '../policy/policy.js'
import { type StoreForm, storePoliciesOf } from '../redis/store-form.js'

/** A policy that is leased, with the length of its leases. */
export interface LeasedPolicy {
  readonly policy: Policy
  readonly form: StoreForm
  readonly horizonMs: number
  readonly leaseUs: number
}

const HORIZONS_MS = [1, 2, 5, 20, 50]
const MOST_TRIES = 100

/** A small policy, so that its budget is often spent to the last token. */
export function randomLeasedPolicy(random: Random, forms: readonly StoreForm['form'][]): LeasedPolicy {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const horizonMs = random.pick(HORIZONS_MS)
    const policy = drawn(random, random.pick(forms), horizonMs)
    if (whyNotLeased(policy, horizonMs) !== undefined) continue
    const leaseUs = leaseUsOf(horizonMs)
    const form = storePoliciesOf(policy, () => leaseUs).forms[0] as StoreForm
    return { policy, form, horizonMs, leaseUs }
  }
  throw new Error('no policy that can be leased')
}

function drawn(random: Random, form: StoreForm['form'], horizonMs: number): Policy {
  const leaseMs = leaseUsOf(horizonMs) / 1000
  if (form === 'rate') {
    const perLease = random.integer(1, 6)
    const limit = random.integer(1, 40)
    const window = Math.max(1, Math.floor((limit * leaseMs) / perLease) - random.integer(0, 1))
    const burst = Math.ceil((limit * leaseMs) / window) + random.integer(2, 8)
    return random.pick([tokenBucket, gcra])({ limit, window, burst })
  }
  const limit = random.integer(20, 26)
  const window = random.integer(20 * leaseMs, 24 * leaseMs)
  if (form === 'fixed-window') return fixedWindow({ limit, window })
  return form === 'sliding-window' ? slidingWindow({ limit, window }) : slidingLog({ limit, window })
}
