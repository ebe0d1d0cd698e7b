import type { Policy } from 'sluicegate'
import type { Priorities } from './priorities.js'
import type { SoftLimits } from './soft.js'
import type { OnFull } from './table-size.js'
import type { Tiers } from './tiers/tiers.js'

/** One named policy and the table that holds its keys. */
export interface PolicyConfig {
  readonly policy: Policy
  /** Undefined: the library's default for the policy. */
  readonly maxKeys: number | undefined
  readonly onFull: OnFull
  /** Other limits for some keys; undefined: all keys have the policy's own. */
  readonly tiers?: Tiers | undefined
  /** Undefined: all requests are equal. */
  readonly priorities?: Priorities | undefined
  /** The highest cost that settles a reservation, in multiples of what was reserved. Undefined: {@link DEFAULT_MAX_SETTLE}. */
  readonly maxSettle?: number | undefined
  /** Shares of the limit that are announced; undefined: none. */
  readonly soft?: SoftLimits | undefined
}
