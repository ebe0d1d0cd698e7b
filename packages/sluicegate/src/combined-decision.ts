import type { Decision } from './decision.js'

/**
 * Several decisions on one request as one: denied when one of them is. Of the denied ones the one with the longest wait answers,
 * of allowed ones the one with the least left; the first among equals.
 */
export function combined(parts: readonly Decision[]): Decision {
  const denied = parts.filter(({ allowed }) => !allowed)
  const binding =
    denied.length > 0
      ? denied.reduce((most, part) => (part.retryAfterMs > most.retryAfterMs ? part : most))
      : parts.reduce((least, part) => (part.remaining < least.remaining ? part : least))
  const { allowed, limit, remaining, retryAfterMs, policy, source } = binding
  const resetAfterMs = Math.max(...parts.map((part) => part.resetAfterMs))
  return { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source, parts }
}
