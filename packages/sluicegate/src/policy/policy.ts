import type { Calendar } from './calendar.js'

/** How a policy counts. */
export type Algorithm = 'token-bucket' | 'gcra' | 'fixed-window' | 'sliding-window' | 'sliding-log' | 'concurrency' | 'all-of'

/**
 * Exists only for the compiler: marks what {@link tokenBucket} and its siblings made. A copy by `{ ...policy }` lacks the accessor, so a policy
 * with other options beside its fields is no `Policy`.
 */
declare class MadePolicy {
  get [Symbol.toStringTag](): 'Policy'
}

/** Exists only for the compiler: it is copied, so a copy of a policy is no options object. */
declare const copied: unique symbol

/** What options have that are no copy of a policy. */
export interface NoPolicy {
  readonly [copied]?: never
}

/** Frozen data: knows no key, clock or store. Made by {@link tokenBucket} and its siblings, one function an algorithm; nothing else is one. */
export interface Policy extends MadePolicy {
  readonly [copied]?: true
  readonly algorithm: Algorithm
  /** Printable ASCII, at most 120 characters; default `<algorithm>-<limit>-<window>`. */
  readonly name: string
  /** Tokens a window, an integer from 1 that a double holds exactly. Of `concurrency` how many may be in flight; of `allOf` the least of its parts. */
  readonly limit: number
  /** The window in milliseconds, a whole number of microseconds from 1 ms to 366 days. Of `concurrency` the time to live of a permit. */
  readonly windowMs: number
  /** Tokens that may be spent at once, such an integer too; the limit itself where an algorithm knows no other burst. */
  readonly burst: number
  /** Fixed window: windows of the calendar instead of `windowMs`, which is then the length of the longest one. */
  readonly calendar?: Calendar
  /** Of `allOf`: the policies that all have to agree. */
  readonly policies?: readonly Policy[]
}

/** The numbers and names that a policy is. */
export type PolicyFields = Omit<Policy, typeof Symbol.toStringTag>

const OPTIONAL_FIELDS: readonly string[] = ['calendar', 'policies'] satisfies (keyof Policy)[]

/** The same numbers, as a policy. Fields that it lacks are its own, too, and not those of a polluted `Object.prototype`. */
export function frozenPolicy<Made extends Policy = Policy>(fields: Omit<Made, typeof Symbol.toStringTag>): Made {
  for (const name of OPTIONAL_FIELDS) if (!Object.hasOwn(fields, name)) Object.defineProperty(fields, name, { value: undefined })
  return Object.freeze(fields) as unknown as Made
}

/** The same policy with other numbers, or another name. */
export function changedPolicy(policy: Policy, change: Partial<PolicyFields>): Policy {
  return frozenPolicy({ ...policy, ...change })
}

/** Those that a policy is made of: of `allOf` each of its policies, else the one. */
export function policiesOf(policy: Policy): readonly Policy[] {
  return policy.policies ?? [policy]
}

/** Whether spent tokens flow back one by one; else they count until a window, a log or a holder lets them go. */
export function isRate({ algorithm }: Pick<Policy, 'algorithm'>): boolean {
  return algorithm === 'token-bucket' || algorithm === 'gcra'
}

/** A policy whose takes answer with permits, see {@link concurrency}. */
export interface ConcurrencyPolicy extends Policy {
  readonly algorithm: 'concurrency'
}

/** Several policies as one, see {@link allOf}. */
export interface AllOfPolicy<Parts extends readonly Policy[] = readonly Policy[]> extends Policy {
  readonly algorithm: 'all-of'
  readonly policies: Parts
}
