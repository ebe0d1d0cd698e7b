import { PolicyError } from '../../errors.js'
import type { Policy } from '../../policy/policy.js'
import { checkedWindowMs } from '../../policy/policy-options.js'
import { fixedWindow } from '../../policy/window-policy.js'

/** What every limiter of rate-limiter-flexible is told. */
export interface FlexibleOptions {
  /** Points a window: an integer from 1 to 1,000,000,000. */
  readonly points: number
  /** Seconds, above 0, at most 366 days. Windows are aligned to UTC. */
  readonly duration: number
  /** Seconds that a key is blocked for when it is denied; default 0, it is not. */
  readonly blockDuration?: number
  /** What keys begin with, and a colon; default `rlflx`. In a fleet give each limiter one of its own. */
  readonly keyPrefix?: string
}

export const FLEXIBLE_OPTIONS = ['points', 'duration', 'blockDuration', 'keyPrefix'] as const
export const DEFAULT_PREFIX = 'rlflx'

const MOST_POINTS = 1_000_000_000
const LEASES = "is not needed: mode: 'leased' answers what is denied without the server"
const EVENLY = 'spreads nothing here: take gcra({ limit, window, burst: 1 }), and wait() of its limiter'
const CLIENT = 'is not needed: clients of node-redis, ioredis and valkey-glide are told apart'

/** Options of rate-limiter-flexible that cannot be honoured, with what to write instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  execEvenly: EVENLY,
  execEvenlyMinDelayMs: EVENLY,
  insuranceLimiter: "is not needed: outage: 'local' (the default), 'open' or 'closed' says who decides without the server",
  inMemoryBlockOnConsumed: LEASES,
  inMemoryBlockDuration: LEASES,
  blockOnConsumed: 'cannot be: what is denied is not counted; blockDuration blocks at the first denial',
  rejectIfRedisNotReady: 'is not needed: no call takes longer than timeoutMs, 100 unless you say otherwise',
  useRedisPackage: CLIENT,
  useRedis3AndLowerPackage: 'is not supported: take a client of @redis/client or redis from 5 on, or of ioredis',
  customIncrTtlLuaScript: 'cannot be: the scripts are those of the policy',
}

/** @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN` */
export function checkOptionNames(options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw new PolicyError('OPTION_INVALID', 'options', options, 'must be an object such as { points: 5, duration: 60 }')
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || known.includes(name)) continue
    // What is turned off asks for nothing.
    if (!Object.hasOwn(INSTEAD, name)) throw new PolicyError('OPTION_UNKNOWN', name, value, `is not one of ${known.join(', ')}`)
    if (value) throw new PolicyError('OPTION_INVALID', name, value, INSTEAD[name] as string)
  }
}

/**
 * The options of a limiter that is made here, with what all have by default. Looked at first: what is refused leaves no limiter behind, and asks
 * no server anything.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`, `WINDOW_INVALID`
 */
export function checkedOptions<Options extends FlexibleOptions>(
  options: Options,
  known: readonly string[],
): Options & Required<Pick<FlexibleOptions, 'blockDuration' | 'keyPrefix'>> {
  checkOptionNames(options, known)
  const { blockDuration = 0, keyPrefix = DEFAULT_PREFIX } = options
  checkKeyPrefix(keyPrefix)
  checkedBlockMs(blockDuration)
  return { ...options, blockDuration, keyPrefix }
}

/** Those of a single call. @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN` */
export function checkCallOptions(options: Readonly<Record<string, unknown>> | undefined): void {
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined) continue
    if (name === 'customDuration') {
      throw new PolicyError('OPTION_INVALID', name, value, 'cannot be: all windows of a policy are of one length; make another limiter')
    }
    throw new PolicyError('OPTION_UNKNOWN', name, value, 'is no option of a call')
  }
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkKeyPrefix(keyPrefix: unknown): void {
  if (typeof keyPrefix !== 'string') throw new PolicyError('OPTION_INVALID', 'keyPrefix', keyPrefix, 'must be a string')
}

/** Seconds of a block, in milliseconds; 0 is none. @throws {PolicyError} `WINDOW_INVALID` */
export function checkedBlockMs(blockDuration: unknown): number {
  if (blockDuration === 0) return 0
  if (typeof blockDuration === 'number') return checkedWindowMs(blockDuration * 1000, 'blockDuration')
  throw new PolicyError('WINDOW_INVALID', 'blockDuration', blockDuration, 'must be a number of seconds, or 0')
}

/**
 * The windows of these options.
 *
 * @param name of the policy; default one that says its numbers.
 * @throws {PolicyError} `LIMIT_INVALID`, `WINDOW_INVALID`, `NAME_INVALID`
 */
export function flexiblePolicy({ points, duration }: FlexibleOptions, name?: string): Policy {
  if (!(typeof points === 'number' && Number.isInteger(points) && points >= 1 && points <= MOST_POINTS)) {
    throw new PolicyError(
      'LIMIT_INVALID',
      'points',
      points,
      `must be an integer from 1 to ${MOST_POINTS}; with none at all, block() the key`,
    )
  }
  if (!(typeof duration === 'number' && duration > 0)) {
    throw new PolicyError('WINDOW_INVALID', 'duration', duration, 'must be seconds above 0: what never ends belongs into a database')
  }
  const window = checkedWindowMs(duration * 1000, 'duration')
  return fixedWindow({ limit: points, window, ...(name !== undefined && { name }) })
}
