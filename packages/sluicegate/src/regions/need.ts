import { mostLeased } from '../lease/leasing.js'
import { isRate, type Policy } from '../policy/policy.js'
import type { Drawn } from '../shared/region-pool.js'
import { PLENTY, type RegionTerms } from './region-terms.js'

/** A key is renewed that probably needs so many tokens while one lasts. One that needs fewer than {@link SLOW} is so before its tokens end. */
const [WARM, SLOW] = [0.5, 16]
/** A ban may have been lifted elsewhere: it is looked at again after so long. */
const LOOK_AGAIN_US = 2_000_000
/** After how long a late renewal is looked for again. */
const SOON_US = 50_000
/**
 * A region wants its part of so much of what a scarce budget had left, and of all that flows in. That keeps some tokens at the home: else regions
 * got what flowed in since another one came, whatever their demand, and one whose demand begins found nothing.
 */
const OF_REST = 0.5

/** Whether a key has so little demand that it is kept warm: it is renewed before its tokens end, not when they are used up. */
export function isSlowlyUsed({ pace }: Drawn, { leaseUs }: RegionTerms): boolean {
  return pace * leaseUs >= WARM && pace * leaseUs < SLOW
}

/** Whether the key is to be renewed now. @param isWanted keys of any pace are. */
export function isDue(drawn: Drawn, terms: RegionTerms, leadUs: number, isWanted: boolean): boolean {
  const { nowUs, claimedUs, isRenewing, blockedUs, deniedUs, isScarce, pace, left } = drawn
  const { periodUs, leaseUs } = terms
  const agoUs = nowUs - claimedUs
  if (isRenewing) return false
  if (blockedUs > 0) return agoUs >= LOOK_AGAIN_US
  if (deniedUs > 0 || (isScarce && agoUs < periodUs)) return false
  if (!isWanted && pace * leaseUs < WARM) return false
  const need = pace * leadUs
  return left <= need || (left <= need + 2 * Math.sqrt(need) && agoUs >= periodUs) || (pace * leaseUs < SLOW && 2 * agoUs >= leaseUs)
}

/** How long the fewest useful tokens are denied, or until a renewal on its way should have come; 0 where only the home knows. */
export function deniedUsOf(drawn: Drawn, least: number, leadUs: number, due: boolean): number {
  const { tokens, meteredUs, isScarce, deniedUs, deniedCost, isRenewing, nowUs, claimedUs } = drawn
  if (tokens > 0 || meteredUs > 0) return tokens > 0 ? 0 : meteredUs
  if (!isScarce || least < deniedCost) return 0
  if (isRenewing) return Math.max(claimedUs + leadUs - nowUs, SOON_US)
  return deniedUs > 0 || !due ? deniedUs : leadUs
}

/**
 * Tokens that a region needs until the renewal after this one has come, with two standard deviations of a Poisson demand; and those that it
 * wants: of a scarce budget its part of what the home had left and what flows in meanwhile.
 */
export function wantedOf(
  { left, rest, isScarce, pace, total }: Drawn,
  policy: Policy,
  { periodUs, leaseUs }: RegionTerms,
  leadUs: number,
): readonly [need: number, wanted: number] {
  const { limit, windowMs } = policy
  const during = pace * leadUs
  const foreseen = during + 2 * Math.sqrt(during) + pace * periodUs - left
  const need = Math.max(1, Math.ceil(foreseen))
  if (!isScarce) {
    if (!isRate(policy)) return [need, need]
    // What is left unspent flows back. For longer with plenty, up to twice as long; half of the lease is left for a renewal that comes late.
    const plenty = Math.max(0, Math.min(1, rest / mostLeased(policy, leaseUs)) - PLENTY) / (1 - PLENTY)
    const wanted = Math.max(1, Math.ceil(foreseen + pace * plenty * Math.min(periodUs, leaseUs / 2 - periodUs)))
    return [wanted, wanted]
  }
  if (total <= pace) return [need, need]
  const inflow = (limit / (windowMs * 1000)) * periodUs
  // Of a budget into which hardly anything flows nothing is kept: single takes at the home spend the rest.
  const open = inflow < 1 ? rest : rest * OF_REST + inflow
  const part = Math.max(1, Math.ceil(Math.min(foreseen, open * (pace / total))))
  return [inflow < 1 ? part : need, part]
}
