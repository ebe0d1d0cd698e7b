import { combined, type Decision } from '../decision/decision.js'
import { StoreError } from '../errors.js'

/** A decision of the limiter that holds one key, as one of the store. @throws {StoreError} `OUTAGE` without a decision. */
export function decisionWith(decision: Decision | undefined): Decision {
  if (decision === undefined) throw new StoreError('OUTAGE', 'the store gave an answer without a decision')
  if (decision.parts !== undefined) return combined(decision.parts.map(decisionWith))
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, spent } = decision
  return { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source: 'store', ...(spent !== undefined && { spent }) }
}
