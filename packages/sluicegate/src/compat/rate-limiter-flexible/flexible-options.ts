import { PolicyError } from '../../errors.js'
import { asGiven, isInteger } from '../../options/option-checks.js'
import type { Policy } from '../../policy/policy.js'
import { checkedWindowMs, MAX_WINDOW_MS } from '../../policy/policy-options.js'
import { fixedWindow } from '../../policy/single-policy.js'

/** The options of every limiter of rate-limiter-flexible. */
export interface FlexibleOptions {
  /** Points per window: an integer from 1 to 1,000,000,000. */
  readonly points: number
  /** Seconds, above 0, at most 366 days. Windows are aligned to UTC. */
  readonly duration: number
  /** Seconds for which a key is blocked after a denial; default 0, no block. */
  readonly blockDuration?: number
  /** Prefix of keys, followed by a colon; default `rlflx`. In a shared store each limiter needs one of its own. */
  readonly keyPrefix?: string
}

export const FLEXIBLE_OPTIONS = ['points', 'duration', 'blockDuration', 'keyPrefix'] as const
export const DEFAULT_PREFIX = 'rlflx'

const MOST_POINTS = 1_000_000_000
const MOST_S = MAX_WINDOW_MS / 1000
/** 100 years, the longest block. */
const FOR_EVER_S = 100 * 366 * 86_400
const LEASES = "is not needed: mode: 'leased' answers what is denied without the server"
const EVENLY = 'spreads nothing here: take gcra({ limit, window, burst: 1 }), and wait() of its limiter'
const CLIENT = 'is not needed: clients of node-redis, ioredis and valkey-glide are recognised'

/** Options of rate-limiter-flexible that are not supported, with what to write instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  execEvenly: EVENLY,
  execEvenlyMinDelayMs: EVENLY,
  insuranceLimiter: "is not needed: outage: 'local' (the default), 'open' or 'closed' says who decides without the server",
  inMemoryBlockOnConsumed: LEASES,
  inMemoryBlockDuration: LEASES,
  inmemoryBlockOnConsumed: LEASES,
  inmemoryBlockDuration: LEASES,
  blockOnConsumed: 'is not supported: denied points are not counted; blockDuration blocks after the first denial',
  rejectIfRedisNotReady: 'is not needed: no call takes longer than timeoutMs, 100 unless you say otherwise',
  redis: 'is called storeClient',
  storeType: CLIENT,
  useRedis3AndLowerPackage: 'is not supported: take a client of @redis/client or redis from 5 on, or of ioredis',
  customIncrTtlLuaScript: 'is not supported: the scripts are those of the policy',
}

/** Options without effect: clients are recognised. */
const IGNORED: readonly string[] = ['useRedisPackage']

/** @returns the options to read, see `asGiven`. @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN` */
export function checkFlexibleOptions<Options extends object>(options: Options, known: readonly string[]): Options {
  if (typeof options !== 'object' || options === null) {
    throw new PolicyError('OPTION_INVALID', 'options', options, 'must be an object such as { points: 5, duration: 60 }')
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || known.includes(name) || IGNORED.includes(name)) continue
    // An option that is turned off has no effect.
    if (!Object.hasOwn(INSTEAD, name)) throw new PolicyError('OPTION_UNKNOWN', name, value, `is not one of ${known.join(', ')}`)
    if (value) throw new PolicyError('OPTION_INVALID', name, value, INSTEAD[name] as string)
  }
  return asGiven(options, known)
}

/**
 * The options of a limiter with defaults, without undefined ones. Checked first, so that an error leaves no limiter behind and calls no
 * server.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`, `WINDOW_INVALID`
 */
export function checkedOptions<Options extends FlexibleOptions>(
  options: Options,
  known: readonly (keyof Options & string)[],
): Options & Required<Pick<FlexibleOptions, 'blockDuration' | 'keyPrefix'>> {
  const own = checkFlexibleOptions(options, known)
  const given = Object.fromEntries(known.filter((name) => own[name] !== undefined).map((name) => [name, own[name]]))
  const { blockDuration = 0, keyPrefix = DEFAULT_PREFIX } = own
  checkKeyPrefix(keyPrefix)
  checkedBlockMs(blockDuration)
  return { ...asGiven(given as unknown as Options, known), blockDuration, keyPrefix }
}

/** Checks the options of a single call. @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN` */
export function checkCallOptions(options: Readonly<Record<string, unknown>> | undefined): void {
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined) continue
    if (name === 'customDuration') {
      throw new PolicyError(
        'OPTION_INVALID',
        name,
        value,
        'is not supported: all windows of a policy have one length; make another limiter',
      )
    }
    throw new PolicyError('OPTION_UNKNOWN', name, value, 'is not an option of a call')
  }
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkKeyPrefix(keyPrefix: unknown): void {
  if (typeof keyPrefix !== 'string') throw new PolicyError('OPTION_INVALID', 'keyPrefix', keyPrefix, 'must be a string')
}

/** Points of a call: an integer >= 1, or its digits, as in a request or the environment. */
export type Points = number | `${number}`

const DIGITS = /^[1-9][0-9]{0,15}$/

/** Points of a call. @throws {PolicyError} `COST_INVALID` */
export function checkedPoints(points: unknown): number {
  const many = typeof points === 'string' && DIGITS.test(points) ? Number(points) : points
  if (isInteger(many, 1)) return many
  throw new PolicyError('COST_INVALID', 'points', points, 'must be an integer >= 1')
}

/** Seconds of a block after a denial, in milliseconds; 0 for none. @throws {PolicyError} `WINDOW_INVALID` */
export function checkedBlockMs(blockDuration: unknown): number {
  return blockDuration === 0 ? 0 : secondsAsMs('blockDuration', blockDuration, ', or 0 for no block')
}

/** Seconds of a block by hand, in milliseconds; 0 becomes 100 years. @throws {PolicyError} `DURATION_INVALID` */
export function checkedLockMs(secDuration: unknown): number {
  if (typeof secDuration === 'number' && secDuration >= 0 && secDuration <= FOR_EVER_S) return (secDuration || FOR_EVER_S) * 1000
  throw new PolicyError('DURATION_INVALID', 'secDuration', secDuration, `must be seconds from 0 to ${FOR_EVER_S}, which is 100 years`)
}

/**
 * The policy of these options.
 *
 * @param name of the policy; default a name of its numbers.
 * @throws {PolicyError} `LIMIT_INVALID`, `WINDOW_INVALID`
 */
export function flexiblePolicy({ points, duration }: FlexibleOptions, name?: string): Policy {
  if (!isInteger(points, 1, MOST_POINTS)) {
    throw new PolicyError(
      'LIMIT_INVALID',
      'points',
      points,
      `must be an integer from 1 to ${MOST_POINTS}; with none at all, block() the key`,
    )
  }
  const window = secondsAsMs('duration', duration, `; for what never ends take ${MOST_S}, or a database`)
  return fixedWindow({ limit: points, window, ...(name !== undefined && { name }) })
}

/** @throws {PolicyError} `WINDOW_INVALID` */
function secondsAsMs(option: string, seconds: unknown, also: string): number {
  try {
    if (typeof seconds === 'number') return checkedWindowMs(seconds * 1000, option)
  } catch {
    // Its message has milliseconds.
  }
  throw new PolicyError(
    'WINDOW_INVALID',
    option,
    seconds,
    `must be seconds from 0.001 to ${MOST_S}, which is 366 days, in whole microseconds${also}`,
  )
}
