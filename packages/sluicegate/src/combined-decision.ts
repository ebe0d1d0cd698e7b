import type { Decision } from './decision.js'

/**
 * Several decisions on one request as one: denied when one of them is. Of the denied ones the one with the longest wait answers,
 * of allowed ones the one with the least left; the first among equals.
 */
export function combined(parts: readonly Decision[]): Decision {
  let binding = parts[0] as Decision
  let resetAfterMs = 0
  for (const part of parts) {
    if (part.resetAfterMs > resetAfterMs) resetAfterMs = part.resetAfterMs
    if (bindsMore(part, binding)) binding = part
  }
  const { allowed, limit, remaining, retryAfterMs, policy, source, spent } = binding
  const whole: Decision = { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source, parts }
  return spent === undefined ? whole : { ...whole, spent }
}

/** The one whose decision binds: of the denied ones that with the longest wait, of allowed ones that with the least left; the first among equals. */
export function strictestOf<Answer extends { readonly decision: Decision }>(answers: readonly Answer[]): Answer | undefined {
  let binding = answers[0]
  for (const answer of answers) if (binding !== undefined && bindsMore(answer.decision, binding.decision)) binding = answer
  return binding
}

/** Whether a decision on the same request is the stricter one. */
export function bindsMore(part: Decision, than: Decision): boolean {
  if (part.allowed !== than.allowed) return than.allowed
  return part.allowed ? part.remaining < than.remaining : part.retryAfterMs > than.retryAfterMs
}

/** The denial of a take that may not overtake waiters, from the decision of `peek`: `retryAfterMs` is at least 1. */
export function refusal(foreseen: Decision): Decision {
  return { ...foreseen, allowed: false, retryAfterMs: Math.max(1, foreseen.retryAfterMs) }
}
