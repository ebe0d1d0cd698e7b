import { type Awaitable, isPromise } from '../awaitable.js'
import { limiterOf } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import type { RequestFacts } from '../keys/key-reader.js'
import { WITHIN } from '../layers/shadow-limiter.js'
import { TierTable } from '../layers/tier-table.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { SlowDown } from '../slow-down.js'
import { checkDistinctNames, checkedLimits, isLimiter, isRefunding, policyIn, policyNames } from './check-options.js'
import { type KeySource, keyFinder, missingKey, readersIn, socketAddress } from './key-source.js'
import { KeylessRequest } from './keyless.js'
import { type Charge, type ChargeSource, Limit } from './limit.js'
import { checkOptionNames } from './limit-argument.js'
import {
  type LimiterMaker,
  type LimitOptions,
  type MiddlewareLimiter,
  type MiddlewareOptions,
  outageChoice,
  type PolicyChoice,
} from './middleware-options.js'
import type { MisuseWatch } from './misuse-watch.js'

/** What limits are made with, beside their options. */
export interface LimitEnvironment {
  readonly watch: MisuseWatch
  /** Measures how long requests take, where the limiter has no clock of this library. */
  readonly nowMs: () => number
  /** Made for a route, with its app or at its first request: late, but once. Not reported as made for each request. */
  readonly perRoute?: boolean
}

/** The limits of a middleware, made of checked options. @throws {PolicyError} */
export function limitsOf<Request>(given: MiddlewareOptions<Request>, environment: LimitEnvironment): readonly ChargeSource<Request>[] {
  const options = checkOptionNames(given)
  const limits = checkedLimits(options)
  const names = limits.flatMap((limit) => policyNames(policyIn(limit)))
  return limits.map((limit) => {
    const { policy, limiter, ...rest } = limit
    const make = typeof limiter === 'function' ? limiter : undefined
    if (typeof policy !== 'function') {
      return limitOf(make === undefined ? limit : { ...rest, limiter: limiterBy(make, policy) }, options, environment)
    }
    return new LimitByRequest(policy, rest, (chosen) => {
      checkDistinctNames(policyNames(chosen), names)
      const one = make === undefined ? { policy: chosen } : { limiter: limiterBy(make, chosen) }
      // Made while requests are served, but once for each policy.
      return limitOf({ ...rest, ...one }, options, { ...environment, perRoute: true })
    })
  })
}

/** All key readers that the limits use. */
export function readersOf<Request>({ limits, key }: MiddlewareOptions<Request>): ReturnType<typeof readersIn<Request>> {
  const sources = limits === undefined ? [key] : limits.map((limit) => limit.key ?? key)
  return sources.flatMap((source) => readersIn(source ?? socketAddress))
}

/** A limit whose policy is chosen for each request: one {@link Limit} for all policies with the same content. */
class LimitByRequest<Request> implements ChargeSource<Request> {
  private readonly choose: PolicyChoice<Request>
  private readonly options: LimitOptions<Request>
  private readonly limits: TierTable<Limit<Request>>

  constructor(choose: PolicyChoice<Request>, options: LimitOptions<Request>, make: (policy: Policy) => Limit<Request>) {
    this.choose = choose
    this.options = options
    this.limits = new TierTable({ option: 'policy', make })
  }

  chargeFor(facts: RequestFacts, request: Request): Awaitable<Charge<Request> | undefined> {
    const policy = this.choose(request, facts)
    if (isPromise(policy)) return policy.then((found) => this.limitOf(found)?.chargeFor(facts, request))
    return this.limitOf(policy)?.chargeFor(facts, request)
  }

  /** A request without a policy passes uncounted or is denied, as one without a key. @throws {PolicyError} `POLICY_INVALID` */
  private limitOf(policy: Policy): Limit<Request> | undefined {
    if (policy !== undefined && policy !== null) return this.limits.of(policy, false)
    const { onMissingKey, shadow = false, key = socketAddress } = this.options
    if (onMissingKey === 'skip' || shadow) return undefined
    const keyless = new KeylessRequest(undefined, key as KeySource<never>)
    if (onMissingKey === undefined) keyless.warnOfDefault()
    throw keyless
  }
}

/** Options of one limit whose policy and limiter are known. */
interface KnownLimit<Request> extends Omit<LimitOptions<Request>, 'policy' | 'limiter'> {
  readonly policy?: Policy | undefined
  readonly limiter?: MiddlewareLimiter | undefined
}

function limitOf<Request>(
  limit: LimitOptions<Request> | KnownLimit<Request>,
  all: MiddlewareOptions<Request>,
  { watch, nowMs, perRoute = false }: LimitEnvironment,
): Limit<Request> {
  const { policy, limiter: given, key, onMissingKey, cost = 1, shadow = false, unit, slowDown, store } = limit as KnownLimit<Request>
  // Of a shadow limiter the limiter within: it returns the kind of a denial, which the shadow hides and `onDenied` is called with.
  const within = given?.[WITHIN]
  const limiter: MiddlewareLimiter = within ?? given ?? limiterOf(policy as Policy, { ...(store !== undefined && { store }) })
  if (!perRoute) watch.limitMade(limiter.policy)
  return new Limit({
    limiter,
    keyOf: keyFinder(key),
    key: key ?? socketAddress,
    onMissingKey: onMissingKey === undefined ? undefined : missingKey(onMissingKey),
    cost,
    shadow: shadow || within !== undefined,
    unit,
    isRefunding: isRefunding(limiter.policy, all.counts),
    nowMs,
    inOutage: outageChoice(all.onOutage),
    tally: watch.tallyOf(limiter),
    slowDown: slowDown && new SlowDown(slowDown),
  })
}

/** @throws {PolicyError} `OPTION_INVALID` */
function limiterBy(make: LimiterMaker, policy: Policy | undefined): MiddlewareLimiter {
  const limiter: unknown = make(checkedPolicy(policy))
  if (isLimiter(limiter)) return limiter
  throw new PolicyError(
    'OPTION_INVALID',
    'limiter',
    limiter,
    'the function returned no limiter: return one such as createLimiter(policy), and not a promise of it',
  )
}
