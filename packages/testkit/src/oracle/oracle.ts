import type { PolicySpec } from './policy-spec.js'

/** Who is asked about; with all-of also one key for each part. */
export type OracleKey = string | readonly string[]

/** A decision as the oracle predicts it: the fields that do not depend on where it was made. */
export interface OracleDecision {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
  /** Of all-of. */
  readonly parts?: readonly OracleDecision[]
}

/** What `reserve` answers, and what `cancel` needs again. */
export interface OracleBooking {
  readonly key: OracleKey
  readonly allowed: boolean
  /** From the booking until it may be spent, rounded up; `Infinity` when it never can. */
  readonly waitMs: number
  /** When it may be spent. */
  readonly atUs: bigint
  /** Allowed: the key right after, as `peek` would answer for 1; else of a denied take. */
  readonly decision: OracleDecision
  /** What an algorithm notes beside it; of all-of one booking each part. */
  readonly note?: bigint
  readonly bookedUs?: bigint
  readonly cost?: bigint
  /** How often the numbers of the policy had changed. */
  readonly generation?: number
  readonly parts?: readonly OracleBooking[]
}

/**
 * What a limiter must answer, in whole numbers of any size, written from the contract and never from the core. Readings of the
 * clock are milliseconds, taken to the nearest microsecond.
 */
export interface Oracle {
  take(key: OracleKey, cost: number, nowMs: number): OracleDecision
  peek(key: OracleKey, cost: number, nowMs: number): OracleDecision
  /** This and the next three answer as `peek` would for 1. */
  refund(key: OracleKey, tokens: number, nowMs: number): OracleDecision
  penalize(key: OracleKey, tokens: number, nowMs: number): OracleDecision
  block(key: OracleKey, durationMs: number, nowMs: number): OracleDecision
  reset(key: OracleKey, nowMs: number): OracleDecision
  /** Books at the earliest time at which the cost conforms. */
  reserve(key: OracleKey, cost: number, nowMs: number): OracleBooking
  /** Gives `tokens` of a booking back, as much as is safe. */
  cancel(booking: OracleBooking, tokens: number, nowMs: number): OracleDecision
  update(spec: PolicySpec, nowMs: number): void
  /** The same, to go on from here in another way. */
  copy(): Oracle
  /** Two oracles with the same answer here answer alike about the key for ever. */
  stateTextOf(key: OracleKey): string
  /** What is left of a key whose tokens a full table forgot: its block. */
  forget(key: OracleKey): void
}

/** Makes answers as tests of oracles write them; of a policy with another limit only where the last argument says so. */
export function answersOf(usual: number) {
  return (allowed: boolean, remaining: number, retryAfterMs: number, resetAfterMs: number, limit = usual): OracleDecision => ({
    allowed,
    limit,
    remaining,
    retryAfterMs,
    resetAfterMs,
  })
}
