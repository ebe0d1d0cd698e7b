import { strictestOf } from '../combined-decision.js'
import { type Decision, isListed } from '../decision.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'

/**
 * Why a request does not pass. `denied`: its tokens are spent, time will mend it. `impossible`: it costs more than its limit ever allows.
 * `listed`: its key is on the limiter's deny list. `outage`: the limiter could not be asked, and what decides without it does not let
 * it pass.
 */
export type DenialKind = 'denied' | 'impossible' | 'listed' | 'outage'

/** The problem types that the draft defines. */
export type ProblemKind = 'quota-exceeded' | 'temporary-reduced-capacity' | 'abnormal-usage-detected'

/** What is known of a request that does not pass: for bodies, hooks and logs. */
export interface Denial {
  readonly kind: DenialKind
  readonly problem: ProblemKind
  /** Whom the strictest counted: what its `key` gave. */
  readonly key: Key
  /** The strictest of {@link decisions}: the one with the longest wait. */
  readonly decision: Decision
  /** Those that deny, one for each limit that does. */
  readonly decisions: readonly Decision[]
  /** Names of the policies that deny, of `allOf` those of its parts. */
  readonly violated: readonly string[]
  /** Whether the request passes all the same, because the limit is in the shadow. */
  readonly shadow: boolean
}

/** One limit's no. */
export interface Refused {
  readonly decision: Decision
  readonly policy: Policy
  readonly cost: number
  readonly key: Key
  /** The problem that being denied by it is; default `quota-exceeded`. */
  readonly problem: ProblemKind | undefined
}

/** What these make together: at least one. */
export function denialOf(refused: readonly Refused[], shadow: boolean): Denial {
  const binding = strictestOf(refused) as Refused
  const kind = kindOf(binding)
  return {
    kind,
    problem: problemOf(kind, binding),
    key: binding.key,
    decision: binding.decision,
    decisions: refused.map(({ decision }) => decision),
    violated: refused.length === 1 ? violatedBy(binding.decision) : [...new Set(refused.flatMap(({ decision }) => violatedBy(decision)))],
    shadow,
  }
}

function kindOf({ decision, policy, cost }: Refused): DenialKind {
  // What can never pass is told as such with or without the store.
  if (decision.retryAfterMs === Number.POSITIVE_INFINITY) return cost > policy.burst && !isListed(decision) ? 'impossible' : 'listed'
  return decision.source === 'outage' ? 'outage' : 'denied'
}

function problemOf(kind: DenialKind, { problem = 'quota-exceeded' }: Refused): ProblemKind {
  if (kind === 'outage') return 'temporary-reduced-capacity'
  return kind === 'listed' ? 'abnormal-usage-detected' : problem
}

function violatedBy({ policy, parts }: Decision): string[] {
  if (parts === undefined) return [policy]
  const denied = parts.filter(({ allowed }) => !allowed).map((part) => part.policy)
  return denied.length > 0 ? denied : [policy]
}
