import type { Decision } from '../../engine.js'
import { outcomeOf } from '../../outcome.js'

/** A decision as JSON. JSON has no infinity: what can never pass has `"retryAfterMs":null` and `"impossible":true`. */
export function decisionJson(decision: Decision): string {
  const { allowed, policy, limit, remaining, retryAfterMs, resetAfterMs, source } = decision
  const answer = { allowed, policy, limit, remaining, retryAfterMs, resetAfterMs, source }
  // JSON.stringify writes Infinity as null.
  return JSON.stringify(outcomeOf(decision) === 'impossible' ? { ...answer, impossible: true } : answer)
}
