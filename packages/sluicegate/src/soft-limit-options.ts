import type { Decision } from './decision/decision.js'
import { PolicyError } from './errors.js'
import { checkFunction } from './options/option-checks.js'
import type { Policy } from './policy/policy.js'

/** A part of what may be spent at once: of a window its limit, of a bucket its burst. */
export type SoftThreshold = `${number}%`

/** A key that has spent more of a policy than a soft limit of it. */
export interface SoftLimitEvent {
  readonly policy: string
  readonly key: string
  readonly threshold: SoftThreshold
  /** Tokens, with those that are held. */
  readonly used: number
  /** Tokens that may be spent at once. */
  readonly limit: number
  readonly decision: Decision
}

/** Options of soft limits. */
export interface SoftLimitOptions {
  /**
   * Soft limits of the policy, or of each by its name: from 1 % to 1,000 % of what may be spent at once, at most ten. A key that reaches one
   * passes as before. Its decisions name the policy in `soft`, and `onSoft` is called once a window and key, over all processes that share a store.
   *
   * @defaultValue none
   * @example createLimiter(policy, { soft: ['80%', '100%'] })
   * @example createLimiter(levels({ org, team }), { soft: { team: ['80%'] } })
   */
  readonly soft?: readonly SoftThreshold[] | { readonly [policy: string]: readonly SoftThreshold[] }
  /**
   * Called when a key has reached a soft limit. What it throws becomes a warning of the process.
   *
   * @defaultValue none
   * @example createLimiter(policy, { soft: ['80%'], onSoft: ({ key, threshold }) => console.log(key, threshold) })
   */
  readonly onSoft?: (event: SoftLimitEvent) => void
}

/** A soft limit, checked. */
export interface SoftLimit {
  readonly threshold: SoftThreshold
  readonly share: number
}

/** The soft limits of each policy of a limiter, in their order, the lowest first. */
export type SoftLimits = ReadonlyMap<string, readonly SoftLimit[]>

const MOST = 10
const MEND = "must be an array of 1 to 10 thresholds from '1%' to '1000%'"

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkedSoftLimits({ soft, onSoft }: SoftLimitOptions, policy: Policy): SoftLimits | undefined {
  checkFunction('onSoft', onSoft)
  if (soft === undefined) {
    if (onSoft !== undefined) throw new PolicyError('OPTION_INVALID', 'soft', soft, "must be given beside onSoft, such as ['80%', '100%']")
    return undefined
  }
  const names = (policy.policies ?? [policy]).map(({ name }) => name)
  if (Array.isArray(soft)) {
    const limits = thresholds(soft, 'soft')
    return new Map(names.map((name) => [name, limits]))
  }
  if (typeof soft !== 'object' || soft === null)
    throw new PolicyError('OPTION_INVALID', 'soft', soft, `${MEND}, or an object of these by policy`)
  for (const name of Object.keys(soft)) {
    if (!names.includes(name)) throw new PolicyError('OPTION_INVALID', 'soft', name, `must name one of ${names.join(', ')}`)
  }
  return new Map(Object.entries(soft as object).map(([name, own]) => [name, thresholds(own, `soft.${name}`)]))
}

function thresholds(given: unknown, option: string): readonly SoftLimit[] {
  if (!Array.isArray(given) || given.length < 1 || given.length > MOST) throw new PolicyError('OPTION_INVALID', option, given, MEND)
  const limits = given.map((threshold: unknown): SoftLimit => {
    const percent = typeof threshold === 'string' && /^\d+(\.\d+)?%$/.test(threshold) ? Number.parseFloat(threshold) : Number.NaN
    if (percent >= 1 && percent <= 1_000) return { threshold: threshold as SoftThreshold, share: percent / 100 }
    throw new PolicyError('OPTION_INVALID', option, threshold, MEND)
  })
  return limits.sort((a, b) => a.share - b.share)
}
