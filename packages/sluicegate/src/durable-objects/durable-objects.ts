import type { Decision } from '../decision/decision.js'
import { type Reservation, WAIT } from '../decision/reservation.js'
import { PolicyError } from '../errors.js'
import type { Key } from '../limiter.js'
import { checkOptions } from '../options/option-checks.js'
import { LinkBackend } from '../owner/link-backend.js'
import { horizonMsFor } from '../owner/memory-lease.js'
import type { Policy } from '../policy/policy.js'
import { BackedLimiter } from '../shared/backed-limiter.js'
import { storeOf } from '../shared/limiter-over.js'
import type { Store } from '../shared/store.js'
import type { Clock } from '../time/clock.js'
import { ObjectLink } from './object-link.js'
import type { ObjectNamespace } from './object-types.js'

/** What {@link durableObjects} takes beside the namespace. */
export interface DurableObjectsOptions {
  /**
   * `waitUntil` of `cloudflare:workers`: a request to an object outlives the client on whose behalf it was begun, because other requests may
   * wait for the same answer.
   *
   * @defaultValue required
   * @example durableObjects(env.LIMITS, { waitUntil })
   */
  readonly waitUntil: (promise: Promise<unknown>) => void
  /**
   * The name of the object that holds a key. Keys that are charged together by `allOf` need the same one.
   *
   * @defaultValue `(key) => key`: an object for each key
   * @example durableObjects(env.LIMITS, { waitUntil, objectFor: (key) => key.slice(0, 2) })
   */
  readonly objectFor?: (key: string) => string
}

const OPTIONS: readonly string[] = ['waitUntil', 'objectFor'] satisfies (keyof DurableObjectsOptions)[]

/** Objects have this many places, and neighbouring places share a circuit breaker: the calls to a flooded object open only that one. */
const PLACES = 16_384
const NO_TIMERS = 'needs a timer between requests, which Workers do not have'

/**
 * In a Worker: Durable Objects of the class that {@link limiterObject} made, as the store of limiters of the same policies. Create both once,
 * outside of requests. Give the limiter the `mode` and the `lease` of the class.
 *
 * @param namespace the binding of the class.
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example
 * import { env, waitUntil } from 'cloudflare:workers'
 * const limiter = createLimiter(perKey, { store: durableObjects(env.LIMITS, { waitUntil }) })
 * const { allowed } = await limiter.take(apiKey)
 */
export function durableObjects(namespace: ObjectNamespace, options: DurableObjectsOptions): Store {
  if (typeof namespace?.idFromName !== 'function' || typeof namespace.get !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'namespace', namespace, 'must be the binding of a class of Durable Objects, such as env.LIMITS')
  }
  const { waitUntil, objectFor = (key: string) => key } = checkOptions(options, OPTIONS, '{ waitUntil }', 'durableObjects()')
  if (typeof waitUntil !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'waitUntil', waitUntil, "must be that of 'cloudflare:workers'")
  }
  if (typeof objectFor !== 'function') throw new PolicyError('OPTION_INVALID', 'objectFor', objectFor, 'must be a function of a key')
  return storeOf({
    name: 'durable objects',
    refused: { maxWaiting: NO_TIMERS },
    open: ({ clock: given, timeoutMs, hasPlans }) => {
      const clock = withoutTimers(given)
      /** Whose levels have plans, which each call says. */
      let own: { readonly policy: Policy; readonly link: ObjectLink } | undefined
      return {
        isKnownByName: true,
        under: (policy, horizonMs) => {
          const planned = own
          const link = planned?.link ?? new ObjectLink({ namespace, waitUntil, objectFor, timeoutMs, name: policy.name })
          if (hasPlans) own ??= { policy, link }
          return {
            clock,
            connect: (each) => new LinkBackend(link, each, planned?.policy),
            places: { serverOf: () => undefined, slotOf: (key) => placeOf(objectFor(key)) },
            horizonMs: planned === undefined ? horizonMsFor(policy, horizonMs) : 0,
            lateAdvice: "raise lease here and of limiterObject, or use mode 'exact'",
            isMadeLate: true,
            limiter: (parts) => new ObjectLimiter(parts),
          }
        },
      }
    },
  })
}

/** In Workers a timer belongs to a request and ends with it, so that nothing is timed for several of them. */
class ObjectLimiter extends BackedLimiter {
  override update(policy: Policy): void {
    throw new PolicyError('OPTION_INVALID', 'policy', policy, 'of Durable Objects is changed where limiterObject() is called: deploy it')
  }

  override wait(key: Key): Promise<Decision> {
    return refusedWait(key)
  }

  override [WAIT](key: Key): Promise<Reservation<'later'>> {
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
