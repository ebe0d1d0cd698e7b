import { type Decision, isListed, strictestOf } from '../decision/decision.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'

/**
 * Why a request does not pass:
 *
 * - `denied`: the tokens of its key are spent, and come back with time;
 * - `impossible`: its cost is above what the limit ever allows;
 * - `listed`: its key is on the limiter's deny list;
 * - `outage`: the limiter's store could not be asked, and the decision without it denies;
 * - `keyless`: it has no key to be counted by, see `onMissingKey`.
 */
export type DenialKind = 'denied' | 'impossible' | 'listed' | 'outage' | 'keyless'

/** The problem types that draft-ietf-httpapi-ratelimit-headers defines. */
export type ProblemKind = 'quota-exceeded' | 'temporary-reduced-capacity' | 'abnormal-usage-detected'

/** A request that does not pass: for bodies, hooks and logs. */
export interface Denial {
  readonly kind: DenialKind
  /** `about:blank` for `keyless`. */
  readonly problem: ProblemKind | 'about:blank'
  /** The key of the strictest limit, as its `key` returned it; empty for `keyless`. */
  readonly key: Key
  /** The strictest of {@link decisions}: the one with the longest wait. */
  readonly decision: Decision
  /** The decisions of all limits that deny. */
  readonly decisions: readonly Decision[]
  /** Names of the policies that deny; of `allOf` those of its parts. */
  readonly violated: readonly string[]
  /** Whether the request passes all the same, because the limit is in shadow mode. */
  readonly shadow: boolean
  /** Of `keyless`: the name of the key's reader, such as `apiKey(x-api-key)`; `policy` where there is no policy. */
  readonly missing?: string
}

/** The denial of one limit. */
export interface LimitDenial {
  readonly decision: Decision
  readonly policy: Policy
  readonly cost: number
  readonly key: Key
}

/** The denial of a request by one or more limits. */
export function denialOf(denials: readonly LimitDenial[], shadow: boolean): Denial {
  const binding = strictestOf(denials) as LimitDenial
  const kind = kindOf(binding)
  return {
    kind,
    problem: problemOf(kind),
    key: binding.key,
    decision: binding.decision,
    decisions: denials.map(({ decision }) => decision),
    violated: denials.length === 1 ? violatedBy(binding.decision) : [...new Set(denials.flatMap(({ decision }) => violatedBy(decision)))],
    shadow,
  }
}

function kindOf({ decision, policy, cost }: LimitDenial): DenialKind {
  // A cost that can never pass is impossible with and without the store.
  if (decision.retryAfterMs === Number.POSITIVE_INFINITY) return cost > policy.burst && !isListed(decision) ? 'impossible' : 'listed'
  return decision.source === 'outage' ? 'outage' : 'denied'
}

function problemOf(kind: DenialKind): ProblemKind {
  if (kind === 'outage') return 'temporary-reduced-capacity'
  return kind === 'listed' ? 'abnormal-usage-detected' : 'quota-exceeded'
}

function violatedBy({ policy, parts }: Decision): string[] {
  if (parts === undefined) return [policy]
  const denied = parts.filter(({ allowed }) => !allowed).map((part) => part.policy)
  return denied.length > 0 ? denied : [policy]
}
