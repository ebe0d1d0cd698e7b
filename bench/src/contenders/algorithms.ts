import {
  allOf,
  type BoundKey,
  type Clock,
  coarseClock,
  concurrency,
  createLimiter,
  type Decision,
  fixedWindow,
  gcra,
  type Limiter,
  type Permit,
  type Policy,
  preciseClock,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from 'sluicegate'
import { ALLOW, type Contender, type ContenderFactory, DENY, type Job } from '../job.js'

/** An algorithm as it is measured. */
interface Algorithm {
  /** Lets any loop over one key pass, for ever. */
  readonly allow: Policy
  /** The same of `allow` over many keys, where that need not be as large. */
  readonly allowMany?: Policy
  /** Keys that a loop over one key has to change between, because one of them would be full before its window ends. */
  readonly keysInTurn?: number
  /** Denies, for the length of a measurement, once its limit is spent. */
  readonly deny: Policy
  readonly denyMany?: Policy
}

/** Takes of one key before the next has its turn. */
const TAKES_IN_TURN = 16_384
const KEYS_IN_TURN = 2_048

const LARGEST = 1_000_000_000
/** Windows follow each other from 1970 on: so long a one does not end inside a measurement, or only once in a year. */
const YEAR_MS = 366 * 86_400_000
/** The largest limit of the packed form, and its shortest window, rounded up. */
const PACKED = { limit: 65_535, window: '250ms' } as const
const WIDE_LIMIT = 100_000
const PASSING_WINDOW = fixedWindow({ limit: LARGEST, window: '1s' })

/** By the names of the report. */
const ALGORITHMS = {
  'token bucket': { allow: tokenBucket(ALLOW), deny: tokenBucket(DENY) },
  gcra: { allow: gcra({ ...ALLOW, burst: LARGEST }), deny: gcra(DENY) },
  'fixed window': { allow: PASSING_WINDOW, deny: fixedWindow({ limit: 1, window: YEAR_MS }) },
  'sliding window, packed': { allow: slidingWindow(PACKED), keysInTurn: KEYS_IN_TURN, deny: slidingWindow({ limit: 1, window: YEAR_MS }) },
  'sliding window, wide': {
    allow: slidingWindow({ limit: LARGEST, window: '1s' }),
    deny: slidingWindow({ limit: WIDE_LIMIT, window: YEAR_MS }),
  },
  'sliding log': {
    allow: slidingLog({ limit: 50_000, window: '1ms' }),
    allowMany: slidingLog({ limit: 100, window: '250ms' }),
    deny: slidingLog({ limit: 1_000, window: '1h' }),
    denyMany: slidingLog({ limit: 10, window: '1h' }),
  },
  'concurrency, take and release': { allow: concurrency({ limit: 100, ttl: '1h' }), deny: concurrency({ limit: 10, ttl: '1h' }) },
  'allOf of 2': { allow: allOf([tokenBucket(ALLOW), PASSING_WINDOW]), deny: allOf([tokenBucket(DENY), PASSING_WINDOW]) },
} as const satisfies Record<string, Algorithm>

export type AlgorithmName = keyof typeof ALGORITHMS

export const ALGORITHM_NAMES = Object.keys(ALGORITHMS) as readonly AlgorithmName[]

const CLOCKS = { precise: preciseClock, coarse: coarseClock } as const
export type ClockName = keyof typeof CLOCKS

export type AlgorithmContenderName = `${AlgorithmName}; ${'bound' | 'keyed'}; ${ClockName}`

/** Each algorithm asked by bound key and by key, on both clocks. */
export const ALGORITHM_CONTENDERS = Object.fromEntries(
  ALGORITHM_NAMES.flatMap((name) =>
    (['precise', 'coarse'] as const).flatMap((clock) => [
      [`${name}; bound; ${clock}`, (job: Job) => bound(ALGORITHMS[name], job, CLOCKS[clock]())],
      [`${name}; keyed; ${clock}`, (job: Job) => keyed(ALGORITHMS[name], job, CLOCKS[clock]())],
    ]),
  ),
) as Record<AlgorithmContenderName, ContenderFactory>

/** Sizes of the logs whose memory is measured. */
export const LOG_LIMITS = [10, 100] as const

export type LogContenderName = `sliding log of ${(typeof LOG_LIMITS)[number]}`

/** Logs that keep every entry, by key. */
export const LOG_CONTENDERS = Object.fromEntries(
  LOG_LIMITS.map((limit) => {
    const allow = slidingLog({ limit, window: '1h' })
    return [`sliding log of ${limit}`, (job: Job) => keyed({ allow, deny: allow }, job, preciseClock())]
  }),
) as Record<LogContenderName, ContenderFactory>

const TURN_BITS = Math.log2(TAKES_IN_TURN)
/** More than any limit here. */
const MOST_TAKES_TO_FILL = 1_000_000

const passed = (answer: unknown): boolean => (answer as Decision).allowed

function keyed(algorithm: Algorithm, job: Job, clock: Clock): Contender {
  const { limiter, policy, names } = made(algorithm, job, clock)
  const releases = policy.algorithm === 'concurrency' && job.outcome === 'allow'
  const memoryBytes = (): number => limiter.stats().memoryBytes
  const rest = { passed, awaited: false, memoryBytes }
  if (job.keys > 1) return { take: releases ? (key) => released(limiter.take(key)) : (key) => limiter.take(key), ...rest }
  const mask = names.length - 1
  let takes = 0
  const next = (): string => names[(takes++ >>> TURN_BITS) & mask] as string
  return { take: releases ? () => released(limiter.take(next())) : () => limiter.take(next()), ...rest }
}

function bound(algorithm: Algorithm, job: Job, clock: Clock): Contender {
  const { limiter, policy, names } = made(algorithm, job, clock)
  const keys = names.map((name) => limiter.key(name))
  const mask = keys.length - 1
  let takes = 0
  const next = (): BoundKey => keys[(takes++ >>> TURN_BITS) & mask] as BoundKey
  const releases = policy.algorithm === 'concurrency' && job.outcome === 'allow'
  return { take: releases ? () => released(next().take()) : () => next().take(), passed, awaited: false }
}

/** The limiter of a job, and the keys of a job with one key: as many as that has to change between. Nothing is left where it shall deny. */
function made(algorithm: Algorithm, { outcome, keys }: Job, clock: Clock): { limiter: Limiter; policy: Policy; names: readonly string[] } {
  const { allow, allowMany = allow, deny, denyMany = deny, keysInTurn = 1 } = algorithm
  const isMany = keys > 1
  const policy = outcome === 'allow' ? (isMany ? allowMany : allow) : isMany ? denyMany : deny
  const count = isMany ? keys : keysInTurn
  const limiter = createLimiter(policy, { maxKeys: count, clock })
  if (outcome === 'deny') for (let index = 0; index < count; index++) fill(limiter, `user-${index}`)
  return { limiter, policy, names: isMany ? [] : Array.from({ length: count }, (_, index) => `user-${index}`) }
}

/** Requests of one token each, but where that would take too long. */
function fill(limiter: Limiter, key: string): void {
  const { limit } = limiter.policy
  if (limit > MOST_TAKES_TO_FILL / 100) limiter.take(key, limit)
  for (let takes = 0; limiter.take(key).allowed; takes++) if (takes > MOST_TAKES_TO_FILL) throw new Error(`${key} is never denied`)
}

function released(answer: Decision): Decision {
  ;(answer as Permit).release()
  return answer
}
