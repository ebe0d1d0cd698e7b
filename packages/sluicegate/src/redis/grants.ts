import { askAfterUs, type Grant } from '../lease/grant.js'
import { emissionOf } from '../policy/emission.js'
import type { PolicyEncoding } from './policy-encoding.js'
import type { ScriptLease } from './script-call.js'

/** Turns the answer to a lease, of which fewer than `least` tokens are useless, into times of single tokens. */
export type GrantOf = (lease: ScriptLease, horizonUs: number, least: number) => Grant

/**
 * @param leaseUs the length of a lease.
 * @param random a fraction.
 */
export function grantsOf(encoding: PolicyEncoding, leaseUs: number, random = Math.random): GrantOf {
  return encoding.name === 'rate' ? rateGrants(encoding, leaseUs, random) : windowGrants(encoding, leaseUs, random)
}

/** With a rate, the debt before the lease says when each token conforms. */
function rateGrants({ policy }: PolicyEncoding, leaseUs: number, random: () => number): GrantOf {
  const { unitsPerToken, unitsPerUs, capacity: whole } = emissionOf(policy)
  const capacity = whole - leaseUs * unitsPerUs
  const conformsUs = (units: number): number => Math.max(0, Math.ceil((units - capacity) / unitsPerUs))
  return ({ ready, later, debt, blockedUs }, horizonUs, least) => {
    const after = debt + (ready + later) * unitsPerToken
    const beginUs = (token: number): number => (token < ready ? 0 : conformsUs(debt + (token + 1) * unitsPerToken))
    const untilFreeFor = (tokens: number): number => conformsUs(after + tokens * unitsPerToken)
    const untilFreeUs = untilFreeFor(least)
    return {
      availableNow: ready,
      availableLater: later,
      beginUs,
      endUs: (token) => beginUs(token) + leaseUs,
      flowsBack: true,
      untilFreeUs,
      untilFreeFor,
      askAfterUs: askAfterUs(untilFreeUs, ready + later, horizonUs, random),
      blockedUs,
      remaining: Math.max(0, Math.floor((capacity - after) / unitsPerToken)),
      untilNewUs: Math.ceil(after / unitsPerUs),
    }
  }
}

/** With a window, tokens may be spent for the length of a lease, but not after the window's end. */
function windowGrants({ name, policy: { limit } }: PolicyEncoding, leaseUs: number, random: () => number): GrantOf {
  return ({ nowUs, ready, later, debt, blockedUs, untilFreeUs, untilNewUs, laterUs, endUs }, horizonUs, least) => {
    const beginUs = (token: number): number => (token < ready ? 0 : laterUs)
    return {
      availableNow: ready,
      availableLater: later,
      beginUs,
      endUs: (token) => Math.min(beginUs(token) + leaseUs, endUs),
      flowsBack: false,
      id: nowUs,
      untilFreeUs,
      // In a fixed window every cost waits for its end; elsewhere a larger cost waits as long, or longer.
      untilFreeFor: (tokens) => (tokens === least || (tokens > least && untilFreeUs > 0) ? untilFreeUs : undefined),
      // Only in a sliding window do tokens come free one after another.
      askAfterUs: name === 'sliding-window' ? askAfterUs(untilFreeUs, ready + later, horizonUs, random) : untilFreeUs,
      blockedUs,
      remaining: Math.max(0, limit - debt - ready - later),
      untilNewUs,
    }
  }
}
