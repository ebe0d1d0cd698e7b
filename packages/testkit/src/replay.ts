import type { Answer } from './answer.js'
import { LimiterReplay, type Replayed } from './limiter-replay.js'
import type { Oracle } from './oracle/oracle.js'
import type { PolicySpec } from './oracle/policy-spec.js'
import { OracleReplay } from './oracle-replay.js'
import type { Sequence, Step } from './sequences/sequence.js'

/** The first step whose answer differs, and how. */
export interface Mismatch {
  readonly step: number
  readonly verb: Step['verb']
  /** For example `remaining`, or `parts.1.remaining`. */
  readonly field: string
  readonly expected: unknown
  readonly actual: unknown
}

const FIELDS = ['allowed', 'limit', 'remaining', 'retryAfterMs', 'resetAfterMs'] as const
/** So far ahead every limiter books in memory. */
const AHEAD_MS = 300_000
const AHEAD_WINDOWS = 0.5
const DAY_MS = 86_400_000
/** At least. */
const DAYS = { day: 1, week: 7, month: 28, year: 365 } as const

/** The oracle's answer to each step. */
export function oracleAnswers({ policy, steps }: Sequence, oracle?: (spec: PolicySpec) => Oracle): (Answer | undefined)[] {
  const replay = new OracleReplay(policy, oracle)
  return steps.map((step) => replay.answer(step))
}

/** A real limiter's answer to each step. */
export function limiterAnswers(steps: readonly Step[], replayed: Replayed): (Answer | undefined)[] {
  const replay = new LimiterReplay(replayed)
  return steps.map((step) => replay.answer(step))
}

/**
 * Compares every field of every answer of a limiter with the oracle's. A store may refuse to book too far ahead, as long as it says
 * the right wait: from there on the two have gone different ways.
 */
export function firstMismatch(sequence: Sequence, replayed: Replayed): Mismatch | undefined {
  return mismatchIn(sequence, oracleAnswers(sequence), limiterAnswers(sequence.steps, replayed))
}

/**
 * The same of answers that are there already, an answer or undefined for each step.
 *
 * @param mostAheadMs so far ahead the limiter books at least.
 */
export function mismatchIn(
  sequence: Sequence,
  expected: readonly (Answer | undefined)[],
  actual: readonly (Answer | undefined)[],
  mostAheadMs: (policy: PolicySpec) => number = aheadInMemoryMs,
): Mismatch | undefined {
  let { policy } = sequence
  for (const [step, call] of sequence.steps.entries()) {
    const { verb } = call
    if (verb === 'update') policy = call.policy
    const wanted = expected[step]
    if (verb === 'reserve' && wanted !== undefined && isTooFarAhead(mostAheadMs(policy), wanted, actual[step])) return undefined
    const different = wanted && firstDifference(wanted, actual[step] ?? {}, '')
    if (different !== undefined) return { step, verb, ...different }
  }
  return undefined
}

function aheadInMemoryMs(policy: PolicySpec): number {
  return Math.max(AHEAD_MS, AHEAD_WINDOWS * lengthMs(policy))
}

function isTooFarAhead(aheadMs: number, wanted: Answer, got: Answer = {}): boolean {
  const waitMs = wanted.retryAfterMs ?? 0
  return wanted.allowed === true && got.allowed === false && got.retryAfterMs === waitMs && waitMs > aheadMs
}

/** Of a window; of several policies nothing is booked ahead. */
function lengthMs(policy: PolicySpec): number {
  if (policy.algorithm === 'all-of') return 0
  const { unit } = (policy.algorithm === 'fixed-window' && policy.calendar) || {}
  return unit === undefined ? policy.windowMs : DAYS[unit] * DAY_MS
}

function firstDifference(wanted: Answer, got: Answer, within: string): Pick<Mismatch, 'field' | 'expected' | 'actual'> | undefined {
  for (const field of FIELDS) {
    if (field in wanted && !Object.is(wanted[field], got[field])) {
      return { field: within + field, expected: wanted[field], actual: got[field] }
    }
  }
  for (const [i, part] of (wanted.parts ?? []).entries()) {
    const different = firstDifference(part, got.parts?.[i] ?? {}, `${within}parts.${i}.`)
    if (different !== undefined) return different
  }
  return undefined
}
