import { ClusterBackend } from '../cluster/cluster-backend.js'
import { horizonMsFor } from '../cluster/memory-lease.js'
import type { Decision } from '../decision/decision.js'
import type { AnswerOf } from '../decision/permit.js'
import { type Receipt, WAIT } from '../decision/receipt.js'
import { PolicyError } from '../errors.js'
import type { Key } from '../limiter.js'
import { checkOneOf } from '../options/option-checks.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import type { FleetLimiter } from '../shared/fleet-limiter.js'
import { layeredShared, type SharedMaker } from '../shared/layers/layered-shared.js'
import { GivenShare, UNKNOWN_SHARE } from '../shared/outage/local-share.js'
import { SharedLimiter } from '../shared/shared-limiter.js'
import { checkedHorizonMs, checkOptionNames, checkSharedOptions, SHARED_OPTIONS, type SharedOptions } from '../shared/shared-options.js'
import { type Clock, preciseClock } from '../time/clock.js'
import type { LimiterObjectOptions } from './limiter-object.js'
import { ObjectLink } from './object-link.js'
import type { ObjectNamespace } from './object-types.js'

/** Options of other shared limiters that need timers between requests, or a place for what all objects share. */
type Refused = 'overrides' | 'queue' | 'maxWaiters'

/** What {@link createDurableObjectLimiter} takes beside the policy. */
export interface DurableObjectLimiterOptions extends Omit<SharedOptions, Refused>, Pick<LimiterObjectOptions, 'mode' | 'lease' | 'clock'> {
  /**
   * The binding of the class that {@link limiterObject} made.
   *
   * @defaultValue required
   * @example createDurableObjectLimiter(policy, { namespace, waitUntil })
   */
  readonly namespace: ObjectNamespace
  /**
   * `waitUntil` of `cloudflare:workers`: a request to an object outlives the client on whose behalf it was begun, because other requests may
   * wait for the same answer.
   *
   * @defaultValue required
   * @example createDurableObjectLimiter(policy, { namespace, waitUntil })
   */
  readonly waitUntil: (promise: Promise<unknown>) => void
  /**
   * The name of the object that holds a key. Keys that are charged together by `allOf` need the same one.
   *
   * @defaultValue `(key) => key`: an object for each key
   * @example createDurableObjectLimiter(policy, { namespace, waitUntil, objectFor: (key) => key.slice(0, 2) })
   */
  readonly objectFor?: (key: string) => string
}

const OPTIONS: ReadonlySet<string> = new Set([
  'namespace',
  'waitUntil',
  'objectFor',
  'mode',
  'lease',
  'clock',
  ...SHARED_OPTIONS.filter((option) => !['overrides', 'queue', 'maxWaiters'].includes(option)),
])

/** Objects have this many places, and neighbouring places share a circuit breaker: the calls to a flooded object open only that one. */
const PLACES = 16_384

/**
 * In a Worker: the limiter whose state is in Durable Objects of the class that {@link limiterObject} made from the same policy. Create it
 * once, outside of requests.
 *
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example
 * import { env, waitUntil } from 'cloudflare:workers'
 * const limiter = createDurableObjectLimiter(perKey, { namespace: env.LIMITS, waitUntil })
 * const { allowed } = await limiter.take(apiKey)
 */
export function createDurableObjectLimiter<P extends Policy>(
  policy: P,
  options: DurableObjectLimiterOptions,
): FleetLimiter<AnswerOf<P> & Decision>
export function createDurableObjectLimiter(policy: Policy, given: DurableObjectLimiterOptions): FleetLimiter {
  const options = checkOptionNames(given, OPTIONS, '{ namespace: env.LIMITS }', undefined, 'createDurableObjectLimiter()')
  checkSharedOptions(options)
  const { namespace, waitUntil, objectFor = (key: string) => key, timeoutMs = 100, mode, lease, clock = preciseClock() } = options
  checkOneOf('mode', mode, ['leased', 'exact'])
  const horizonMs = mode === 'exact' ? 0 : checkedHorizonMs(lease)
  if (typeof namespace?.idFromName !== 'function' || typeof namespace.get !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'namespace', namespace, 'must be the binding of a class of Durable Objects, such as env.LIMITS')
  }
  if (typeof waitUntil !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'waitUntil', waitUntil, "must be that of 'cloudflare:workers'")
  }
  if (typeof objectFor !== 'function') throw new PolicyError('OPTION_INVALID', 'objectFor', objectFor, 'must be a function of a key')
  const own = checkedPolicy(policy, 'policy', 'createDurableObjectLimiter')
  const make = (each: Policy): FleetLimiter =>
    limiterOver(each, { namespace, waitUntil, objectFor, timeoutMs, options, horizonMs, clock: withoutTimers(clock) })
  // Never called: there is no option for them.
  const noOverrides: Pick<SharedMaker, 'makeOverride' | 'overridesOf'> = {
    makeOverride: ({ policy: each }) => make(each),
    overridesOf: () => {
      throw new PolicyError('OPTION_UNKNOWN', 'overrides', true, 'are not kept by objects')
    },
  }
  return layeredShared(own, { make, ...noOverrides, clock, isKnownByName: true }, options)
}

/** What the limiter of each policy is made of. */
interface LimiterParts
  extends Required<Pick<DurableObjectLimiterOptions, 'namespace' | 'waitUntil' | 'objectFor' | 'timeoutMs' | 'clock'>> {
  readonly options: SharedOptions
  readonly horizonMs: number
}

function limiterOver(policy: Policy, { options, horizonMs, clock, ...parts }: LimiterParts): FleetLimiter {
  const link = new ObjectLink({ ...parts, name: policy.name })
  return new ObjectLimiter({
    policy,
    connect: (each) => new ClusterBackend(link, each),
    places: { serverOf: () => undefined, slotOf: (key) => placeOf(parts.objectFor(key)) },
    options,
    countedShare: () => new GivenShare(UNKNOWN_SHARE),
    horizonMs: horizonMsFor(policy, horizonMs),
    lateAdvice: "raise lease.horizonMs here and of limiterObject, or use mode 'exact'",
    isMadeLate: true,
    clock,
  })
}

/** In Workers a timer belongs to a request and ends with it, so that nothing is timed for several of them. */
class ObjectLimiter extends SharedLimiter {
  override update(policy: Policy): void {
    throw new PolicyError('OPTION_INVALID', 'policy', policy, 'of Durable Objects is changed where limiterObject() is called: deploy it')
  }

  override wait(key: Key): Promise<Decision> {
    return refusedWait(key)
  }

  override [WAIT](key: Key): Promise<Receipt> {
    return refusedWait(key)
  }

  override run<Result>(key: Key): Promise<Awaited<Result>> {
    return refusedWait(key)
  }
}

function refusedWait(key: Key): Promise<never> {
  const mend = 'would be timed for several requests, which Workers cannot: use reserve, and sleep its waitMs'
  return Promise.reject(new PolicyError('OPTION_INVALID', 'wait', key, mend))
}

/** Calls end by the link's own timers. */
function withoutTimers(clock: Clock): Clock {
  return { nowMs: () => clock.nowMs(), after: () => () => undefined }
}

function placeOf(object: string): number {
  let hash = 0
  for (let i = 0; i < object.length; i++) hash = (Math.imul(hash, 31) + object.charCodeAt(i)) | 0
  return (hash >>> 0) % PLACES
}
