import type { Decision, Limiter, Permit, Reservation } from 'sluicegate'
import { ConcurrencyOracle, type OraclePermit } from './oracle/concurrency-oracle.js'
import type { Oracle, OracleBooking, OracleDecision, OracleKey } from './oracle/oracle.js'
import { oracleFor } from './oracle/oracle-for.js'
import type { PolicySpec } from './oracle/policy-spec.js'
import type { Sequence, Step } from './sequences/sequence.js'

/** How a replay gets at a library: policies and limiters made from plain numbers, on a clock that it sets. */
export interface Replayed {
  /** Sets the clock that the limiter reads. */
  set(ms: number): void
  /** The limiter's ends, the one that made it first. */
  readonly ends: readonly Limiter[]
  update(end: Limiter, spec: PolicySpec): void
}

/** What a step answers, as far as it can be compared; of a booking its wait as `retryAfterMs`, of a permit's verbs `allowed` alone. */
export type Answer = Partial<OracleDecision>

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

/** Runs a sequence on the oracle: the answer to each step, undefined where there is none to compare. */
export function oracleAnswers({ policy, steps }: Sequence): (Answer | undefined)[] {
  const oracle = oracleFor(policy)
  const bookings: (readonly [OracleBooking, cost: number])[] = []
  const permits: (readonly [OracleKey, OraclePermit])[] = []
  const settled = new Set<OracleBooking>()
  const over = new Set<OraclePermit>()
  return steps.map((step) => {
    const { key, atMs } = step
    switch (step.verb) {
      case 'take': {
        const permit = oracle.take(key, step.cost, atMs)
        permits.push([key, permit])
        return permit
      }
      case 'peek':
        return oracle.peek(key, step.cost, atMs)
      case 'refund':
        return oracle.refund(key, step.tokens, atMs)
      case 'penalize':
        return oracle.penalize(key, step.tokens, atMs)
      case 'block':
        return oracle.block(key, step.durationMs, atMs)
      case 'reset':
        return oracle.reset(key, atMs)
      case 'update':
        oracle.update(step.policy, atMs)
        return undefined
      case 'reserve': {
        const booking = oracle.reserve(key, step.cost, atMs)
        bookings.push([booking, step.cost])
        return answerOf(booking)
      }
      case 'settle':
      case 'cancel': {
        const [booking, cost] = numbered(bookings, step.booking) ?? []
        if (booking === undefined || cost === undefined || !booking.allowed || settled.has(booking)) return undefined
        settled.add(booking)
        return settledOn(oracle, booking, cost, step.verb === 'cancel' ? 0 : step.actual, atMs)
      }
      case 'release':
      case 'heartbeat': {
        const [owner, given] = numbered(permits, step.permit) ?? []
        if (!(oracle instanceof ConcurrencyOracle) || owner === undefined || given === undefined) return undefined
        // Who was told once that it is over is told so for ever, wherever the clock goes.
        const allowed = given.permit !== undefined && !over.has(given) && oracle[step.verb](owner, given.permit, atMs)
        if (!allowed || step.verb === 'release') over.add(given)
        return { allowed }
      }
    }
  })
}

/** Below the estimate the rest comes back, above it the difference is a debt. */
function settledOn(oracle: Oracle, booking: OracleBooking, cost: number, actual: number, atMs: number): OracleDecision {
  if (actual < cost) return oracle.cancel(booking, cost - actual, atMs)
  return actual > cost ? oracle.penalize(booking.key, actual - cost, atMs) : oracle.peek(booking.key, 1, atMs)
}

/** Runs the same steps on a real limiter. */
export function limiterAnswers(steps: readonly Step[], replayed: Replayed): (Answer | undefined)[] {
  const bookings: Reservation[] = []
  const permits: Decision[] = []
  const settled = new Set<Reservation>()
  return steps.map((step) => {
    replayed.set(step.atMs)
    const limiter = replayed.ends[step.end]
    if (limiter === undefined) throw new RangeError(`no end ${step.end}`)
    const { key } = step
    switch (step.verb) {
      case 'take': {
        const decision = limiter.take(key, step.cost)
        permits.push(decision)
        return decision
      }
      case 'peek':
        return limiter.peek(key, step.cost)
      case 'refund':
        return limiter.refund(key, step.tokens)
      case 'penalize':
        return limiter.penalize(key, step.tokens)
      case 'block':
        return limiter.block(key, step.durationMs)
      case 'reset':
        return limiter.reset(key)
      case 'update':
        replayed.update(limiter, step.policy)
        return undefined
      case 'reserve': {
        const booking = limiter.reserve(key, step.cost)
        bookings.push(booking)
        return answerOf(booking)
      }
      case 'settle':
      case 'cancel': {
        const booking = numbered(bookings, step.booking)
        const answer = step.verb === 'cancel' ? booking?.cancel() : booking?.settle(step.actual)
        if (booking === undefined || !booking.allowed || settled.has(booking)) return undefined
        settled.add(booking)
        return answer
      }
      case 'release':
      case 'heartbeat': {
        const permit = numbered(permits, step.permit) as Permit | undefined
        return permit === undefined || !('release' in permit) ? undefined : { allowed: permit[step.verb]() }
      }
    }
  })
}

/** So far ahead every store books. */
const AHEAD_MS = 300_000
const AHEAD_WINDOWS = 0.7

/**
 * Compares every field of every answer of a limiter with the oracle's. A store may refuse to book too far ahead, as long as it says
 * the right wait: from there on the two have gone different ways.
 */
export function firstMismatch(sequence: Sequence, replayed: Replayed): Mismatch | undefined {
  const expected = oracleAnswers(sequence)
  const actual = limiterAnswers(sequence.steps, replayed)
  let { policy } = sequence
  for (const [step, call] of sequence.steps.entries()) {
    const { verb } = call
    if (verb === 'update') policy = call.policy
    const wanted = expected[step]
    if (verb === 'reserve' && wanted !== undefined && isTooFarAhead(policy, wanted, actual[step])) return undefined
    const different = wanted && firstDifference(wanted, actual[step] ?? {}, '')
    if (different !== undefined) return { step, verb, ...different }
  }
  return undefined
}

function isTooFarAhead(policy: PolicySpec, wanted: Answer, got: Answer = {}): boolean {
  const waitMs = wanted.retryAfterMs ?? 0
  const aheadMs = 'windowMs' in policy ? Math.max(AHEAD_MS, AHEAD_WINDOWS * policy.windowMs) : AHEAD_MS
  return wanted.allowed === true && got.allowed === false && got.retryAfterMs === waitMs && waitMs > aheadMs
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

function answerOf({ allowed, waitMs, decision }: OracleBooking | Reservation): Answer {
  const { limit, remaining, resetAfterMs } = decision
  return { allowed, limit, remaining, retryAfterMs: waitMs, resetAfterMs }
}

/** Counted round. */
function numbered<Thing>(things: readonly Thing[], number: number): Thing | undefined {
  return things.length === 0 ? undefined : things[number % things.length]
}
