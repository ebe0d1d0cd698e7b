import type { Grant } from '../lease/grant.js'

/** Durations from the answer on, in microseconds. */
export interface GrantParts extends Partial<Omit<Grant, 'availableNow' | 'availableLater' | 'endUs' | 'beginUs'>> {
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
    askAfterUs: 0,
    blockedUs: 0,
    remaining: 0,
    untilNewUs: 0,
    ...more,
  }
}
