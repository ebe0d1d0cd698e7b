import { holdsPermits } from '../decision/permit.js'
import { PolicyError } from '../errors.js'
import { checkHeaderOptions, checkUnit } from '../headers/header-writer.js'
import { checkMetered, meteredBy } from '../holds/metered.js'
import { asGiven, checkBoolean, checkFunction, isInteger } from '../options/option-checks.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { checkStore } from '../shared/store.js'
import { SlowDown } from '../slow-down.js'
import { bodyMaker, statusesOf } from './denial-response.js'
import { keyFinder, missingKey } from './key-source.js'
import { checkLimitNames, checkOptionNames, EXAMPLE, LIMIT_OPTIONS, namesLimit } from './limit-argument.js'
import { type Counts, type LimitOptions, type MiddlewareLimiter, type MiddlewareOptions, outageChoice } from './middleware-options.js'
import { countsOf } from './settle.js'

const MAX_LIMITS = 8
/** Options that each of several limits takes over. */
const SHARED_OPTIONS = ['key', 'onMissingKey', 'shadow', 'store']

/** Checks all options without making anything of them: those of a limit, or those that routes take over. @throws {PolicyError} */
export function checkMiddlewareOptions<Request>(given: MiddlewareOptions<Request>, takenBy?: string): void {
  const options = checkOptionNames(given, takenBy)
  if (namesLimit(options, takenBy)) checkedLimits(options)
  else {
    keyFinder(options.key)
    missingKey(options.onMissingKey)
    if (options.store !== undefined) checkStore('store', options.store)
  }
  const { headers, body, status, counts, onOutage } = options
  checkFunctions(options)
  checkHeaderOptions(typeof headers === 'object' ? headers : { ...(headers !== undefined && { version: headers }) })
  bodyMaker(body)
  statusesOf(status)
  countsOf(counts)
  outageChoice(onOutage)
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkFunctions<Request>({ skip, onDenied }: MiddlewareOptions<Request>): void {
  checkFunction('skip', skip)
  checkFunction('onDenied', onDenied)
}

/** The options of each limit, checked before anything is made of them. @throws {PolicyError} */
export function checkedLimits<Request>(given: MiddlewareOptions<Request>): readonly LimitOptions<Request>[] {
  const options = checkOptionNames(given)
  const { limits, counts = 'all' } = options
  const isMetered = ({ cost }: LimitOptions<Request>): boolean => meteredBy(cost) !== undefined
  if (counts !== 'all' && (limits ?? [options]).every((limit) => isMetered(Object(limit)))) {
    throw new PolicyError('OPTION_INVALID', 'counts', counts, 'has nothing to give back: a metered request costs what its handler adds')
  }
  if (limits === undefined) {
    checkLimit(options)
    return [options]
  }
  if (!Array.isArray(limits) || limits.length < 1 || limits.length > MAX_LIMITS) {
    throw new PolicyError('OPTION_INVALID', 'limits', limits, `must be an array of 1 to ${MAX_LIMITS} limits such as ${EXAMPLE}`)
  }
  const beside = LIMIT_OPTIONS.find((name) => !SHARED_OPTIONS.includes(name) && options[name as keyof LimitOptions<Request>] !== undefined)
  if (beside !== undefined) {
    throw new PolicyError('OPTION_INVALID', beside, options[beside as keyof LimitOptions<Request>], 'belongs into each of limits')
  }
  const { key, onMissingKey, shadow, store } = options
  if (store !== undefined) {
    checkStore('store', store)
    const isTaken = limits.some((limit) => limit?.store === undefined && limit?.limiter === undefined)
    if (!isTaken) throw new PolicyError('OPTION_INVALID', 'store', store, 'is taken by none of limits: createLimiter(policy, { store })')
  }
  const all = limits.map((limit): LimitOptions<Request> => {
    checkLimitNames(limit)
    // A limit that has none of its own takes these over.
    const whole = asGiven(
      {
        ...limit,
        ...(limit.key === undefined && { key }),
        ...(limit.onMissingKey === undefined && { onMissingKey }),
        ...(limit.shadow === undefined && { shadow }),
        ...(limit.store === undefined && limit.limiter === undefined && { store }),
      },
      LIMIT_OPTIONS,
    )
    checkLimit(whole)
    return whole
  })
  const names = all.flatMap((limit) => policyNames(policyIn(limit)))
  for (const [i, name] of names.entries()) checkDistinctNames([name], names.slice(0, i))
  return all
}

/** @throws {PolicyError} `NAME_INVALID` */
export function checkDistinctNames(names: readonly string[], others: readonly string[]): void {
  const twice = names.find((name) => others.includes(name))
  if (twice === undefined) return
  throw new PolicyError(
    'NAME_INVALID',
    'name',
    twice,
    'is the name of several limits, which headers and denials tell apart by name: give each policy a name of its own',
  )
}

/** Empty for a policy that is chosen for each request. */
export function policyNames(policy: Policy | undefined): readonly string[] {
  return policy === undefined ? [] : (policy.policies ?? [policy]).map(({ name }) => name)
}

/** The policy of a limit; undefined where it is chosen for each request. */
export function policyIn<Request>({ policy, limiter }: LimitOptions<Request>): Policy | undefined {
  if (limiter !== undefined && typeof limiter !== 'function') return limiter.policy
  return typeof policy === 'function' ? undefined : policy
}

export function isLimiter(limiter: unknown): limiter is MiddlewareLimiter {
  const { take, policy } = (limiter ?? {}) as Partial<MiddlewareLimiter>
  return typeof take === 'function' && typeof policy?.algorithm === 'string'
}

/** Whether tokens may be refunded after the response. A permit of `concurrency` is always released. */
export function isRefunding<Request>({ algorithm }: Policy, counts: Counts<Request> | undefined): boolean {
  return counts !== undefined && counts !== 'all' && algorithm !== 'concurrency'
}

/**
 * Whether the middleware has to see the end of responses: to refund requests that do not count, to release permits of `concurrency`, or to close
 * holds. Not known here for policies and costs that are chosen for each request.
 */
export function needsResponse<Request>(options: MiddlewareOptions<Request>): boolean {
  const { counts = 'all', limits = [options] } = options
  const isHeld = ({ cost, ...limit }: LimitOptions<Request>): boolean => {
    const policy = policyIn(limit as LimitOptions<Request>)
    return meteredBy(cost) !== undefined || (policy !== undefined && holdsPermits(policy))
  }
  return counts !== 'all' || limits.some(isHeld)
}

function checkLimit<Request>(limit: LimitOptions<Request>): void {
  const { policy, limiter, key, onMissingKey, cost = 1, shadow = false, unit, slowDown, store } = limit
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
  const metered = meteredBy(cost)
  if (metered !== undefined) checkMetered(metered, typeof limiter === 'object' ? limiter : undefined)
  else if (typeof cost !== 'function' && !isInteger(cost, 0)) {
    throw new PolicyError('COST_INVALID', 'cost', cost, "must be an integer >= 0, 'metered' or a function of the request")
  }
  checkBoolean('shadow', shadow)
  if (slowDown !== undefined) new SlowDown(slowDown)
  if (store !== undefined && limiter !== undefined) {
    throw new PolicyError('OPTION_INVALID', 'store', store, 'is for the limiter: createLimiter(policy, { store })')
  }
  if (store !== undefined) checkStore('store', store)
  checkUnit(unit)
  keyFinder(key)
  missingKey(onMissingKey)
}
