import type { PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import { type Excess, firstOver } from '../history/excess.js'
import { leaseHistory } from './lease-history.js'
import type { LeaseRules } from './lease-rules.js'
import { boundOf, namesOf } from './version-bound.js'

export const LEASED_ENCODINGS = [
  'rate',
  'fixed-window',
  'sliding-window',
  'sliding-log',
] as const satisfies readonly PolicyEncoding['name'][]

/** What many histories came to. */
export interface LeaseRun {
  readonly histories: number
  /** Of all of them, of those in which anything was spent. */
  readonly admitted: number
  readonly charged: number
  /** The first that went over the budget. */
  readonly excess: (Excess & { readonly seed: number; readonly policy: string }) | undefined
}

/** Runs the histories of seeds until one goes over the budget. */
export function firstLeaseExcess(seeds: Iterable<number>, rules: LeaseRules, encodings: readonly PolicyEncoding['name'][]): LeaseRun {
  let histories = 0
  let admitted = 0
  let charged = 0
  for (const seed of seeds) {
    const history = leaseHistory(seed, rules, encodings)
    histories++
    charged += history.charged
    for (const { cost } of history.admissions) admitted += cost
    const excess = firstOver(boundOf(history.versions), history.admissions)
    if (excess !== undefined) return { histories, admitted, charged, excess: { ...excess, seed, policy: namesOf(history.versions) } }
  }
  return { histories, admitted, charged, excess: undefined }
}
