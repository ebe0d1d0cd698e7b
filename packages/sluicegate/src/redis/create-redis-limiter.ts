import { checkedPolicy } from '../checked-policy.js'
import { type Clock, preciseClock } from '../clock.js'
import type { Decision } from '../decision.js'
import { PolicyError } from '../errors.js'
import { leaseUsOf, whyNotLeased } from '../lease/leasing.js'
import type { AnswerOf } from '../permit.js'
import type { Policy } from '../policy.js'
import { checkChange } from '../policy-change.js'
import type { FleetLimiter } from './fleet-limiter.js'
import { GuardedStore } from './guarded-store.js'
import { LeasedTakes } from './leased-takes.js'
import { Outage, type OutageMode } from './outage.js'
import { RedisLimiter, type RedisLimiterParts } from './redis-limiter.js'
import { RedisStore } from './redis-store.js'
import { type RedisClient, runnerFor } from './runner-for.js'
import type { Store } from './store.js'
import { StoreAuthority } from './store-authority.js'
import { storePoliciesOf } from './store-form.js'
import { type HashTag, StoreKeys } from './store-keys.js'
import { StoreVerbs } from './store-verbs.js'
import { warnAtStart } from './warn-at-start.js'

/** What {@link createRedisLimiter} takes beside the policy. */
export interface RedisLimiterOptions {
  /** Made, connected and closed by you. */
  readonly client: RedisClient
  /** What all names in the store begin with, default `sluicegate`. */
  readonly prefix?: string
  /**
   * `leased` (default): tokens are fetched ahead, so that nearly every decision is made in the process. `exact`: each decision is one call to
   * the store. What cannot be leased runs exact by itself.
   */
  readonly mode?: 'leased' | 'exact'
  /** Who decides while the store cannot be reached: a share of the budget here (`local`, the default), `open` lets all pass, `closed` none. */
  readonly outage?: OutageMode
  /** The share of the budget that each process may spend by itself in an outage, above 0 to 1; default 0.1. */
  readonly localShare?: number
  /** How long the store may take to answer, in milliseconds; default 100. */
  readonly timeoutMs?: number
  readonly lease?: {
    /** How far ahead tokens are fetched, 1 to 10,000 ms, default 50; the same in the whole fleet. A leased token is good for twice that. */
    readonly horizonMs?: number
  }
  /** On a cluster, what puts several keys into one hash slot, so that `allOf` can charge them together. */
  readonly hashTag?: HashTag
  /** Keys of which something is remembered here, 1 to 10,000,000; default 100,000. Others are decided by the store each time. */
  readonly maxKeys?: number
  /** Keep a top list of this many keys by demand and by denial, at most 10,000; default 0, none. */
  readonly hotKeys?: number
  /** How many callers may be in `wait` at once: 0 to 1,000,000, default 10,000. */
  readonly maxWaiters?: number
}

const OPTIONS: ReadonlySet<string> = new Set([
  'client',
  'prefix',
  'mode',
  'outage',
  'localShare',
  'timeoutMs',
  'lease',
  'hashTag',
  'maxKeys',
  'hotKeys',
  'maxWaiters',
] satisfies (keyof RedisLimiterOptions)[])

/**
 * A limiter whose budget the whole fleet shares, in Redis or Valkey: one server, Sentinel or Cluster.
 *
 * Keys in the store go by the policy's name: give it one, and its numbers may change while what was spent stays spent. Under default names,
 * which say the numbers, a changed policy begins afresh.
 *
 * @throws {PolicyError} `CLIENT_INVALID`, `LEASE_UNSUPPORTED` for `mode: 'leased'` and a policy that cannot be leased, and on an unknown
 * option or one out of range.
 * @example
 * const limiter = createRedisLimiter(tokenBucket({ limit: 100, window: '1s' }), { client: await createClient().connect() })
 * const { allowed } = await limiter.take('user:42')
 */
export function createRedisLimiter<P extends Policy>(policy: P, options: RedisLimiterOptions): FleetLimiter<AnswerOf<P> & Decision>
export function createRedisLimiter(policy: Policy, options: RedisLimiterOptions): FleetLimiter {
  checkNames(options)
  const own = checkedPolicy(policy)
  const runner = runnerFor(options.client)
  void warnAtStart(runner)
  return limiterOver(new RedisStore(runner, new StoreKeys(options.prefix ?? 'sluicegate', options.hashTag)), own, options)
}

/** Over any store. */
export function limiterOver(
  store: Store,
  policy: Policy,
  options: Omit<RedisLimiterOptions, 'client'>,
  clock: Clock = preciseClock(),
): FleetLimiter {
  const { mode, outage = 'local', localShare = 0.1, timeoutMs = 100, lease = {}, maxKeys = 100_000 } = options
  const { horizonMs = 50 } = lease
  checkOptions(options)
  const reason = policy.algorithm === 'all-of' ? undefined : whyNotLeased(policy, horizonMs)
  if (mode === 'leased' && reason !== undefined && policy.algorithm === 'concurrency') {
    throw new PolicyError('LEASE_UNSUPPORTED', 'mode', mode, `${reason}: use 'exact', or leave it out`)
  }
  const isLeased = (part: Policy): boolean => mode !== 'exact' && whyNotLeased(part, horizonMs) === undefined
  const leaseUs = (part: Policy): number => (isLeased(part) ? leaseUsOf(horizonMs) : 0)
  const guarded = new GuardedStore(store, clock, timeoutMs)
  const makes = permitNames()
  const make = (next: Policy): RedisLimiterParts => {
    const policies = storePoliciesOf(next, leaseUs)
    const verbs = new StoreVerbs(guarded, policies, makes)
    const without = new Outage(outage, next, localShare, clock)
    const leases = next.algorithm !== 'all-of' && isLeased(next)
      ? new LeasedTakes({
          policy: next,
          authority: new StoreAuthority(guarded, policies.forms[0] as never, leaseUs(next)),
          beyond: {
            take: (key, cost) => limiter.exactly(key, cost),
            isOut: (key) => guarded.pausedMs(key) > 0,
            without: (key, cost) => without.take(key, cost, guarded.pausedMs(key)),
          },
          clock,
          horizonMs,
          maxKeys,
        })
      : undefined
    const remake = (changed: Policy): RedisLimiterParts => {
      const checked = checkedPolicy(changed)
      checkChange(next, checked)
      return make({ ...checked, name: next.name })
    }
    return { policy: next, store: guarded, verbs, outage: without, leases, leaseUs: leaseUs(next), remake, clock, hotKeys: options.hotKeys ?? 0, maxWaiters: options.maxWaiters ?? 10_000 }
  }
  const limiter = new RedisLimiter(make(policy))
  return limiter
}

/** Names for permits: of one process in the order in which they were given. */
function permitNames(): () => string {
  const process = globalThis.crypto.randomUUID()
  let count = 0
  return () => `${process}:${(++count).toString(36).padStart(8, '0')}`
}

function checkNames(options: unknown): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new PolicyError('OPTION_INVALID', 'options', options, 'must be an object such as { client }')
  }
  for (const [name, value] of Object.entries(options)) {
    if (!OPTIONS.has(name)) throw new PolicyError('OPTION_UNKNOWN', name, value, `is not one of ${[...OPTIONS].join(', ')}`)
  }
}

function checkOptions({ mode, outage, localShare, timeoutMs, lease, maxKeys, hotKeys, maxWaiters }: Omit<RedisLimiterOptions, 'client'>): void {
  oneOf('mode', mode, ['leased', 'exact'])
  oneOf('outage', outage, ['local', 'open', 'closed'])
  within('localShare', localShare, Number.MIN_VALUE, 1)
  within('timeoutMs', timeoutMs, 1, 60_000)
  within('lease.horizonMs', lease?.horizonMs, 1, 10_000)
  whole('maxKeys', maxKeys, 1, 10_000_000)
  whole('hotKeys', hotKeys, 0, 10_000)
  whole('maxWaiters', maxWaiters, 0, 1_000_000)
}

function oneOf(option: string, value: unknown, known: readonly string[]): void {
  if (value === undefined || known.includes(value as string)) return
  throw new PolicyError('OPTION_INVALID', option, value, `must be one of ${known.map((name) => `'${name}'`).join(', ')}`)
}

function within(option: string, value: unknown, least: number, most: number): void {
  if (value === undefined || (typeof value === 'number' && value >= least && value <= most)) return
  throw new PolicyError('OPTION_INVALID', option, value, `must be a number ${least === Number.MIN_VALUE ? 'above 0' : `from ${least}`} to ${most}`)
}

function whole(option: string, value: unknown, least: number, most: number): void {
  within(option, value, least, most)
  if (value !== undefined && !Number.isInteger(value)) throw new PolicyError('OPTION_INVALID', option, value, 'must be an integer')
}
