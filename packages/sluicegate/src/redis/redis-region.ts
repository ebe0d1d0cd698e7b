import { checkOptions } from '../options/option-checks.js'
import type { Policy } from '../policy/policy.js'
import { checkRegion, type Home, REGION_OPTIONS, type RegionOptions } from '../regions/home.js'
import { Region, type RegionStore } from '../regions/region-connect.js'
import { CallGuard, type CallPlaces } from '../shared/calls/call-guard.js'
import type { Clock } from '../time/clock.js'
import type { CommandRunner } from './command-runner.js'
import { encodingsOf } from './policy-encoding.js'
import { RedisBackend } from './redis-backend.js'
import { RedisKeys } from './redis-keys.js'
import { RedisRegionPool } from './redis-region-pool.js'
import { RedisScripts } from './redis-scripts.js'
import { type RedisClient, runnerFor } from './runner-for.js'

/** Where the budget of all regions is: the option `home` of {@link createRedisLimiter}. */
export interface RedisHomeOptions extends RegionOptions {
  /** A client of the Redis or Valkey that holds the budgets: created, connected and closed by you. */
  readonly client: RedisClient
  /** Begins all keys at the home, the same in all regions; default `sluicegate`. */
  readonly prefix?: string
}

const OPTIONS = ['client', 'prefix', ...REGION_OPTIONS]

/**
 * The region of a limiter.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`, `CLIENT_INVALID`
 */
export function redisRegion(
  given: RedisHomeOptions,
  own: { readonly runner: CommandRunner; readonly prefix: string; readonly hashTag: unknown; readonly timeoutMs: number },
  policy: Policy,
  horizonMs: number,
  permitOf: (id: number) => string,
  clock: Clock,
): Region {
  const options = checkOptions(given, OPTIONS, "{ client, region: 'eu-west' }", 'home') as RedisHomeOptions
  checkRegion(options)
  // The home may be the same server: what a region holds has names of its own.
  const keys = new RedisKeys(`${own.prefix}@${options.region}`, own.hashTag)
  const scripts = new RedisScripts(own.runner, keys)
  const guard = new CallGuard(scripts, clock, own.timeoutMs)
  const store: RegionStore = {
    poolOf: ({ name }) => new RedisRegionPool(own.runner, keys, guard, name),
    connect: (each, lengthOf) => new RedisBackend(scripts, encodingsOf(each, lengthOf), permitOf),
  }
  return new Region(redisHome(options, own.hashTag, permitOf), store, policy, options, horizonMs, clock)
}

function redisHome({ client, prefix = 'sluicegate' }: RedisHomeOptions, hashTag: unknown, permitOf: (id: number) => string): Home {
  const scripts = new RedisScripts(runnerFor(client), new RedisKeys(prefix, hashTag))
  return {
    places: scripts satisfies CallPlaces,
    connect: (policy, lengthOf) => new RedisBackend(scripts, encodingsOf(policy, lengthOf), permitOf),
    countRegions: (policies, region) =>
      scripts.countNodes(
        policies.map((name) => `${name}@regions`),
        region,
      ),
  }
}
