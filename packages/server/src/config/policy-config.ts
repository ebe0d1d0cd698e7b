import type { Policy } from 'sluicegate'

/** One named policy and the table that holds its keys. */
export interface PolicyConfig {
  readonly policy: Policy
  /** Undefined: the library's default for the policy. */
  readonly maxKeys: number | undefined
  /** Undefined: `maxKeys`, or the library's default. */
  readonly growTo?: number | undefined
  readonly onFull: OnFull
}

/** What happens when a new key finds no room: see `onFull` of the library's `createLimiter`. */
export type OnFull = 'evict' | 'deny'
export const ON_FULL: readonly OnFull[] = ['evict', 'deny']
