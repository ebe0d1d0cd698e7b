import type { Call } from './call.js'
import type { ExploredPolicy } from './explored-policy.js'

// How a key stands by the small model. There is one class a encoding, each written from the words of the contract, not from the core:
// no words, entries, tickets or epochs. None is ever changed in place.

/** What a call makes of a key. */
export interface Step {
  /** Undefined: the key is not known any more. */
  readonly after: KeyModel | undefined
  /** Debt after it; of a change of a permit when it expires, or 0. */
  readonly value: number
  /** Of a take or a reservation that was denied, and of a cancel that gave nothing back. */
  readonly denied?: boolean
  /** The time it tells, where it tells one: until a permit expires, until a reservation may be spent, until it would pass or is new. */
  readonly more?: number
}

export interface KeyModel {
  /** What the key owes, in units of its policy. */
  debtAt(nowUs: number): number
  step(call: Call): Step
  /** With the next window begun, where a call does that in its own step before it counts. */
  opened?(call: Call): KeyModel
  /** Under another policy from `nowUs` on. */
  updated(policy: ExploredPolicy, nowUs: number): KeyModel
}

/** Under its policy, with what it keeps. */
export abstract class KeptModel<Kept> {
  protected readonly policy: ExploredPolicy
  protected readonly kept: Kept

  constructor(policy: ExploredPolicy, kept: Kept) {
    this.policy = policy
    this.kept = kept
  }
}

export const DEEPEST_DEBT_BURSTS = 11

/** A denial: nothing changes. */
export function denied(model: KeyModel, nowUs: number, more?: number): Step {
  return { after: model, value: model.debtAt(nowUs), denied: true, ...(more === undefined ? {} : { more }) }
}
