import type { TurnOptions } from '../arguments.js'
import { checkedHotKeys } from '../decision/hot-keys.js'
import { PolicyError } from '../errors.js'
import { whyNotLeased } from '../lease/leasing.js'
import type { LimiterOptions } from '../limiter.js'
import { asGiven, checkInteger, checkNumber, checkOneOf } from '../options/option-checks.js'
import { unknownOption } from '../options/unknown-option.js'
import type { Policy } from '../policy/policy.js'
import { checkClock } from '../time/clock.js'
import { checkedMs, type Duration } from '../time/duration.js'
import type { WatchOptions } from '../watch-options.js'
import type { OutageMode } from './outage/local-share.js'
import type { Store } from './store.js'

/** Options of every limiter that shares its budget with other processes. */
export interface SharedOptions
  extends Pick<LimiterOptions, 'maxKeys' | 'hotKeys' | 'policyFor' | 'policies' | 'banAfter' | 'allow' | 'deny' | 'shadow'>,
    TurnOptions,
    WatchOptions {
  /**
   * Where the budget is, so that several processes share it: `redis(client)`, `postgres(pool)`, `casStore(store)`, `primary()`,
   * `durableObjects(namespace)`, `region({ ... })`. Of middleware for the limiters made for `policy`: of an app, also for those of its routes; beside
   * `limits`, for each that has no limiter.
   *
   * @defaultValue none: the limiter is in memory
   * @example createLimiter(policy, { store: redis(client) })
   */
  readonly store: Store
  /**
   * `leased`: tokens of a key that this process takes often are leased, and nearly every take of it is decided here; any other take is one
   * call to the store. `exact`: each take is one call. A policy that cannot be leased runs exact.
   *
   * @defaultValue `'leased'`
   * @example createLimiter(policy, { store, mode: 'exact' })
   */
  readonly mode?: 'leased' | 'exact'
  /**
   * How far ahead tokens are leased, 1 ms to 10 s; the same in all processes. A leased token may be spent for twice that.
   *
   * @defaultValue `'50ms'`
   * @example createLimiter(policy, { store, lease: '200ms' })
   */
  readonly lease?: Duration
  /**
   * What decides in an outage: `local` a share of the budget in each process, `open` allows everything, `closed` nothing.
   *
   * @defaultValue `'local'`
   * @example createLimiter(policy, { store, outage: 'open' })
   */
  readonly outage?: OutageMode
  /**
   * The part of the budget that is decided without the store. With `local` what each process may spend in an outage, above 0 to 1; of a region what
   * it decides by itself while the home does not answer, 0 to 1, which is charged there afterwards: 0 denies.
   *
   * @defaultValue 1 divided by the number of limiters, or regions, that share the policy, as the store counted them; at most 0.1 for one that it does
   * not know
   * @example createLimiter(policy, { store, share: 0.25 })
   */
  readonly share?: number
  /**
   * How long a call to the store, or from a region to the home, may take: 1 ms to 1 minute.
   *
   * @defaultValue `'100ms'`; of `region` `'1s'`
   * @example createLimiter(policy, { store, timeout: '50ms' })
   */
  readonly timeout?: Duration
  /** {@link LimiterOptions.overrides} */
  readonly overrides?: boolean | { readonly maxAge?: Duration }
}

export const SHARED_OPTIONS: readonly (keyof SharedOptions)[] = [
  'store',
  'mode',
  'lease',
  'clock',
  'outage',
  'share',
  'timeout',
  'maxKeys',
  'hotKeys',
  'maxWaiting',
  'policyFor',
  'policies',
  'allow',
  'deny',
  'shadow',
  'overrides',
  'banAfter',
  'soft',
  'onSoft',
  'ledger',
]

const OVERRIDES_OPTIONS: ReadonlySet<string> = new Set(['maxAge'])
/** Of a call to the store. */
const DEFAULT_TIMEOUT_MS = 100
const DEFAULT_STALE_MS = 1_000
const DEFAULT_HORIZON_MS = 50

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkSharedOptions(options: SharedOptions): void {
  const { outage, share, timeout, maxKeys, hotKeys, maxWaiting, clock } = options
  if (clock !== undefined) checkClock(clock)
  checkOneOf('outage', outage, ['local', 'open', 'closed'])
  if (share !== undefined) checkNumber('share', share, Number.MIN_VALUE, 1)
  if (timeout !== undefined) checkedTimeoutMs(timeout)
  if (maxKeys !== undefined) checkInteger('maxKeys', maxKeys, 1, 10_000_000)
  checkedHotKeys(hotKeys)
  if (maxWaiting !== undefined) checkInteger('maxWaiting', maxWaiting, 0, 1_000_000)
}

/** @returns the options as {@link asGiven} says. @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN` */
export function checkOptionNames<Options>(
  options: Options,
  known: ReadonlySet<string>,
  example: string,
  within?: string,
  of?: string,
): Options {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new PolicyError('OPTION_INVALID', within ?? 'options', options, `must be an object such as ${example}`)
  }
  for (const name of Object.keys(options)) {
    const option = within === undefined ? name : `${within}.${name}`
    if (!known.has(name)) throw unknownOption({ option, options, known: [...known], of: within ?? of })
  }
  return asGiven(options, [...known])
}

/**
 * How old overrides may be before they are loaded again; undefined without them.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`
 */
export function overridesStaleMs(overrides: SharedOptions['overrides']): number | undefined {
  if (overrides === undefined || overrides === false) return undefined
  if (overrides === true) return DEFAULT_STALE_MS
  const { maxAge = DEFAULT_STALE_MS } = checkOptionNames(overrides, OVERRIDES_OPTIONS, "{ maxAge: '1s' }", 'overrides')
  return checkedMs('overrides.maxAge', maxAge, 10, 3_600_000)
}

/**
 * How far ahead tokens are leased, by the option `lease` of a limiter or of a primary.
 *
 * @throws {PolicyError} `DURATION_INVALID`
 */
export function checkedHorizonMs(lease: Duration = DEFAULT_HORIZON_MS): number {
  return checkedMs('lease', lease, 1, 10_000)
}

/**
 * How long a call to a store may take.
 *
 * @throws {PolicyError} `DURATION_INVALID`
 */
export function checkedTimeoutMs(timeout: Duration = DEFAULT_TIMEOUT_MS): number {
  return checkedMs('timeout', timeout, 1, 60_000)
}

/**
 * How far ahead a policy is leased, in milliseconds; 0 for not at all.
 *
 * @throws {PolicyError} `LEASE_UNSUPPORTED` for `leased` and permits, `OPTION_INVALID`.
 */
export function leasedHorizonMs(policy: Policy, { mode, lease }: Pick<SharedOptions, 'mode' | 'lease'>): number {
  checkOneOf('mode', mode, ['leased', 'exact'])
  const horizonMs = checkedHorizonMs(lease)
  const reason = whyNotLeased(policy, horizonMs)
  if (mode === 'leased' && reason !== undefined && policy.algorithm === 'concurrency') {
    throw new PolicyError('LEASE_UNSUPPORTED', 'mode', mode, `${reason}: use 'exact', or leave it out`)
  }
  return mode === 'exact' ? 0 : horizonMs
}
