import { allOf, concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from 'sluicegate'
import { ALLOW, DENY } from './job.js'

/** An algorithm as it is measured. */
export interface Algorithm {
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
export const TAKES_IN_TURN = 16_384
const KEYS_IN_TURN = 2_048

const LARGEST = 1_000_000_000
/** Windows follow each other from 1970 on: so long a one does not end inside a measurement, or only once in a year. */
const YEAR_MS = 366 * 86_400_000
/** The largest limit of the packed form, and its shortest window, rounded up. */
const PACKED = { limit: 65_535, window: '250ms' } as const
const WIDE_LIMIT = 100_000
const PASSING_WINDOW = fixedWindow({ limit: LARGEST, window: '1s' })

/** By the names of the report. */
export const ALGORITHMS = {
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
