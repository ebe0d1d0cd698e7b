import type { Awaitable } from './awaitable.js'
import type { Policy } from './policy/policy.js'

/**
 * Policies of single keys, kept where the state of the limiter is: in this process, in Redis, or in the primary of a cluster. An override comes
 * before `policyFor` and before the limiter's own policy. At most 10,000 keys have one, of at most 1,000 different policies.
 */
export interface Overrides {
  /**
   * Gives a key its own policy, instead of the one that it has.
   *
   * @throws {PolicyError} `KEY_INVALID`, `POLICY_INVALID`, also where the policy answers with permits and the limiter's own does not;
   * `OPTION_INVALID` where there are too many.
   */
  set(key: string, policy: Policy): Awaitable<void>
  /** The override of a key, as it is kept now. */
  get(key: string): Awaitable<Policy | undefined>
  /** Takes the override away; whether there was one. */
  delete(key: string): Awaitable<boolean>
  /** All of them, by key. */
  list(): Awaitable<ReadonlyMap<string, Policy>>
}

/** {@link Overrides} in this process, which answer at once. */
export interface LocalOverrides extends Overrides {
  set(key: string, policy: Policy): void
  get(key: string): Policy | undefined
  delete(key: string): boolean
  list(): ReadonlyMap<string, Policy>
}

/** What is made with the option `overrides` and keeps them itself. */
export interface WithOverrides {
  readonly overrides: LocalOverrides
}

/** {@link Overrides} that are kept elsewhere. Each verb rejects with `StoreError` `OUTAGE` where that is not reached. */
export interface FleetOverrides extends Overrides {
  set(key: string, policy: Policy): Promise<void>
  get(key: string): Promise<Policy | undefined>
  delete(key: string): Promise<boolean>
  list(): Promise<ReadonlyMap<string, Policy>>
}

/** A limiter of a fleet with overrides. */
export interface WithFleetOverrides {
  readonly overrides: FleetOverrides
}
