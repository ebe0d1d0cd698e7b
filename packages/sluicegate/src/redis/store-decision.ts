import { combined } from '../combined-decision.js'
import type { Decision } from '../decision.js'
import type { CountTimes } from '../policy/count-terms.js'
import type { StoreStanding, StoreVerb } from './store.js'
import type { StoreForm, StorePolicies } from './store-form.js'

/** What a store's answer to a verb with this cost means, for each of the policies and for all of them. */
export function storeDecision(
  verb: StoreVerb,
  { forms, isAllOf }: StorePolicies,
  standings: readonly StoreStanding[],
  cost: number,
): Decision {
  if (!isAllOf) return partDecision(verb, forms[0] as StoreForm, standings[0] as StoreStanding, cost)
  return combined(forms.map((form, i) => partDecision(verb, form, standings[i] as StoreStanding, cost)))
}

function partDecision(verb: StoreVerb, form: StoreForm, standing: StoreStanding, cost: number): Decision {
  const { done, debt, blockedUs } = standing
  const terms = form.termsOf(timesIn(standing))
  const asked = verb === 'take' || verb === 'peek' || (verb === 'reserve' && !done) ? cost : 1
  const decision = verb === 'take' && done ? terms.allowed(debt) : terms.foreseen(debt, asked, Math.ceil(blockedUs / 1000))
  return { ...decision, source: 'store' }
}

/** Microseconds until what was reserved may be spent. */
export function waitUsIn(form: StoreForm, standing: StoreStanding): number {
  return form.termsOf(timesIn(standing)).waitUs(standing.debt)
}

function timesIn({ untilFreeUs, untilNewUs, waitUs }: StoreStanding): CountTimes {
  return { untilFree: () => untilFreeUs, untilNew: () => untilNewUs, waitUs: () => waitUs }
}
