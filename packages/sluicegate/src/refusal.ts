import type { Decision } from './decision.js'

/** The denial of one who may not overtake those who wait, by what `peek` says: he may try again at the earliest in a millisecond. */
export function refusal(foreseen: Decision): Decision {
  return { ...foreseen, allowed: false, retryAfterMs: Math.max(1, foreseen.retryAfterMs) }
}
