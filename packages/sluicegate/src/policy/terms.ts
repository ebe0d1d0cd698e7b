import type { Decision } from '../decision.js'
import type { Policy } from './policy.js'

/** What a core's answers mean under a policy. Debts are in the core's units, 0 or more. */
export interface Terms {
  readonly policy: Policy
  readonly unitsPerToken: number
  /** What debts are counted in: of two policies with the same numbers they mean the same. */
  readonly numbers: string
  /** The answer that leaves a key with this debt. */
  allowed(debt: number): Decision
  denied(debt: number, cost: number): Decision
  /** What a take of `cost` would get, were the key blocked for another `blockMs` (0: not blocked). */
  foreseen(debt: number, cost: number, blockMs: number): Decision
  /** For a newcomer without room, who may try again after `waitMs`. */
  refused(cost: number, waitMs: number): Decision
  /** For a newcomer without room that passed on a shared counter, which owes nothing after `newMs`. Nothing more is promised. */
  overflowed(newMs: number): Decision
  /** Microseconds until what was reserved, and left this debt, may be spent. */
  waitUs(debt: number): number
  /** Microseconds after which a take of `cost` that was denied would pass. */
  untilFreeUs(debt: number, cost: number): number
}
