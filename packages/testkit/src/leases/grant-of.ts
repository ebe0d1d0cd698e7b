import type { Grant, TokenRequest } from '../../../sluicegate/dist/lease/grant.js'
import { KeyLease } from '../../../sluicegate/dist/lease/key-lease.js'

/** Durations from the answer on, in microseconds. */
interface GrantParts extends Partial<Omit<Grant, 'availableNow' | 'availableLater' | 'endUs' | 'beginUs'>> {
  readonly ready?: number
  /** When each of the later tokens begins. */
  readonly later?: readonly number[]
  /** How long each token is good. */
  readonly endUs?: number
}

/** A grant of these tokens, of a rate by default; nothing else is known of the key. */
export function grantOf({ ready = 0, later = [], endUs = 100_000, ...more }: GrantParts): Grant {
  const beginUs = (token: number): number => later[token - ready] ?? 0
  return {
    availableNow: ready,
    availableLater: later.length,
    beginUs,
    endUs: (token) => beginUs(token) + endUs,
    flowsBack: true,
    untilFreeUs: 0,
    untilFreeFor: () => undefined,
    blockedUs: 0,
    remaining: 0,
    untilNewUs: 0,
    ...more,
  }
}

export const MS = 1000
export const HORIZON_US = 50 * MS

/** The lease of an unused key at time 0. */
export function freshLease(): KeyLease {
  return new KeyLease(0, HORIZON_US, 1000)
}

/** Asks for a lease and is given all of it at once, ready. */
export function givenAll(lease: KeyLease, nowUs: number): TokenRequest {
  const asked = lease.want(nowUs)
  lease.addGrant(grantOf({ ready: asked.want }), asked, nowUs)
  return asked
}

/** A window's answer: nothing is known of other numbers of tokens, and what is left is all that there is. */
export const OF_A_WINDOW = { flowsBack: false, id: 1 } as const
