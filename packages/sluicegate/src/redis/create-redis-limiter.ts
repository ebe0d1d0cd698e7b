import type { Decision } from '../decision/decision.js'
import type { AnswerOf } from '../decision/permit.js'
import type { WithFleetOverrides } from '../overrides.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { DEFAULT_HOME_TIMEOUT_MS } from '../regions/home.js'
import { shareOfRegion } from '../regions/region-share.js'
import { CallGuard, ONE_PLACE } from '../shared/calls/call-guard.js'
import type { FleetLimiter } from '../shared/fleet-limiter.js'
import { layeredShared, type SharedMaker } from '../shared/layers/layered-shared.js'
import { OverrideCache, type OverrideStore } from '../shared/layers/override-cache.js'
import { CrossSlotBackend } from '../shared/leases/cross-slot-backend.js'
import { CountedShare, GivenShare, type LocalShare, UNKNOWN_SHARE } from '../shared/outage/local-share.js'
import { SharedLimiter } from '../shared/shared-limiter.js'
import { checkOptionNames, checkSharedOptions, leasedHorizonMs, SHARED_OPTIONS, type SharedOptions } from '../shared/shared-options.js'
import { encodingsOf } from '../shared/steps/policy-encoding.js'
import { StepBackend } from '../shared/steps/step-backend.js'
import { type Clock, preciseClock } from '../time/clock.js'
import type { CommandRunner } from './command-runner.js'
import { newNodeId } from './node-count.js'
import { type HashTag, RedisKeys } from './redis-keys.js'
import { RedisOverrides } from './redis-overrides.js'
import { type HomePlace, homePlace, type RedisHomeOptions, redisRegion } from './redis-region.js'
import { type RedisCalls, RedisScripts } from './redis-scripts.js'
import { noteName, warnAtStart, warnOfMissingListener } from './redis-warnings.js'
import { type RedisClient, runnerFor } from './runner-for.js'

/** What {@link createRedisLimiter} takes beside the policy. */
export interface RedisLimiterOptions extends SharedOptions {
  /**
   * The client: created, connected and closed by you.
   *
   * @defaultValue required
   * @example createRedisLimiter(policy, { client })
   */
  readonly client: RedisClient
  /**
   * Begins all keys in Redis.
   *
   * @defaultValue `'sluicegate'`
   * @example createRedisLimiter(policy, { client, prefix: 'eu' })
   */
  readonly prefix?: string
  /**
   * `leased`: tokens of a key that this process takes often are leased, and nearly every take of it is decided here; any other take is one
   * call. `exact`: each take is one call. A policy that cannot be leased runs exact.
   *
   * @defaultValue `'leased'`
   * @example createRedisLimiter(policy, { client, mode: 'exact' })
   */
  readonly mode?: 'leased' | 'exact'
  /**
   * `horizonMs`: how far ahead tokens are leased, 1 to 10,000 ms; the same in the whole fleet. A leased token may be spent for twice that.
   *
   * @defaultValue `{ horizonMs: 50 }`
   * @example createRedisLimiter(policy, { client, lease: { horizonMs: 200 } })
   */
  readonly lease?: {
    /** How far ahead tokens are leased, 1 to 10,000 ms, default 50; the same in the whole fleet. A leased token may be spent for twice that. */
    readonly horizonMs?: number
  }
  /**
   * On a cluster: puts several keys into one hash slot, so that `allOf` can charge them together.
   *
   * @defaultValue none
   * @example createRedisLimiter(policy, { client, hashTag: (key) => key.split(':')[0] ?? key })
   */
  readonly hashTag?: HashTag
  /**
   * The budget has its home in another store, a Redis or `home.store`, which all regions share; `client` is the store of this region. The
   * region holds tokens that the home charged ahead, so a take waits for the home only where the region has none.
   *
   * @defaultValue none: `client` holds the budget
   * @example createRedisLimiter(policy, { client, home: { client: homeClient, region: 'eu-west' } })
   */
  readonly home?: RedisHomeOptions
}

const DEFAULT_TIMEOUT_MS = 100
/** Overrides of a home may be so much older than `staleMs` while they are checked. */
const HOME_BESIDE_MS = 10_000

const OPTIONS: ReadonlySet<string> = new Set([
  'client',
  'prefix',
  'mode',
  'lease',
  'hashTag',
  'home',
  ...SHARED_OPTIONS,
] satisfies (keyof RedisLimiterOptions)[])

/**
 * Creates a limiter whose budget the whole fleet shares in Redis or Valkey: one server, Sentinel or Cluster.
 *
 * Keys in Redis contain the policy's name. Give it a name, and its numbers may change while spent tokens stay spent. A default name is made
 * from the numbers, so a changed policy starts full.
 *
 * @throws {PolicyError} `CLIENT_INVALID`, `LEASE_UNSUPPORTED` for `mode: 'leased'` and a policy that cannot be leased, and on an unknown
 * option or one out of range.
 * @example
 * const limiter = createRedisLimiter(tokenBucket({ limit: 100, window: '1s' }), { client: await createClient().connect() })
 * const { allowed } = await limiter.take('user:42')
 */
export function createRedisLimiter<P extends Policy>(
  policy: P,
  options: RedisLimiterOptions & { readonly overrides: true | { readonly staleMs?: number } },
): FleetLimiter<AnswerOf<P> & Decision> & WithFleetOverrides
export function createRedisLimiter<P extends Policy>(policy: P, options: RedisLimiterOptions): FleetLimiter<AnswerOf<P> & Decision>
export function createRedisLimiter(policy: Policy, given: RedisLimiterOptions): FleetLimiter {
  const own = checkedPolicy(policy, 'policy', 'createRedisLimiter')
  const options = checkOptionNames(given, OPTIONS, '{ client }', undefined, 'createRedisLimiter()')
  const runner = runnerFor(options.client)
  void warnAtStart(runner)
  warnOfMissingListener(runner, options.client)
  const prefix = options.prefix ?? 'sluicegate'
  const keys = new RedisKeys(prefix, options.hashTag)
  const store = new RedisScripts(runner, keys)
  const clock = preciseClock()
  const home = options.home && homePlace(options.home, options.hashTag, clock)
  const kept = (): OverrideStore => home?.overridesOf(own) ?? new RedisOverrides(runner, keys, own.name)
  const limiter = layersOver(store, kept, own, options, clock, { runner, prefix, home })
  noteName(runner, prefix, limiter)
  return limiter
}

/** Over any scripts, with the layers that the options ask for. */
export function layersOver(
  store: RedisCalls,
  kept: () => OverrideStore,
  own: Policy,
  options: Omit<RedisLimiterOptions, 'client'>,
  clock: Clock = preciseClock(),
  place?: OwnStore,
): FleetLimiter {
  const id = newNodeId()
  const make = (policy: Policy): FleetLimiter => limiterOver(store, policy, options, clock, id, place)
  const overridesOf: SharedMaker['overridesOf'] = (staleMs, now) => {
    const guard = new CallGuard(ONE_PLACE, clock, timeoutMsOf(options))
    return new OverrideCache(kept(), guard, clock, staleMs, now, place?.home === undefined ? 0 : HOME_BESIDE_MS)
  }
  return layeredShared(own, { make, makeOverride: ({ policy }) => make(policy), overridesOf, clock }, options)
}

/** The store of this process, of which a region is made. */
interface OwnStore {
  readonly runner: CommandRunner
  readonly prefix: string
  readonly home: HomePlace | undefined
}

/** Over any scripts, without layers. */
export function limiterOver(
  store: RedisCalls,
  policy: Policy,
  options: Omit<RedisLimiterOptions, 'client'>,
  clock: Clock = preciseClock(),
  id: string = newNodeId(),
  place?: OwnStore,
): FleetLimiter {
  const horizonMs = leasedHorizonMs(policy, options)
  checkSharedOptions(options)
  const permitOf = permitNames()
  const { hashTag, timeoutMs = DEFAULT_TIMEOUT_MS } = options
  const region = place?.home && redisRegion(place.home, { ...place, hashTag, timeoutMs }, policy, horizonMs, permitOf, clock)
  const counted = (): LocalShare => countedShare(store, policy, clock, id)
  return new SharedLimiter({
    policy,
    connect: (each, lengthOf) => region?.connect(each) ?? new StepBackend(store, encodingsOf(each, lengthOf), permitOf),
    crossSlot: region ? undefined : CrossSlotBackend,
    places: store,
    options: { ...options, timeoutMs: timeoutMsOf(options) },
    countedShare: () => (region ? shareOfRegion(counted(), region.share) : counted()),
    horizonMs,
    lateAdvice: "raise lease.horizonMs in the whole fleet, or use mode 'exact'",
    clock,
    region,
  })
}

/** A take may wait for the region's store and for the home. */
function timeoutMsOf({ timeoutMs = DEFAULT_TIMEOUT_MS, home }: Omit<RedisLimiterOptions, 'client'>): number {
  return timeoutMs + (home === undefined ? 0 : timeoutMs + (home.timeoutMs ?? DEFAULT_HOME_TIMEOUT_MS))
}

/** `1 / nodes`; of several policies the least, as each may be shared with other limiters. */
function countedShare(store: RedisCalls, policy: Policy, clock: Clock, id: string): LocalShare {
  const names = (policy.policies ?? [policy]).map(({ name }) => name)
  if (store.countNodes === undefined) return new GivenShare(UNKNOWN_SHARE)
  return new CountedShare(clock, async () => store.countNodes?.(names, id) ?? 1)
}

/** Names of permits, which sort in the order of the operations of a process. */
function permitNames(): (id: number) => string {
  const process = globalThis.crypto.randomUUID()
  return (id) => `${process}:${id.toString(36).padStart(8, '0')}`
}
