import { PolicyError } from '../errors.js'
import { allOf } from './all-of.js'
import { concurrency } from './concurrency-policy.js'
import type { Algorithm, Policy } from './policy.js'
import { gcra, tokenBucket } from './rate-policy.js'
import { fixedWindow, slidingLog, slidingWindow } from './window-policy.js'

/** Each algorithm's policy made anew from the fields of one, so that what a wrong field would do is refused where it is. */
const REMADE: Readonly<Record<Algorithm, (policy: Policy) => Policy>> = {
  'token-bucket': ({ limit, windowMs: window, burst, name }) => tokenBucket({ limit, window, burst, name }),
  gcra: ({ limit, windowMs: window, burst, name }) => gcra({ limit, window, burst, name }),
  'fixed-window': ({ limit, windowMs: window, calendar, name }) =>
    calendar === undefined
      ? fixedWindow({ limit, window, name })
      : fixedWindow({ limit, window: calendar.unit, timeZone: calendar.timeZone, name }),
  'sliding-window': ({ limit, windowMs: window, counters, name }) => slidingWindow({ limit, window, counters: counters ?? 'exact', name }),
  'sliding-log': ({ limit, windowMs: window, slotBytes = 8, name }) => slidingLog({ limit, window, slotBytes, name }),
  concurrency: ({ limit, windowMs: ttl, name }) => concurrency({ limit, ttl, name }),
  'all-of': ({ policies = [], name }) => allOf(policies, { name }),
}

/** Refuses anything that is not a policy made by `tokenBucket` or one of its siblings, or a structured clone of one. */
export function checkedPolicy(policy: unknown, option = 'policy'): Policy {
  const { algorithm } = (policy ?? {}) as Partial<Policy>
  if (typeof algorithm === 'string' && Object.hasOwn(REMADE, algorithm)) return REMADE[algorithm](policy as Policy)
  throw new PolicyError('POLICY_INVALID', option, policy, 'must be made by tokenBucket(), slidingWindow() or one of their siblings')
}
