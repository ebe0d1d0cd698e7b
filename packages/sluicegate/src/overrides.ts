import type { Answered, When } from './awaitable.js'
import type { Policy } from './policy/policy.js'

/**
 * Policies of single keys, kept where the state of the limiter is: in this process, `Overrides<'now'>`, or in its store, `Overrides<'later'>`,
 * where each verb rejects with `StoreError` `OUTAGE` while the store is not reached. An override comes before `policyFor` and before the
 * limiter's own policy. At most 10,000 keys have one, of at most 1,000 different policies.
 */
export interface Overrides<Time extends When = When> {
  /**
   * Gives a key its own policy, instead of the one that it has.
   *
   * @throws {PolicyError} `KEY_INVALID`, `POLICY_INVALID`, also where the policy answers with permits and the limiter's own does not;
   * `OPTION_INVALID` where there are too many.
   */
  set(key: string, policy: Policy): Answered<Time, void>
  /** The override of a key, as it is kept now. */
  get(key: string): Answered<Time, Policy | undefined>
  /** Takes the override away; whether there was one. */
  delete(key: string): Answered<Time, boolean>
  /** All of them, by key. */
  list(): Answered<Time, ReadonlyMap<string, Policy>>
}

/** What is made with the option `overrides`. */
export interface WithOverrides<Time extends When = 'now'> {
  readonly overrides: Overrides<Time>
}
