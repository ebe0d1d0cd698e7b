import type { Decision } from 'sluicegate'

/** The three different answers to a take. An outage is none of them: it is an error. */
export type Outcome = 'allowed' | 'denied' | 'impossible'

/** Which of the three a decision is: what can never pass is not the same as what may pass later. */
export function outcomeOf(decision: Decision): Outcome {
  if (decision.allowed) return 'allowed'
  return decision.retryAfterMs === Number.POSITIVE_INFINITY ? 'impossible' : 'denied'
}

/** What a take would have answered: a reservation has the state after it, which denies the next one when nothing is left. */
export function passed({ parts, ...decision }: Decision): Decision {
  return { ...decision, allowed: true, retryAfterMs: 0, ...(parts && { parts: parts.map(passed) }) }
}
