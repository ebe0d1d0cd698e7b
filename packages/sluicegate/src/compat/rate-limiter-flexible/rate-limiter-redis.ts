import { PolicyError } from '../../errors.js'
import type { Policy } from '../../policy/policy.js'
import { createRedisLimiter, type RedisLimiterOptions } from '../../redis/create-redis-limiter.js'
import type { FleetLimiter } from '../../shared/fleet-limiter.js'
import { checkedPolicyName } from '../limiter-verbs.js'
import { checkedOptions, DEFAULT_PREFIX, FLEXIBLE_OPTIONS, type FlexibleOptions, flexiblePolicy } from './flexible-options.js'
import { RateLimiterSluicegate } from './rate-limiter-sluicegate.js'

/** Options of {@link RateLimiterRedis}: those of rate-limiter-flexible, and those of `createRedisLimiter`. */
export interface RateLimiterRedisOptions
  extends FlexibleOptions,
    Pick<RedisLimiterOptions, 'prefix' | 'lease' | 'outage' | 'localShare' | 'timeoutMs' | 'maxKeys' | 'hotKeys' | 'maxWaiters'> {
  /** A client of node-redis, ioredis or valkey-glide: created, connected and closed by you. */
  readonly storeClient: RedisLimiterOptions['client']
  /** Default `exact`: each call is one to the server. `leased` fetches points ahead; results then contain what this process knows. */
  readonly mode?: RedisLimiterOptions['mode']
  /** An option of rate-limiter-flexible without effect: clients are recognised. */
  readonly useRedisPackage?: boolean
}

const OPTIONS = [
  ...FLEXIBLE_OPTIONS,
  'storeClient',
  'prefix',
  'mode',
  'lease',
  'outage',
  'localShare',
  'timeoutMs',
  'maxKeys',
  'hotKeys',
  'maxWaiters',
] as const satisfies readonly (keyof RateLimiterRedisOptions)[]

/**
 * `RateLimiterRedis` of rate-limiter-flexible: points in windows, shared by all processes, in Redis or Valkey.
 *
 * @throws {PolicyError} `CLIENT_INVALID`, and on an option that is not supported; the message says what to write instead.
 * @example new RateLimiterRedis({ storeClient: await createClient().connect(), points: 5, duration: 60, keyPrefix: 'login' })
 */
export class RateLimiterRedis extends RateLimiterSluicegate<FleetLimiter> {
  constructor(options: RateLimiterRedisOptions) {
    const { storeClient, points, duration, blockDuration, keyPrefix, mode = 'exact', ...others } = checkedOptions(options, OPTIONS)
    // With its own prefix the policy's name is independent of its numbers, so that counts survive a change of these; with the default
    // prefix other numbers count separately.
    const name = keyPrefix === DEFAULT_PREFIX || keyPrefix === '' ? undefined : checkedPolicyName('keyPrefix', keyPrefix)
    const limiter = limiterBy(storeClient, flexiblePolicy({ points, duration }, name), { ...others, mode })
    super({ limiter, blockDuration, keyPrefix })
  }

  override close(): void {
    this.limiter.close()
  }
}

/** @throws {PolicyError} `CLIENT_INVALID`, with the option's name here. */
function limiterBy(
  client: RateLimiterRedisOptions['storeClient'],
  policy: Policy,
  options: Omit<RedisLimiterOptions, 'client'>,
): FleetLimiter {
  try {
    return createRedisLimiter(policy, { ...options, client })
  } catch (error) {
    if (!(error instanceof PolicyError && error.code === 'CLIENT_INVALID')) throw error
    const mend = 'must be a client of node-redis, ioredis or valkey-glide, made and connected by you'
    throw new PolicyError('CLIENT_INVALID', 'storeClient', client, mend)
  }
}
