import type { Call } from './call.js'
import { type ExploredPolicy, isRate } from './explored-policy.js'
import { FixedStanding } from './fixed-standing.js'
import { LogStanding } from './log-standing.js'
import { emptyOverflow, type OverflowLedger, type OverflowTerms } from './overflow-ledger.js'
import { PermitStanding } from './permit-standing.js'
import { RateStanding } from './rate-standing.js'
import { SlidingStanding } from './sliding-standing.js'
import type { Standing } from './standing.js'

// The small model: what the calls mean when they come one after another.

/** The time before any key was forgotten or banned. */
export const NEVER = Number.NEGATIVE_INFINITY

/** Everything that is known at one moment. Never changed in place. */
export interface Ledger {
  readonly policy: ExploredPolicy
  /** By key: how it stands; undefined when it is unknown. */
  readonly keys: readonly (Standing | undefined)[]
  /** By key: the end of its block, in microseconds. */
  readonly blockedUntil: readonly number[]
  /** Of newcomers without room; undefined when they are denied. */
  readonly overflow?: OverflowLedger | undefined
}

/** A ledger without keys. */
export function emptyLedger(policy: ExploredPolicy, keys: number, overflow?: OverflowTerms): Ledger {
  return {
    overflow: emptyOverflow(overflow),
    policy,
    keys: Array<undefined>(keys).fill(undefined),
    blockedUntil: Array<number>(keys).fill(NEVER),
  }
}

/** How a key stands that counts from `sinceUs`. */
export function newStanding(policy: ExploredPolicy, sinceUs: number): Standing {
  if (isRate(policy)) return new RateStanding(policy, sinceUs * policy.unitsPerUs)
  const window = Math.floor(sinceUs / policy.windowUs)
  if (policy.form === 'FIXED') return new FixedStanding(policy, window, 0)
  if (policy.form === 'LOG') return new LogStanding(policy, [], sinceUs)
  if (policy.form === 'CONCURRENCY') return new PermitStanding(policy, [], sinceUs)
  return new SlidingStanding(policy, window, 0, 0)
}

export function withKey(ledger: Ledger, key: number, standing: Standing | undefined): Ledger {
  return ledger.keys[key] === standing ? ledger : { ...ledger, keys: ledger.keys.with(key, standing) }
}

/** Microseconds for which the key is still blocked. */
export function banLeft({ blockedUntil }: Ledger, key: number, nowUs: number): number {
  return Math.max((blockedUntil[key] as number) - nowUs, 0)
}

/** The longest block wins, 0 lifts. */
export function blocked(ledger: Ledger, { key, nowUs, amount }: Call): Ledger {
  const left = amount === 0 ? 0 : Math.max(banLeft(ledger, key, nowUs), amount)
  return { ...ledger, blockedUntil: ledger.blockedUntil.with(key, nowUs + left) }
}

export function updated(ledger: Ledger, { nowUs, policy }: Call): Ledger {
  if (policy === undefined) throw new Error('an update needs a policy')
  // With the same numbers nothing changes.
  if (JSON.stringify(policy) === JSON.stringify(ledger.policy)) return ledger
  return { ...ledger, policy, keys: ledger.keys.map((standing) => standing?.updated(policy, nowUs)) }
}
