import type { Decision } from '../decision.js'

/**
 * Whether what a limiter told is a decision. One that asks elsewhere passes on what it heard there, and that may be anything: what a proxy in
 * between answered, or another version.
 */
export function isDecision(told: unknown): told is Decision {
  if (typeof told !== 'object' || told === null) return false
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, spent = 0, parts } = told as Partial<Decision>
  if (typeof allowed !== 'boolean' || typeof policy !== 'string') return false
  if (!isAmount(limit) || !isAmount(remaining) || !isAmount(retryAfterMs) || !isAmount(resetAfterMs) || !isAmount(spent)) return false
  return parts === undefined || (Array.isArray(parts) && parts.every(isDecision))
}

function isAmount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0
}
