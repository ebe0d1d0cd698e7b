import type { TokenRequest } from '../lease/grant.js'
import { KeyLease } from '../lease/key-lease.js'
import { grantOf } from './grant-of.js'

export const MS = 1000
export const HORIZON_US = 50 * MS

/** The lease of an unused key at time 0. */
export function freshLease(): KeyLease {
  return new KeyLease(0, HORIZON_US)
}

/** Asks for a lease and is given all of it at once, ready. */
export function givenAll(lease: KeyLease, nowUs: number): TokenRequest {
  const asked = lease.want(nowUs)
  lease.take(grantOf({ ready: asked.want }), asked, nowUs)
  return asked
}

/** A window's answer: nothing is known of other numbers of tokens, and what is left is all that there is. */
export const OF_A_WINDOW = { flowsBack: false, id: 1 } as const
