import type { Call, PolicyNumbers } from './call.js'

// The small model: what the calls mean when they come one after another. Written from the words of the contract, not from the core:
// no words, entries, marks or epochs; a key has the time at which its debt is paid off, or is unknown.

/** Of an unknown key; also the time by which nobody has been forgotten. */
export const NEVER = Number.NEGATIVE_INFINITY

const DEEPEST_DEBT_BURSTS = 11

/** Everything that is known at one moment. Never changed in place. */
export interface Ledger {
  readonly policy: PolicyNumbers
  /** By key: when its debt will be paid off, in units of the policy; NEVER when the key is unknown. */
  readonly paidAt: readonly number[]
  /** By key: the end of its block, in microseconds. */
  readonly blockedUntil: readonly number[]
}

/** A ledger that knows nobody. */
export function emptyLedger(policy: PolicyNumbers, keys: number): Ledger {
  return { policy, paidAt: Array<number>(keys).fill(NEVER), blockedUntil: Array<number>(keys).fill(NEVER) }
}

/** What a key owes at `nowUs`, in units. An unknown one counts from `sinceUs`, by which time keys were forgotten. */
export function debtOf({ policy, paidAt }: Ledger, key: number, nowUs: number, sinceUs: number): number {
  const paid = paidAt[key] as number
  return Math.max((paid === NEVER ? sinceUs * policy.unitsPerUs : paid) - nowUs * policy.unitsPerUs, 0)
}

export interface Applied {
  readonly after: Ledger
  readonly debt: number
  readonly denied: boolean
}

/** What a call other than a block or an update makes of a key that owes `debt`. */
export function applied(ledger: Ledger, { verb, key, nowUs, amount }: Call, debt: number): Applied {
  const { unitsPerUs, unitsPerToken, burst } = ledger.policy
  const capacity = burst * unitsPerToken
  const weight = amount * unitsPerToken
  let next = debt
  if (verb === 'take' && debt + weight <= capacity) next = debt + weight
  if (verb === 'refund') next = Math.max(debt - weight, 0)
  if (verb === 'penalize') next = Math.max(debt, Math.min(debt + weight, DEEPEST_DEBT_BURSTS * capacity))
  if (verb === 'reset') next = 0
  const after = next === debt ? ledger : withPaidAt(ledger, key, nowUs * unitsPerUs + next)
  return { after, debt: next, denied: verb === 'take' && next === debt }
}

/** The key is not known any more. */
export function withoutKey(ledger: Ledger, key: number): Ledger {
  return withPaidAt(ledger, key, NEVER)
}

/** Microseconds for which the key is still blocked. */
export function blockLeft({ blockedUntil }: Ledger, key: number, nowUs: number): number {
  return Math.max((blockedUntil[key] as number) - nowUs, 0)
}

/** The longest block wins, 0 lifts. */
export function blocked(ledger: Ledger, { key, nowUs, amount }: Call): Ledger {
  const left = amount === 0 ? 0 : Math.max(blockLeft(ledger, key, nowUs), amount)
  return { ...ledger, blockedUntil: ledger.blockedUntil.with(key, nowUs + left) }
}

/** spent' = min(spent, new burst), at the time of the change, in the new policy's units and rounded up. */
export function updated(ledger: Ledger, { nowUs, policy }: Call): Ledger {
  if (policy === undefined) throw new Error('an update needs a policy')
  const paidAt = ledger.paidAt.map((paid, key) => {
    if (paid === NEVER) return NEVER
    const spent = Math.ceil((debtOf(ledger, key, nowUs, NEVER) * policy.unitsPerToken) / ledger.policy.unitsPerToken)
    return nowUs * policy.unitsPerUs + Math.min(spent, policy.burst * policy.unitsPerToken)
  })
  return { ...ledger, policy, paidAt }
}

function withPaidAt(ledger: Ledger, key: number, paid: number): Ledger {
  return { ...ledger, paidAt: ledger.paidAt.with(key, paid) }
}
