import { combined } from '../combined-decision.js'
import type { Decision } from '../decision.js'
import type { CountTimes } from '../policy/decision-decoder.js'
import type { PolicyEncoding, PolicyEncodings } from './policy-encoding.js'
import type { KeyState, ScriptVerb } from './script-call.js'

/** The decision in a script's answer to a verb with this cost, for each policy and combined. */
export function decisionFrom(
  verb: ScriptVerb,
  { encodings, isAllOf }: PolicyEncodings,
  states: readonly KeyState[],
  cost: number,
): Decision {
  if (!isAllOf) return partDecision(verb, encodings[0] as PolicyEncoding, states[0] as KeyState, cost)
  return combined(encodings.map((encoding, i) => partDecision(verb, encoding, states[i] as KeyState, cost)))
}

function partDecision(verb: ScriptVerb, encoding: PolicyEncoding, standing: KeyState, cost: number): Decision {
  const { done, debt, blockedUs } = standing
  const terms = encoding.termsOf(timesIn(standing))
  const asked = verb === 'take' || verb === 'peek' || (verb === 'reserve' && !done) ? cost : 1
  const decision = verb === 'take' && done ? terms.allowed(debt) : terms.foreseen(debt, asked, Math.ceil(blockedUs / 1000))
  return { ...decision, source: 'store' }
}

/** Microseconds until reserved tokens may be spent. */
export function waitUsIn(encoding: PolicyEncoding, standing: KeyState): number {
  return encoding.termsOf(timesIn(standing)).waitUs(standing.debt)
}

function timesIn({ untilFreeUs, untilNewUs, waitUs }: KeyState): CountTimes {
  return { untilFree: () => untilFreeUs, untilNew: () => untilNewUs, waitUs: () => waitUs }
}
