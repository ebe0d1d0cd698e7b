import { emissionOf } from '../emission.js'
import type { Authority, Grant } from '../lease/authority.js'
import type { Store, StoreLease } from './store.js'
import type { StoreForm } from './store-form.js'

/** What a store says of a lease, as times of single tokens. */
export class StoreAuthority implements Authority {
  private readonly store: Store
  private readonly form: StoreForm
  private readonly leaseUs: number
  private readonly grantOf: (lease: StoreLease, horizonUs: number) => Grant

  constructor(store: Store, form: StoreForm, leaseUs: number) {
    this.store = store
    this.form = form
    this.leaseUs = leaseUs
    this.grantOf = form.form === 'rate' ? this.rateGrantIn() : windowGrant
  }

  async lease(key: string, want: number, horizonUs: number): Promise<Grant> {
    return this.grantOf(await this.store.lease(this.form, key, want, horizonUs), horizonUs)
  }

  /** Of a rate the debt before says when each token conforms. */
  private rateGrantIn(): (lease: StoreLease, horizonUs: number) => Grant {
    const { unitsPerToken, unitsPerUs, capacity: whole } = emissionOf(this.form.policy)
    const capacity = whole - this.leaseUs * unitsPerUs
    return ({ ready, later, debt, blockedUs }, horizonUs) => {
      const after = debt + (ready + later) * unitsPerToken
      const conformsUs = (units: number): number => Math.max(0, Math.ceil((units - capacity) / unitsPerUs))
      const beginUs = (token: number): number => (token < ready ? 0 : conformsUs(debt + (token + 1) * unitsPerToken))
      const untilFreeUs = conformsUs(after + unitsPerToken)
      return {
        ready,
        later,
        beginUs,
        endUs: (token) => beginUs(token) + this.leaseUs,
        untilFreeUs,
        untilFreeFor: (tokens) => conformsUs(after + tokens * unitsPerToken),
        askAfterUs: askAfterUs(untilFreeUs, ready + later, horizonUs),
        blockedUs,
        remaining: Math.max(0, Math.floor((capacity - after) / unitsPerToken)),
        untilNewUs: Math.ceil(after / unitsPerUs),
      }
    }
  }
}

/** Of a window all tokens are good until its end. */
function windowGrant(lease: StoreLease, horizonUs: number): Grant {
  const { ready, later, blockedUs, untilFreeUs, untilNewUs, laterUs, endUs } = lease
  return {
    ready,
    later,
    beginUs: (token) => (token < ready ? 0 : laterUs),
    endUs: () => endUs,
    untilFreeUs,
    untilFreeFor: (tokens) => (tokens === 1 ? untilFreeUs : undefined),
    askAfterUs: askAfterUs(untilFreeUs, ready + later, horizonUs),
    blockedUs,
    remaining: 0,
    untilNewUs,
  }
}

/**
 * Who got something comes back when most of another horizon can be had; who got nothing at random before, for a smaller part of it, so
 * that in the long run all get alike.
 */
function askAfterUs(untilFreeUs: number, granted: number, horizonUs: number): number {
  const ahead = granted > 0 ? 0.2 : 0.2 + 0.8 * Math.random()
  return Math.max(0, untilFreeUs - ahead * horizonUs)
}
