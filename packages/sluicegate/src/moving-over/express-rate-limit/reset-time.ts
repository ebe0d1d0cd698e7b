import type { Decision } from '../../decision.js'

/**
 * When the count is new, as a moment of this machine's clock; of a denial when the same would pass, which is what `Retry-After` is made of.
 * Undefined where that never is.
 */
export function resetTimeOf({ allowed, resetAfterMs, retryAfterMs }: Decision): Date | undefined {
  const ms = allowed ? resetAfterMs : retryAfterMs
  return ms === Number.POSITIVE_INFINITY ? undefined : new Date(Date.now() + ms)
}
