import type { Policy } from '../engine/engine.js'
import type { BudgetNumbers } from './quota-budget.js'

/** The part of a window's limit that may be admitted at once, where no burst is configured. */
const WINDOW_BURST = 1 / 10

/**
 * The budget of a policy for requests that take `cost` tokens. A window becomes a rate and a burst that are its limit together, so that no window of
 * that length has more.
 *
 * @param windowBurst the tokens of a window that may be admitted at once; a tenth by default.
 */
export function budgetNumbers({ algorithm, limit, windowMs, burst }: Policy, cost = 1, windowBurst?: number): BudgetNumbers {
  const perSecond = 1_000 / windowMs / cost
  if (algorithm === 'token-bucket' || algorithm === 'gcra')
    return { ratePerSecond: limit * perSecond, burst: Math.max(1, Math.floor(burst / cost)) }
  // A limit of 1 has nothing to split.
  const atOnce = limit === 1 ? 1 : Math.min(limit - 1, windowBurst ?? Math.max(1, Math.floor(limit * WINDOW_BURST)))
  return { ratePerSecond: (limit === 1 ? 1 : limit - atOnce) * perSecond, burst: Math.max(1, Math.floor(atOnce / cost)) }
}
