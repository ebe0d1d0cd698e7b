import type { Outcome } from './call.js'
import type { ExploredPolicy } from './explored-policy.js'

/** A take that passed: by the caller's clock, and how many tokens. */
export interface Admitted {
  readonly nowUs: number
  readonly tokens: number
}

/** The takes of one key that passed. */
export function admittedOf(outcomes: readonly Outcome[], key: number): Admitted[] {
  return outcomes
    .filter(({ call, ended, why, value }) => {
      if (call.verb !== 'take' || call.key !== key || ended === Number.POSITIVE_INFINITY) return false
      return (why === 'answered' || why === 'EVICTED') && value >= 0
    })
    .map(({ call }) => ({ nowUs: call.nowUs, tokens: call.amount }))
}

/**
 * I1 to the letter: in no interval of clock readings is more admitted than the burst, what flows in during it, and `excused` units
 * that were forgotten.
 */
export function isWithinBudget(admitted: readonly Admitted[], policy: ExploredPolicy, excused: number): boolean {
  return admitted.every(({ nowUs: from }) =>
    admitted.every(({ nowUs: to }) => {
      if (to < from) return true
      const inside = admitted.filter(({ nowUs }) => nowUs >= from && nowUs <= to)
      const units = inside.reduce((sum, { tokens }) => sum + tokens, 0) * policy.unitsPerToken
      return units <= policy.burst * policy.unitsPerToken + (to - from) * policy.unitsPerUs + excused
    }),
  )
}
