import { PolicyError } from '../errors.js'
import { checkOptions } from '../options/option-checks.js'
import type { Policy } from '../policy/policy.js'
import { checkRegion, DEFAULT_HOME_TIMEOUT_MS, type Home, REGION_OPTIONS, type RegionOptions } from '../regions/home.js'
import { Region, type RegionStore } from '../regions/region-connect.js'
import { MAKE_HOME, type StoreHome } from '../regions/store-home.js'
import { CallGuard, NO_EVENTS } from '../shared/calls/call-guard.js'
import { encodingsOf } from '../shared/steps/policy-encoding.js'
import { StepBackend } from '../shared/steps/step-backend.js'
import type { Clock } from '../time/clock.js'
import type { CommandRunner } from './command-runner.js'
import { RedisKeys } from './redis-keys.js'
import { RedisOverrides } from './redis-overrides.js'
import { RedisRegionPool } from './redis-region-pool.js'
import { RedisScripts } from './redis-scripts.js'
import { type RedisClient, runnerFor } from './runner-for.js'

/** Where the budget of all regions is: the option `home` of {@link createRedisLimiter}. Give either `client` or `store`. */
export interface RedisHomeOptions extends RegionOptions {
  /** A client of the Redis or Valkey that holds the budgets: created, connected and closed by you. */
  readonly client?: RedisClient
  /** Another store that holds the budgets: `postgresHome({ client: pool })` or `storeHome(store)`. */
  readonly store?: StoreHome
  /** Begins all keys at the home, the same in all regions; default `sluicegate`. */
  readonly prefix?: string
}

const OPTIONS = ['client', 'store', 'prefix', ...REGION_OPTIONS]

/** The home of a limiter and of those of its tiers. */
export interface HomePlace {
  readonly options: RegionOptions
  homeOf(permitOf: (id: number) => string): Home
  /** Overrides at the home, so that they reach all regions. */
  overridesOf(policy: Policy): RedisOverrides
}

/** @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`, `CLIENT_INVALID` */
export function homePlace(given: RedisHomeOptions, hashTag: unknown, clock: Clock): HomePlace {
  const options = checkOptions(given, OPTIONS, "{ client, region: 'eu-west' }", 'home') as RedisHomeOptions
  checkRegion(options)
  const { client, store, prefix = 'sluicegate' } = options
  if (client !== undefined && store !== undefined) {
    throw new PolicyError('OPTION_INVALID', 'home.store', store, 'and home.client are two homes: give one of them')
  }
  return store === undefined
    ? placeInRedis(options, runnerFor(client as RedisClient), new RedisKeys(prefix, hashTag))
    : placeInStore(options, store, prefix, clock)
}

function placeInRedis(options: RegionOptions, runner: CommandRunner, keys: RedisKeys): HomePlace {
  const scripts = new RedisScripts(runner, keys)
  return {
    options,
    homeOf: (permitOf) => ({
      places: scripts,
      sharesGrants: true,
      connect: (policy, lengthOf) => new StepBackend(scripts, encodingsOf(policy, lengthOf), permitOf),
      countRegions: (policies, region) =>
        scripts.countNodes(
          policies.map((name) => `${name}@regions`),
          region,
        ),
    }),
    overridesOf: ({ name }) => new RedisOverrides(runner, keys, name),
  }
}

function placeInStore(options: RegionOptions, store: StoreHome, prefix: string, clock: Clock): HomePlace {
  const make = (store as Partial<StoreHome> | null)?.[MAKE_HOME]
  if (typeof make !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'home.store', store, 'must be what postgresHome({ client: pool }) or storeHome(store) returns')
  }
  const home = make({ prefix, clock, timeoutMs: options.timeoutMs ?? DEFAULT_HOME_TIMEOUT_MS })
  return {
    options,
    homeOf: () => home,
    overridesOf: () => {
      throw new PolicyError('OPTION_INVALID', 'overrides', true, 'are kept at the home, and home.store keeps none: use policyFor')
    },
  }
}

/** The region of a limiter. */
export function redisRegion(
  { options, homeOf }: HomePlace,
  own: { readonly runner: CommandRunner; readonly prefix: string; readonly hashTag: unknown; readonly timeoutMs: number },
  policy: Policy,
  horizonMs: number,
  permitOf: (id: number) => string,
  clock: Clock,
): Region {
  // The home may be the same server: what a region holds has names of its own.
  const keys = new RedisKeys(`${own.prefix}@${options.region}`, own.hashTag)
  const scripts = new RedisScripts(own.runner, keys)
  // The limiter around it has the circuits: a second one would fail calls that the first one lets through to look at the server.
  const guard = new CallGuard(scripts, clock, own.timeoutMs, NO_EVENTS, true)
  const store: RegionStore = {
    poolOf: ({ name }) => new RedisRegionPool(own.runner, keys, guard, name),
    connect: (each, lengthOf) => new StepBackend(scripts, encodingsOf(each, lengthOf), permitOf),
  }
  return new Region({ home: homeOf(permitOf), store, options, horizonMs, clock }, policy)
}
