import { combined, type Decision } from '../decision/decision.js'

/** A decision of the limiter that holds one key, as one of the store. */
export function decisionWith(decision: Decision): Decision {
  if (decision.parts !== undefined) return combined(decision.parts.map(decisionWith))
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, spent } = decision
  return { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source: 'store', ...(spent !== undefined && { spent }) }
}
