import { withDroppable } from '../dropped-promise.js'
import type { LimiterVerbs } from '../limiter.js'

/**
 * Corrections of an account answer with promises also where a layer knows the answer at once, and may be called without `await`; takes, waits
 * and reservations are their answers, and reject as any promise.
 */
export function withPromises<Limiter extends LimiterVerbs>(limiter: Limiter): Limiter {
  const policyName = (): string => limiter.policy.name
  const reserve = limiter.reserve.bind(limiter)
  const value: LimiterVerbs['reserve'] = async (key, cost, options) =>
    withDroppable(await reserve(key, cost, options), ['settle', 'cancel'], policyName)
  Object.defineProperty(limiter, 'reserve', { value, configurable: true, writable: true })
  return withDroppable(limiter, ['refund', 'penalize', 'block', 'reset'], policyName)
}
