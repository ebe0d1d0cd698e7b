import type { Decision } from 'sluicegate'

/** What a take would have answered: a reservation has the state after it, which denies the next one when nothing is left. */
export function passed({ parts, ...decision }: Decision): Decision {
  return { ...decision, allowed: true, retryAfterMs: 0, ...(parts && { parts: parts.map(passed) }) }
}
