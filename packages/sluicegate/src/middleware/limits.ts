import { type Awaitable, isPromise } from '../awaitable.js'
import { checkedBan } from '../ban-options.js'
import { createLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import { checkUnit } from '../headers/header-options.js'
import type { RequestFacts } from '../keys/key-reader.js'
import { WITHIN } from '../layers/shadow-limiter.js'
import { TierTable } from '../layers/tier-table.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { SlowDown } from '../slow-down.js'
import { keyFinder, readersIn, socketAddress } from './key-source.js'
import { LimitRule, type Weighed, type Weigher } from './limit.js'
import type { EdgeLimiter } from './middleware-limiter.js'
import type { Counts, GatekeeperOptions, LimiterMaker, LimitOptions, PolicyChoice } from './middleware-options.js'
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
export function limitRules<Request>(options: GatekeeperOptions<Request>, around: Surroundings): readonly Weigher<Request>[] {
  const limits = checkedLimits(options)
  const names = limits.flatMap((limit) => namesOf(policyIn(limit)))
  return limits.map((limit) => {
    const { policy, limiter, ...rest } = limit
    const make = typeof limiter === 'function' ? limiter : undefined
    if (typeof policy !== 'function')
      return limitRule(make === undefined ? limit : { ...rest, limiter: madeBy(make, policy) }, options, around)
    return new ChosenRules(policy, (chosen) => {
      checkName(namesOf(chosen), names)
      const one = make === undefined ? { policy: chosen } : { limiter: madeBy(make, chosen) }
      // Made while requests are served, but once for each policy.
      return limitRule({ ...rest, ...one }, options, { ...around, perRoute: true })
    })
  })
}

/** @throws {PolicyError} `OPTION_INVALID` */
function madeBy(make: LimiterMaker, policy: Policy | undefined): EdgeLimiter {
  const limiter: unknown = make(checkedPolicy(policy))
  if (isLimiter(limiter)) return limiter
  throw new PolicyError(
    'OPTION_INVALID',
    'limiter',
    limiter,
    'the function gave no limiter: return one such as createLimiter(policy), at once',
  )
}

function isLimiter(limiter: unknown): limiter is EdgeLimiter {
  const { take, policy } = (limiter ?? {}) as Partial<EdgeLimiter>
  return typeof take === 'function' && typeof policy?.algorithm === 'string'
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
  const names = all.flatMap((limit) => namesOf(policyIn(limit)))
  for (const [i, name] of names.entries()) checkName([name], names.slice(0, i))
  return all
}

/** @throws {PolicyError} `NAME_INVALID` */
function checkName(names: readonly string[], others: readonly string[]): void {
  const twice = names.find((name) => others.includes(name))
  if (twice === undefined) return
  throw new PolicyError(
    'NAME_INVALID',
    'name',
    twice,
    'is that of several limits, which are told by name: give each policy a name of its own',
  )
}

/** Of a policy that is chosen for each request nothing is known yet. */
function namesOf(policy: Policy | undefined): readonly string[] {
  return policy === undefined ? [] : (policy.policies ?? [policy]).map(({ name }) => name)
}

function checkLimit<Request>(limit: LimitOptions<Request>, counts: Counts<Request> | undefined): void {
  const { policy, limiter, key, cost = 1, shadow = false, unit, problem, slowDown, banAfter } = limit
  if (typeof limiter === 'function') {
    if (policy === undefined)
      throw new PolicyError('OPTION_INVALID', 'policy', policy, 'must be given beside a function that makes its limiter')
  } else if ((policy === undefined) === (limiter === undefined)) {
    const mend = 'or limiter must be given, and not both, unless limiter is a function that makes the limiter of a policy'
    throw new PolicyError('OPTION_INVALID', 'policy', policy, mend)
  }
  if (policy !== undefined && typeof policy !== 'function') checkedPolicy(policy, 'policy', 'rateLimit')
  if (limiter !== undefined && typeof limiter !== 'function' && !isLimiter(limiter)) {
    throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'must be a limiter such as createLimiter(policy)')
  }
  if (typeof cost !== 'function' && !(Number.isInteger(cost) && cost >= 0)) {
    throw new PolicyError('COST_INVALID', 'cost', cost, 'must be an integer >= 0 or a function of the request')
  }
  if (typeof shadow !== 'boolean') throw new PolicyError('OPTION_INVALID', 'shadow', shadow, 'must be true or false')
  if (problem !== undefined && !PROBLEMS.includes(problem)) {
    throw new PolicyError('OPTION_INVALID', 'problem', problem, `must be one of ${PROBLEMS.join(', ')}`)
  }
  if (slowDown !== undefined) new SlowDown(slowDown)
  if (checkedBan(banAfter) !== undefined && limiter !== undefined) {
    throw new PolicyError('OPTION_INVALID', 'banAfter', banAfter, 'is for the limiter: createLimiter(policy, { banAfter })')
  }
  checkUnit(unit)
  keyFinder(key)
  checkCounts(policyIn(limit), counts)
}

/** One limit, of which nothing is to be chosen or made any more. */
interface PlainLimit<Request> extends Omit<LimitOptions<Request>, 'policy' | 'limiter'> {
  readonly policy?: Policy | undefined
  readonly limiter?: EdgeLimiter | undefined
}

function limitRule<Request>(
  limit: LimitOptions<Request> | PlainLimit<Request>,
  all: GatekeeperOptions<Request>,
  { watch, nowMs, perRoute = false }: Surroundings,
): LimitRule<Request> {
  const { policy, limiter: given, key, cost = 1, shadow = false, unit, problem, slowDown, banAfter } = limit as PlainLimit<Request>
  // Of a limiter that is in the shadow by itself the one within: what it hides, the kind of a denial, is told to `onDenied` as of any other.
  const within = given?.[WITHIN]
  const limiter: EdgeLimiter = within ?? given ?? createLimiter(policy as Policy, banAfter && { banAfter })
  if (!perRoute) watch.making(limiter.policy)
  return new LimitRule({
    limiter,
    keyOf: keyFinder(key),
    cost,
    shadow: shadow || within !== undefined,
    unit,
    problem,
    nowMs: refunds(limiter.policy, all.counts) ? nowMs : undefined,
    inOutage: outageChoice(all.onOutage),
    tally: watch.tallyOf(limiter),
    slowDown: slowDown && new SlowDown(slowDown),
  })
}

/** The policy of a limit; undefined where it is chosen for each request. */
export function policyIn<Request>({ policy, limiter }: LimitOptions<Request>): Policy | undefined {
  if (limiter !== undefined && typeof limiter !== 'function') return limiter.policy
  return typeof policy === 'function' ? undefined : policy
}

/** @throws {PolicyError} `OPTION_INVALID` */
function checkCounts<Request>(policy: Policy | undefined, counts: Counts<Request> | undefined): void {
  if (policy === undefined || policy.algorithm !== 'all-of' || !refunds(policy, counts)) return
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

/** One limit whose policy is chosen for each request: a rule for each policy, made once for all that say the same. */
export class ChosenRules<Request> implements Weigher<Request> {
  private readonly choose: PolicyChoice<Request>
  private readonly rules: TierTable<LimitRule<Request>>

  constructor(choose: PolicyChoice<Request>, make: (policy: Policy) => LimitRule<Request>) {
    this.choose = choose
    this.rules = new TierTable({ option: 'policy', make })
  }

  weigh<Result>(facts: RequestFacts, request: Request, next: Weighed<Request, Result>, free: Result): Awaitable<Result> {
    const policy = this.choose(request, facts)
    if (isPromise(policy)) return policy.then((found) => this.ruleOf(found).weigh(facts, request, next, free))
    return this.ruleOf(policy).weigh(facts, request, next, free)
  }

  /** @throws {PolicyError} `POLICY_INVALID` */
  private ruleOf(policy: Policy): LimitRule<Request> {
    if (policy !== undefined && policy !== null) return this.rules.of(policy, false)
    throw new PolicyError(
      'POLICY_INVALID',
      'policy',
      policy,
      'the function gave none: return one for every request, or let skip pass those without',
    )
  }
}
