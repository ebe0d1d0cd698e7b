import type pg from 'pg'
import { primary } from '../../../sluicegate/dist/cluster/primary.js'
import { serveLimiter } from '../../../sluicegate/dist/cluster/serve-limiter.js'
import { createLimiter, type LimiterOptions } from '../../../sluicegate/dist/index.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { postgresTable } from '../../../sluicegate/dist/postgres/table-name.js'
import { scriptedStore } from '../../../sluicegate/dist/redis/redis.js'
import { RedisKeys } from '../../../sluicegate/dist/redis/redis-keys.js'
import { RedisScripts } from '../../../sluicegate/dist/redis/redis-scripts.js'
import { nodeRedisRunner } from '../../../sluicegate/dist/redis/runners/node-redis.js'
import { casStoreOf } from '../../../sluicegate/dist/store/cas.js'
import type { CasStore } from '../../../sluicegate/dist/store/cas-store.js'
import { memoryStore } from '../../../sluicegate/dist/store-testing/memory-store.js'
import { channelPair } from '../cluster/channel-pair.js'
import type { MakeLimiter } from '../conformance/fixture.js'
import { type ConformanceChoice, conformance } from '../conformance.js'
import { AllOfOracle } from '../oracle/all-of-oracle.js'
import type { AlgorithmName, Oracle, OracleBooking, OracleDecision, OracleKey, PolicySpec, SinglePolicySpec } from '../oracle/oracle.js'
import { oracleFor } from '../oracle/versioned-oracle.js'
import { limiterAtGivenTimes } from '../postgres/given-time.js'
import { GivenTime } from '../redis/given-time.js'
import type { Answer } from '../replay.js'
import { type Mismatch, mismatchIn, oracleAnswers } from '../replay.js'
import { IS_LONG_RUN } from '../run-length.js'
import type { Sequence, Step } from '../sequences/draws.js'
import { sequenceOf } from '../sequences/sequence-of.js'
import { FleetReplay, namedPolicy, type TimedLimiter } from '../twins/fleet-replay.js'

/** As over Redis, and for the same reasons: a store has no table. */
const SHARED: NonNullable<ConformanceChoice['shared']> = [
  'verbs',
  'blocks',
  'budget',
  'time',
  'misuse',
  'reserving',
  'denialEvents',
  'updates',
]
const LESS: NonNullable<ConformanceChoice['shared']> = ['verbs', 'budget', 'updates']
const WINDOWS: NonNullable<ConformanceChoice['algorithms']> = ['gcra', 'sliding log', 'fixed window', 'sliding window']

/** How much of the long random runs is made: of its long run, and of `keys`. */
export interface StoreShare {
  readonly share: number
  readonly keysShare: number
  /** Whether all but a token bucket are asked less: what decides is the same over every store. */
  readonly sampled?: boolean
  /** Larger steps back of the clock are bounded by what the store computes itself, as those of Redis are. */
  readonly furthestBackMs?: number
}

/** The one suite on limiters over a store, exact and leased; a short run only samples: stores have their kit and the oracle as well. */
export function conformanceOverStore(
  name: string,
  make: MakeOver,
  { share, keysShare, sampled = false, furthestBackMs }: StoreShare,
): void {
  const store = {
    source: 'store',
    own: false,
    share,
    updatesLazily: true,
    ...(furthestBackMs !== undefined && { furthestBackMs }),
  } as const
  const exact = (choice: ConformanceChoice): void => conformance(`exact, ${name}`, make('exact'), { ...store, ...choice })
  const leased = (choice: ConformanceChoice): void => conformance(`leased, ${name}`, make('leased'), { ...store, ...choice })

  if (!IS_LONG_RUN) {
    exact({ algorithms: sampled ? ['all-of'] : ['token bucket', 'all-of'], shared: LESS })
    leased({ algorithms: ['fixed window'], shared: ['updates', 'denialEvents'] })
    return
  }
  exact({ algorithms: ['token bucket'], shared: SHARED })
  exact({ algorithms: ['all-of'], shared: sampled ? LESS : SHARED })
  exact({ algorithms: sampled ? ['sliding log', 'sliding window'] : WINDOWS, shared: sampled ? LESS : SHARED })
  // Time runs back for the keys of a store, but not for those of the oracle: a permit lasts as long as it was to.
  exact({ algorithms: ['concurrency'], shared: sampled ? LESS : SHARED, furthestBackMs: 0 })
  exact({ algorithms: sampled ? ['all-of'] : ['token bucket', 'sliding log', 'all-of'], shared: ['keys'], share: keysShare })
  exact({ algorithms: sampled ? ['all-of'] : ['all-of', 'fixed window', 'sliding window'], shared: [], own: true })

  // What a lease leaves as it is.
  leased({ algorithms: sampled ? ['fixed window'] : ['token bucket', 'fixed window'], shared: ['keys'], share: keysShare })
  leased({ algorithms: ['fixed window'], shared: ['denialEvents', 'updates'] })
  leased({ algorithms: ['fixed window', 'sliding log'], shared: ['misuse', 'blocks'] })
}

interface Carried {
  readonly oracle: Oracle
  /** Under which it was touched last. */
  spec: SinglePolicySpec
}

/** What a store must answer that keeps with each key the policy by which it was written: see {@link CarriedOracle}. */
export function carriedOracleFor(spec: PolicySpec): Oracle {
  if (spec.algorithm === 'all-of') return new AllOfOracle(spec.parts.map(carriedOracleFor))
  // Permits keep their time whatever the numbers.
  return spec.algorithm === 'concurrency' ? oracleFor(spec) : new CarriedOracle(spec)
}

/** A key is carried over to other numbers when it is next touched, at that time. */
class CarriedOracle implements Oracle {
  #spec: SinglePolicySpec
  readonly #keys = new Map<string, Carried>()

  constructor(spec: SinglePolicySpec) {
    this.#spec = spec
  }

  take(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).take(key, cost, nowMs)
  }

  peek(key: OracleKey, cost: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).peek(key, cost, nowMs)
  }

  refund(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).refund(key, tokens, nowMs)
  }

  penalize(key: OracleKey, tokens: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).penalize(key, tokens, nowMs)
  }

  block(key: OracleKey, durationMs: number, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).block(key, durationMs, nowMs)
  }

  reset(key: OracleKey, nowMs: number): OracleDecision {
    return this.#touched(key, nowMs).reset(key, nowMs)
  }

  reserve(key: OracleKey, cost: number, nowMs: number): OracleBooking {
    return this.#touched(key, nowMs).reserve(key, cost, nowMs)
  }

  cancel(booking: OracleBooking, tokens: number, nowMs: number): OracleDecision {
    return this.#touched(booking.key, nowMs).cancel(booking, tokens, nowMs)
  }

  update(spec: PolicySpec): void {
    this.#spec = spec as SinglePolicySpec
  }

  copy(): Oracle {
    throw new TypeError('not copied')
  }

  stateTextOf(key: OracleKey): string {
    return this.#keys.get(String(key))?.oracle.stateTextOf(key) ?? ''
  }

  forget(key: OracleKey): void {
    this.#keys.get(String(key))?.oracle.forget(key)
  }

  #touched(key: OracleKey, nowMs: number): Oracle {
    const spec = this.#spec
    const carried = this.#keys.get(String(key)) ?? { oracle: oracleFor(spec), spec }
    this.#keys.set(String(key), carried)
    if (carried.spec !== spec) carried.oracle.update(spec, nowMs)
    carried.spec = spec
    return carried.oracle
  }
}

/** An exact limiter over a store at given times, whose keys begin with `prefix`. */
export type LimiterOnStore = (policy: Policy, prefix: string) => TimedLimiter

/**
 * Plays the sequence of a seed on a store that keeps with each key the policy by which it was written: once under its first policy, and once
 * with its changes of policy. The first answer that is not the oracle's.
 */
export async function mismatchOnStore(seed: number, algorithm: AlgorithmName, make: LimiterOnStore): Promise<Mismatch | undefined> {
  const { policy, steps } = sequenceOf(seed, algorithm)
  const forward = forwards(steps)
  const steady = { policy, steps: forward.filter(({ verb }) => verb !== 'update') }
  const mismatch = await played(steady, make(namedPolicy(policy), `${algorithm} ${seed}`))
  if (mismatch !== undefined || steady.steps.length === forward.length) return mismatch
  return played({ policy, steps: settledBefore(forward, algorithm) }, make(namedPolicy(policy), `${algorithm} ${seed} changed`))
}

async function played(sequence: Sequence, limiter: TimedLimiter): Promise<Mismatch | undefined> {
  const replay = new FleetReplay(limiter)
  const answers: (Answer | undefined)[] = []
  try {
    for (const step of sequence.steps) answers.push(await replay.answer(step))
  } finally {
    replay.close()
  }
  return mismatchIn(sequence, oracleAnswers(sequence, carriedOracleFor), answers)
}

/** A store keeps nothing of a key that has been full for a while, so it does not know that its clock ran back since. */
function forwards(steps: readonly Step[]): readonly Step[] {
  let latestMs = Number.NEGATIVE_INFINITY
  return steps.map((step) => {
    latestMs = Math.max(latestMs, step.atMs)
    return { ...step, atMs: latestMs }
  })
}

/** What was charged before the numbers changed may have been forgiven: only permits come back. */
function settledBefore(steps: readonly Step[], algorithm: AlgorithmName): readonly Step[] {
  if (algorithm === 'concurrency') return steps
  let isChanged = false
  return steps.filter(({ verb }) => {
    isChanged ||= verb === 'update'
    return !isChanged || (verb !== 'settle' && verb !== 'cancel')
  })
}

/** Whether tokens may be leased. */
type Mode = 'exact' | 'leased'

/** Makes limiters over one store for the suite, each with keys of its own and at the time of the suite's clock. */
type MakeOver = (mode: Mode) => MakeLimiter

type RedisConnection = Parameters<typeof nodeRedisRunner>[0] & { sendCommand(command: string[]): Promise<unknown> }

let made = 0

/** The options of a limiter over a store. */
function shared(mode: Mode, { hotKeys = 0, maxWaiting }: LimiterOptions) {
  return { mode, hotKeys, outage: 'closed', timeout: 60_000, ...(maxWaiting !== undefined && { maxWaiting }) } as const
}

export function overRedis(client: RedisConnection): MakeOver {
  return (mode) => (policy, options) => {
    const prefix = `limiter ${++made}`
    const time = new GivenTime(nodeRedisRunner(client), options.clock)
    const limiter = createLimiter(policy, {
      store: scriptedStore(new RedisScripts(time, new RedisKeys(prefix))),
      ...shared(mode, options),
      clock: options.clock,
    })
    const keys = async (): Promise<number> => ((await client.sendCommand(['KEYS', `${prefix}:*`])) as readonly string[]).length
    return { limiter, keys }
  }
}

/** Over tables of PostgreSQL, one a limiter. */
export function overPostgres(pool: pg.Pool): MakeOver {
  return (mode) => async (policy, options) => {
    const table = `limiter_${++made}`
    await pool.query(postgresTable({ table }))
    const { limiter } = limiterAtGivenTimes(pool, policy, { ...shared(mode, options), prefix: table }, table, options.clock)
    const keys = async (): Promise<number> => (await pool.query(`SELECT count(*)::int AS keys FROM ${table}`)).rows[0].keys
    return { limiter, keys }
  }
}

/** Over a store that compares and swaps, in this process. Its clock and the limiter's are one, so they do not drift apart. */
export const overMemoryStore: MakeOver = (mode) => (policy, options) => {
  const store = memoryStore({ clock: options.clock })
  const written = new Set<string>()
  const noting: CasStore = {
    name: store.name,
    read: (key) => store.read(key),
    readAll: (keys) => store.readAll(keys),
    swap: (swap) => {
      written.add(swap.key)
      return store.swap(swap)
    },
    swapAll: (swaps) => {
      for (const { key } of swaps) written.add(key)
      return store.swapAll(swaps)
    },
  }
  const own = casStoreOf(noting, { prefix: `limiter ${++made}` }, Number.POSITIVE_INFINITY)
  const limiter = createLimiter(policy, { ...shared(mode, options), store: own, clock: options.clock })
  return { limiter, keys: () => written.size }
}

/** Over the memory of a primary process, by messages. */
export const overCluster: MakeOver = (mode) => (policy, options) => {
  const { clock, maxKeys } = options
  const pair = channelPair()
  const served = serveLimiter(policy, { clock, mode, ...(maxKeys !== undefined && { maxKeys }) })
  served.serve(pair.worker)
  const { mode: _, ...own } = shared(mode, options)
  const limiter = createLimiter(policy, { store: primary({ process: pair.parent }), clock, ...own })
  return { limiter, keys: () => served.limiter.stats().keys }
}
