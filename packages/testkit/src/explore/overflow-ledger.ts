import type { Call } from './call.js'
import { type ExploredPolicy, isRate } from './explored-policy.js'

// The small model of new keys without room: the counter of a key, and the budget of all, each an arrival time in microseconds.

/** How many counters there are, and what all new keys without room may take together. */
export interface OverflowTerms {
  readonly counters: number
  readonly limit: number
  readonly windowUs: number
}

/** Never changed in place. */
export interface OverflowLedger {
  readonly terms: OverflowTerms
  readonly budgetUs: number
  readonly countersUs: readonly number[]
}

export function emptyOverflow(terms: OverflowTerms | undefined): OverflowLedger | undefined {
  return terms === undefined ? undefined : { terms, budgetUs: 0, countersUs: Array<number>(terms.counters).fill(0) }
}

/** The ledger after a take that passes, and for how long its counter owes something; undefined when it does not pass. */
export function overflowed(
  { terms, budgetUs, countersUs }: OverflowLedger,
  policy: ExploredPolicy,
  { key, nowUs, amount }: Call,
): { readonly after: OverflowLedger; readonly newUs: number } | undefined {
  const at = counterOf(key, terms)
  const counter = charged(countersUs[at] as number, nowUs, amount, keyTerms(policy))
  const budget = charged(budgetUs, nowUs, amount, { most: terms.limit, tokenUs: terms.windowUs / terms.limit })
  if (counter === undefined || budget === undefined) return undefined
  return { after: { terms, budgetUs: budget, countersUs: countersUs.with(at, counter) }, newUs: counter - nowUs }
}

interface Terms {
  readonly most: number
  readonly tokenUs: number
}

function charged(arrivalUs: number, nowUs: number, amount: number, { most, tokenUs }: Terms): number | undefined {
  const owedUs = Math.max(arrivalUs - nowUs, 0) + amount * tokenUs
  return owedUs > most * tokenUs ? undefined : nowUs + owedUs
}

function keyTerms(policy: ExploredPolicy): Terms {
  const { burst, unitsPerToken, unitsPerUs, windowUs } = policy
  if (isRate(policy)) return { most: burst, tokenUs: unitsPerToken / unitsPerUs }
  const most = Math.ceil(burst / 2)
  return { most, tokenUs: windowUs / (burst - most + 1) }
}

/** By the key's fingerprint, see `keyAt` in world.ts. */
function counterOf(key: number, { counters }: OverflowTerms): number {
  return ((key + 1) * 32_768 + 1) % counters
}
