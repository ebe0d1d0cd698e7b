import type { Call } from './call.js'
import { type ExploredPolicy, isRate } from './explored-policy.js'
import { FixedModel } from './fixed-model.js'
import type { KeyModel } from './key-model.js'
import { LogModel } from './log-model.js'
import { emptyOverflow, type OverflowLedger, type OverflowTerms } from './overflow-ledger.js'
import { PermitModel } from './permit-model.js'
import { RateModel } from './rate-model.js'
import { SlidingModel } from './sliding-model.js'

// The small model: what the calls mean when they come one after another.

/** The time before any key was forgotten or banned. */
export const NEVER = Number.NEGATIVE_INFINITY

/** Everything that is known at one moment. Never changed in place. */
export interface Ledger {
  readonly policy: ExploredPolicy
  /** By key: how it stands; undefined when it is unknown. */
  readonly keys: readonly (KeyModel | undefined)[]
  /** By key: the end of its block, in microseconds. */
  readonly blockedUntil: readonly number[]
  /** Of new keys without room; undefined when they are denied. */
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
export function newModel(policy: ExploredPolicy, sinceUs: number): KeyModel {
  if (isRate(policy)) return new RateModel(policy, sinceUs * policy.unitsPerUs)
  const window = Math.floor(sinceUs / policy.windowUs)
  if (policy.encoding === 'FIXED') return new FixedModel(policy, { window, count: 0 })
  if (policy.encoding === 'LOG') return new LogModel(policy, { requests: [], lastUs: sinceUs })
  if (policy.encoding === 'CONCURRENCY') return new PermitModel(policy, { permits: [], highUs: sinceUs })
  return new SlidingModel(policy, { window, previous: 0, count: 0 })
}

export function withKey(ledger: Ledger, key: number, model: KeyModel | undefined): Ledger {
  return ledger.keys[key] === model ? ledger : { ...ledger, keys: ledger.keys.with(key, model) }
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
  return { ...ledger, policy, keys: ledger.keys.map((model) => model?.updated(policy, nowUs)) }
}
