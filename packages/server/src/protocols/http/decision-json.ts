import type { Decision } from '../../engine/engine.js'
import { outcomeOf } from '../../engine/outcome.js'

/** A decision as JSON. JSON has no infinity: what can never pass has `"retryAfterMs":null` and `"impossible":true`. */
export function decisionJson(decision: Decision, more?: object): string {
  // JSON.stringify writes Infinity as null.
  return JSON.stringify(more === undefined ? decisionObject(decision) : { ...decisionObject(decision), ...more })
}

/** The members of a decision in JSON. */
export function decisionObject(decision: Decision): object {
  const { allowed, policy, limit, remaining, retryAfterMs, resetAfterMs, source, parts } = decision
  const answer = { allowed, policy, limit, remaining, retryAfterMs, resetAfterMs, source }
  const whole = outcomeOf(decision) === 'impossible' ? { ...answer, impossible: true } : answer
  return parts === undefined ? whole : { ...whole, parts: parts.map(decisionObject) }
}
