import { createLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import { checkUnit } from '../headers/header-options.js'
import { ShadowLimiter } from '../layers/shadow-limiter.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import type { EdgeLimiter } from './edge-limiter.js'
import type { Counts, GatekeeperOptions, LimitOptions } from './gatekeeper-options.js'
import { keyFinder, readersIn, socketAddress } from './key-source.js'
import { LimitRule } from './limit-rule.js'
import type { MisuseWatch } from './misuse-watch.js'
import { checkLimitNames, checkOptionNames, EXAMPLE, LIMIT_OPTIONS } from './option-names.js'
import { outageChoice } from './outage-choice.js'

const MOST_LIMITS = 8
const PROBLEMS = ['quota-exceeded', 'temporary-reduced-capacity', 'abnormal-usage-detected']

/** What a gatekeeper finds around it. */
export interface Surroundings {
  readonly watch: MisuseWatch
  /** A clock that never runs back, which tells how long requests take. Limits are decided on that of their limiter. */
  readonly nowMs: () => number
  /** Made when a route is first asked for, or with an app: late, but once. */
  readonly perRoute?: boolean
}

/** The limits of a gatekeeper, read. @throws {PolicyError} */
export function limitRules<Request>(options: GatekeeperOptions<Request>, around: Surroundings): readonly LimitRule<Request>[] {
  return checkedLimits(options).map((limit) => limitRule(limit, options, around))
}

/** What options say of each limit, looked at before anything is made of it. @throws {PolicyError} */
export function checkedLimits<Request>(options: GatekeeperOptions<Request>): readonly LimitOptions<Request>[] {
  checkOptionNames(options)
  const { limits } = options
  if (limits === undefined) {
    checkLimit(options, options.counts)
    return [options]
  }
  if (!Array.isArray(limits) || limits.length < 1 || limits.length > MOST_LIMITS) {
    throw new PolicyError('OPTION_INVALID', 'limits', limits, `must be an array of 1 to ${MOST_LIMITS} limits such as ${EXAMPLE}`)
  }
  const beside = LIMIT_OPTIONS.find(
    (name) => name !== 'key' && name !== 'shadow' && options[name as keyof LimitOptions<Request>] !== undefined,
  )
  if (beside !== undefined) {
    throw new PolicyError('OPTION_INVALID', beside, options[beside as keyof LimitOptions<Request>], 'belongs into each of limits')
  }
  const { key, shadow } = options
  const all = limits.map((limit): LimitOptions<Request> => {
    checkLimitNames(limit)
    const whole = { ...(key !== undefined && { key }), ...(shadow !== undefined && { shadow }), ...limit }
    checkLimit(whole, options.counts)
    return whole
  })
  const policies = all.map(policyIn)
  const names = policies.flatMap((policy) => (policy.policies ?? [policy]).map(({ name }) => name))
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice === undefined) return all
  throw new PolicyError(
    'NAME_INVALID',
    'name',
    twice,
    'is that of several limits, which are told by name: give each policy a name of its own',
  )
}

function checkLimit<Request>(limit: LimitOptions<Request>, counts: Counts<Request> | undefined): void {
  const { policy, limiter, key, cost = 1, shadow = false, unit, problem } = limit
  if ((policy === undefined) === (limiter === undefined)) {
    throw new PolicyError('OPTION_INVALID', 'policy', policy, 'or limiter must be given, and not both')
  }
  if (policy !== undefined) checkedPolicy(policy, 'policy', 'rateLimit')
  if (limiter !== undefined && (typeof limiter?.take !== 'function' || typeof limiter.policy?.algorithm !== 'string')) {
    throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'must be a limiter such as createLimiter(policy)')
  }
  if (typeof cost !== 'function' && !(Number.isInteger(cost) && cost >= 0)) {
    throw new PolicyError('COST_INVALID', 'cost', cost, 'must be an integer >= 0 or a function of the request')
  }
  if (typeof shadow !== 'boolean') throw new PolicyError('OPTION_INVALID', 'shadow', shadow, 'must be true or false')
  if (problem !== undefined && !PROBLEMS.includes(problem)) {
    throw new PolicyError('OPTION_INVALID', 'problem', problem, `must be one of ${PROBLEMS.join(', ')}`)
  }
  checkUnit(unit)
  keyFinder(key)
  checkCounts(policyIn(limit), counts)
}

function limitRule<Request>(
  { policy, limiter: given, key, cost = 1, shadow = false, unit, problem }: LimitOptions<Request>,
  all: GatekeeperOptions<Request>,
  { watch, nowMs, perRoute = false }: Surroundings,
): LimitRule<Request> {
  // Of a limiter that is in the shadow by itself the one within: what it hides, the kind of a denial, is told to `onDenied` as of any other.
  const isShadow = given instanceof ShadowLimiter
  const limiter: EdgeLimiter = isShadow ? given.within : (given ?? createLimiter(policy as Policy))
  if (!perRoute) watch.making(limiter.policy)
  return new LimitRule({
    limiter,
    keyOf: keyFinder(key),
    cost,
    shadow: shadow || isShadow,
    unit,
    problem,
    nowMs: refunds(limiter.policy, all.counts) ? nowMs : undefined,
    inOutage: outageChoice(all.onOutage),
    tally: watch.tallyOf(limiter),
  })
}

function policyIn<Request>({ policy, limiter }: LimitOptions<Request>): Policy {
  return limiter?.policy ?? (policy as Policy)
}

/** @throws {PolicyError} `OPTION_INVALID` */
function checkCounts<Request>(policy: Policy, counts: Counts<Request> | undefined): void {
  if (policy.algorithm !== 'all-of' || !refunds(policy, counts)) return
  // What comes back late would come back to a later window of the shorter policy.
  throw new PolicyError(
    'OPTION_INVALID',
    'counts',
    counts,
    'cannot be told of allOf, whose policies wear off apart: give each as one of limits',
  )
}

/** Whether tokens may come back after the response. A place of `concurrency` always does. */
function refunds<Request>({ algorithm }: Policy, counts: Counts<Request> | undefined): boolean {
  return counts !== undefined && counts !== 'all' && algorithm !== 'concurrency'
}

/** Every key reader that the limits ask. */
export function readersOf<Request>({ limits, key }: GatekeeperOptions<Request>): ReturnType<typeof readersIn<Request>> {
  const sources = limits === undefined ? [key] : limits.map((limit) => limit.key ?? key)
  return sources.flatMap((source) => readersIn(source ?? socketAddress))
}
