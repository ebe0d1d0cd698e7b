import { PolicyError } from '../errors.js'
import { checkNumber, checkOneOf, checkOptions } from '../options/option-checks.js'
import type { SharedOptions } from '../shared/shared-options.js'
import type { Store } from '../shared/store.js'
import { checkedMs } from '../time/duration.js'

/** One region of budgets that several regions share. */
export interface RegionOptions extends Pick<SharedOptions, 'timeout' | 'share'> {
  /**
   * 1 to 40 letters, digits, `.`, `_` or `-`. All processes of the region give the same one, each region its own.
   *
   * @defaultValue required
   * @example region({ name: 'eu-west', local: redis(a), home: redis(b) })
   */
  readonly name: string
  /**
   * The store of this region: Redis, PostgreSQL or one that compares and swaps. It holds tokens that the home charged ahead, so a take waits for
   * the home only where it has none.
   *
   * @defaultValue required
   * @example region({ name: 'eu-west', local: redis(a), home: redis(b) })
   */
  readonly local: Store
  /**
   * The store that holds the budgets, the same for all regions. Where it does not count regions, as PostgreSQL and stores that compare and swap
   * do not, give each region its `share`.
   *
   * @defaultValue required
   * @example region({ name: 'eu-west', local: redis(a), home: postgres(pool), share: 0.5 })
   */
  readonly home: Store
  /**
   * What decides policies too small to hold tokens of, such as 100 a second: the `home`, with a call for each take, or `share`: the region's
   * share of the policy, in its own store, without calls. That needs `share`, and all regions' shares together are at most 1.
   *
   * @defaultValue `'home'`
   * @example region({ name, local, home, share: 0.5, tooSmall: 'share' })
   */
  readonly tooSmall?: 'home' | 'share'
  /**
   * What decides a key of which the region holds nothing: `home`, which is one call to it, or `share`, at once.
   *
   * @defaultValue `'home'`
   * @example region({ name, local, home, cold: 'share' })
   */
  readonly cold?: 'home' | 'share'
}

const OPTIONS: readonly string[] = ['name', 'local', 'home', 'share', 'tooSmall', 'cold', 'timeout'] satisfies (keyof RegionOptions)[]
const DEFAULT_TIMEOUT_MS = 1000
const MAX_TIMEOUT_MS = 60_000
const NAME = /^[\w.-]{1,40}$/

/** {@link RegionOptions}, checked. */
export interface RegionSettings extends Omit<RegionOptions, 'timeout'> {
  readonly timeoutMs: number
}

/** @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`, `DURATION_INVALID` */
export function checkedRegion(given: RegionOptions): RegionSettings {
  const options = checkOptions(given, OPTIONS, "{ name: 'eu-west', local: redis(a), home: redis(b) }", 'region()')
  const { timeout = DEFAULT_TIMEOUT_MS, ...own } = options
  const { name, share, tooSmall, cold } = own
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new PolicyError('OPTION_INVALID', 'name', name, "must be a name such as 'eu-west': 1 to 40 letters, digits, '.', '_' or '-'")
  }
  if (share !== undefined) checkNumber('share', share, 0, 1)
  const timeoutMs = checkedMs('timeout', timeout, 1, MAX_TIMEOUT_MS)
  checkOneOf('cold', cold, ['home', 'share'])
  checkOneOf('tooSmall', tooSmall, ['home', 'share'])
  if (tooSmall === 'share' && !share) {
    throw new PolicyError(
      'OPTION_INVALID',
      'share',
      share,
      "must be given with tooSmall: 'share'; those of all regions are at most 1 together",
    )
  }
  return { ...own, timeoutMs }
}
