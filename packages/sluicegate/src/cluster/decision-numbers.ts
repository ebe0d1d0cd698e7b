import { combined } from '../combined-decision.js'
import type { Decision } from '../decision.js'
import type { Policy } from '../policy/policy.js'
import { numbersIn, receivedTime, sentTime } from './message.js'

/** Numbers for each policy: allowed, limit, remaining, retry-after and reset-after in milliseconds, and tokens spent beyond the burst or 0. */
const NUMBERS = 6

/** Encodes a decision as numbers; with `allOf` those of its parts, from which the whole is combined again. */
export function numbersOfDecision({ parts, ...whole }: Decision): number[] {
  return (parts ?? [whole]).flatMap(({ allowed, limit, remaining, retryAfterMs, resetAfterMs, spent = 0 }) => [
    allowed ? 1 : 0,
    limit,
    remaining,
    sentTime(retryAfterMs),
    resetAfterMs,
    spent,
  ])
}

/** Decodes the decision that the primary made under `policy`. */
export function decisionIn(answer: readonly unknown[], policy: Policy): Decision {
  const policies = policy.policies ?? [policy]
  const numbers = numbersIn(answer, NUMBERS * policies.length)
  const parts = policies.map(({ name }, i): Decision => {
    const [allowed, limit = 0, remaining = 0, retryAfterMs = 0, resetAfterMs = 0, spent = 0] = numbers.slice(NUMBERS * i, NUMBERS * (i + 1))
    return {
      allowed: allowed === 1,
      limit,
      remaining,
      retryAfterMs: receivedTime(retryAfterMs),
      resetAfterMs,
      policy: name,
      source: 'store',
      ...(spent > 0 && { spent }),
    }
  })
  return policy.policies === undefined ? (parts[0] as Decision) : combined(parts)
}
