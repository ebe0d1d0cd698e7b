import { PolicyError } from '../errors.js'
import { checkNumber } from '../options/option-checks.js'
import type { Policy } from '../policy/policy.js'
import type { Backend } from '../shared/backend.js'
import type { CallPlaces } from '../shared/calls/call-guard.js'

/** Where the budgets of all regions are: any backend. */
export interface Home {
  /** The backend of a policy there, without timeouts, whose leases last as long as `lengthOf` says. */
  connect(policy: Policy, lengthOf: (policy: Policy) => number): Backend
  readonly places: CallPlaces
  /** Whether any process may return tokens that another one leased; else only the one that did. */
  readonly sharesGrants: boolean
  /** How many regions called of late, this one included; absent where the store does not count. */
  countRegions?(policies: readonly string[], region: string): Promise<number>
}

/** Options of a region, whatever its home. */
export interface RegionOptions {
  /** The name of this region: 1 to 40 letters, digits, `.`, `_` or `-`. All its processes give the same one, each region its own. */
  readonly region: string
  /**
   * The part of the budget that this region decides by itself while the home does not answer, 0 to 1. It is charged there afterwards.
   * Default: 1 divided by the number of regions that the home has seen, at most 0.1 while that is unknown. 0 denies.
   */
  readonly share?: number
  /**
   * What decides policies too small to hold tokens of, such as 100 a second: the `home`, with a call for each take (default), or `share`: the
   * region's share of the policy, in its own store, without calls. That needs `share`, and all regions' shares together are at most 1.
   */
  readonly tooSmall?: 'home' | 'share'
  /** What decides a key of which the region holds nothing: `home`, which is one call to it (default), or `share`, at once. */
  readonly cold?: 'home' | 'share'
  /** How long a call to the home may take, 1 to 60,000 ms, default 1,000. */
  readonly timeoutMs?: number
}

export const REGION_OPTIONS = ['region', 'share', 'tooSmall', 'cold', 'timeoutMs'] as const satisfies readonly (keyof RegionOptions)[]

export const DEFAULT_HOME_TIMEOUT_MS = 1000
const MAX_TIMEOUT_MS = 60_000
const NAME = /^[\w.-]{1,40}$/

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkRegion({ region, share, tooSmall, cold, timeoutMs }: RegionOptions): void {
  if (typeof region !== 'string' || !NAME.test(region)) {
    throw new PolicyError(
      'OPTION_INVALID',
      'home.region',
      region,
      "must be a name such as 'eu-west': 1 to 40 letters, digits, '.', '_' or '-'",
    )
  }
  if (share !== undefined) checkNumber('home.share', share, 0, 1)
  if (timeoutMs !== undefined) checkNumber('home.timeoutMs', timeoutMs, 1, MAX_TIMEOUT_MS)
  checkHomeOrShare('home.cold', cold)
  checkHomeOrShare('home.tooSmall', tooSmall)
  if (tooSmall === 'share' && !share) {
    throw new PolicyError(
      'OPTION_INVALID',
      'home.share',
      share,
      "must be given with tooSmall: 'share'; those of all regions are at most 1 together",
    )
  }
}

function checkHomeOrShare(option: string, value: unknown): void {
  if (value === undefined || value === 'home' || value === 'share') return
  throw new PolicyError('OPTION_INVALID', option, value, "must be 'home' or 'share'")
}
