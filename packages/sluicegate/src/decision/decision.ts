/** The answer to a take or a peek: a plain readonly value. A denial is a value too, never an exception. */
export interface Decision {
  readonly allowed: boolean
  /** The binding policy's `limit`, never its burst; `remaining` may be larger. */
  readonly limit: number
  /** Whole tokens left after this decision, rounded down, never below 0. */
  readonly remaining: number
  /**
   * Milliseconds until the same request would pass without other takes: 0 if allowed, otherwise rounded up;
   * `Infinity` when the cost is above the burst and can never pass.
   */
  readonly retryAfterMs: number
  /** Milliseconds until the key is full, rounded up; 0 if it is. */
  readonly resetAfterMs: number
  /** Name of the binding policy. */
  readonly policy: string
  /** Where it was made: shared memory, a lease, the store itself, or without it while it cannot be reached. */
  readonly source: 'memory' | 'lease' | 'store' | 'outage'
  /**
   * Whole tokens spent, rounded up, only where the burst less `remaining` does not say it: of a key in debt they are more than the burst, and in
   * an outage they are those of this process's share, 0 where nothing is counted.
   */
  readonly spent?: number
  /** Of `allOf`: the decision of each of its policies, in their order. */
  readonly parts?: readonly Decision[]
  /** The names of the policies of which the key has reached a soft limit, see {@link SoftLimitOptions}; absent if of none. */
  readonly soft?: readonly string[]
  /** From a shadow limiter: this would have been denied, or made to wait. */
  readonly wouldDeny?: true
}

/**
 * Whether it denies because its key is on a deny list: nothing is left of such a key, and nothing has to come back. Of any other that can
 * never pass one of them is more than none.
 */
export function isListed({ allowed, remaining, retryAfterMs, resetAfterMs, source }: Decision): boolean {
  return !allowed && retryAfterMs === Number.POSITIVE_INFINITY && remaining === 0 && resetAfterMs === 0 && source === 'memory'
}

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
