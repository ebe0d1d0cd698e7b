import type { Decision, Limiter, Permit, Reservation } from 'sluicegate'
import { ConcurrencyOracle, type OraclePermit } from './oracle/concurrency-oracle.js'
import type { Oracle, OracleBooking, OracleDecision, OracleKey, PolicySpec } from './oracle/oracle.js'
import { oracleFor } from './oracle/versioned-oracle.js'
import type { PlainStep, Sequence, Step } from './sequences/draws.js'

/** How a replay gets at a library: policies and limiters made from plain numbers, on a clock that it sets. */
export interface Replayed {
  /** Sets the clock that the limiter reads. */
  set(ms: number): void
  /** The limiter's ends, the one that made it first. */
  readonly ends: readonly Limiter[]
  update(end: Limiter, spec: PolicySpec): void
}

interface PlainVerbs<T> {
  peek(key: OracleKey, cost: number): T
  refund(key: OracleKey, tokens: number): T
  penalize(key: OracleKey, tokens: number): T
  block(key: OracleKey, durationMs: number): T
  reset(key: OracleKey): T
}

export function plainAnswer<T>(limiter: PlainVerbs<T>, step: PlainStep): T {
  const { key } = step
  switch (step.verb) {
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
  }
}

/** Plays the steps of a sequence on a real limiter. */
class LimiterReplay {
  readonly #replayed: Replayed
  readonly #bookings: Reservation[] = []
  readonly #permits: Decision[] = []
  readonly #settled = new Set<Reservation>()

  constructor(replayed: Replayed) {
    this.#replayed = replayed
  }

  /** Undefined where there is none to compare. */
  answer(step: Step): Answer | undefined {
    const { key } = step
    this.#replayed.set(step.atMs)
    const limiter = this.#replayed.ends[step.end]
    if (limiter === undefined) throw new RangeError(`no end ${step.end}`)
    switch (step.verb) {
      case 'take': {
        const decision = limiter.take(key, step.cost)
        this.#permits.push(decision)
        return decision
      }
      case 'update':
        this.#replayed.update(limiter, step.policy)
        return undefined
      case 'reserve': {
        const booking = limiter.reserve(key, step.cost)
        this.#bookings.push(booking)
        return bookingAnswer(booking)
      }
      case 'settle':
        return this.#settle(step.booking, (booking) => booking.settle(step.actual))
      case 'cancel':
        return this.#settle(step.booking, (booking) => booking.cancel())
      case 'release':
      case 'heartbeat':
        return this.#permitVerb(step.verb, step.permit)
      default:
        return plainAnswer(limiter, step)
    }
  }

  #settle(number: number, settle: (booking: Reservation) => Decision): Decision | undefined {
    const booking = numbered(this.#bookings, number)
    if (booking === undefined) return undefined
    const answer = settle(booking)
    if (!booking.allowed || this.#settled.has(booking)) return undefined
    this.#settled.add(booking)
    return answer
  }

  #permitVerb(verb: 'release' | 'heartbeat', number: number): Answer | undefined {
    const permit = numbered(this.#permits, number) as Permit | undefined
    return permit === undefined || !('release' in permit) ? undefined : { allowed: permit[verb]() }
  }
}

interface Booked {
  readonly booking: OracleBooking
  readonly cost: number
  readonly at: Step
  readonly order: number
}

interface Given {
  readonly key: OracleKey
  readonly permit: OraclePermit
}

/** Plays the steps of a sequence on its oracle. */
class OracleReplay {
  readonly #oracle: Oracle
  readonly #bookings: Booked[] = []
  readonly #permits: Given[] = []
  readonly #settled = new Set<Booked>()
  /** When each end has reset each key: of what it reserved before, nothing comes back. */
  readonly #resets = new Map<string, { readonly us: number; readonly order: number }>()
  /** The clock stood still, or was set back: what was reserved before a reset is that by the clock or by the order, and there is no one answer any more. */
  #isUnsure = false
  #order = 0
  /** A reservation that was over once stays over, wherever the clock goes. */
  readonly #over = new Set<Given>()

  /** @param oracle makes that of a policy; default that of the contract. */
  constructor(policy: PolicySpec, oracle: (spec: PolicySpec) => Oracle = oracleFor) {
    this.#oracle = oracle(policy)
  }

  /** Undefined where there is none to compare. */
  answer(step: Step): Answer | undefined {
    if (this.#isUnsure) return undefined
    const { key, atMs } = step
    const oracle = this.#oracle
    switch (step.verb) {
      case 'take': {
        const permit = oracle.take(key, step.cost, atMs)
        this.#permits.push({ key, permit })
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
        this.#resets.set(endAndKey(step), { us: Math.floor(atMs * 1000), order: this.#order++ })
        return oracle.reset(key, atMs)
      case 'update':
        oracle.update(step.policy, atMs)
        return undefined
      case 'reserve': {
        const booking = oracle.reserve(key, step.cost, atMs)
        this.#bookings.push({ booking, cost: step.cost, at: step, order: this.#order++ })
        return bookingAnswer(booking)
      }
      case 'settle':
        return this.#settle(step.booking, step.actual, atMs)
      case 'cancel':
        return this.#settle(step.booking, 0, atMs)
      case 'release':
      case 'heartbeat':
        return this.#permitVerb(step.verb, step.permit, atMs)
    }
  }

  /** Below the estimate the rest comes back, above it the difference is a debt. Once. */
  #settle(number: number, actual: number, atMs: number): OracleDecision | undefined {
    const booked = numbered(this.#bookings, number)
    if (booked === undefined || !booked.booking.allowed || this.#settled.has(booked)) return undefined
    this.#settled.add(booked)
    const { booking, cost, at, order } = booked
    const reset = this.#resets.get(endAndKey(at))
    const isForgiven = reset !== undefined && reset.order > order
    this.#isUnsure ||= reset !== undefined && reset.us > Math.floor(at.atMs * 1000) !== isForgiven
    if (this.#isUnsure) return undefined
    if (actual < cost && !isForgiven) return this.#oracle.cancel(booking, cost - actual, atMs)
    return actual > cost ? this.#oracle.penalize(booking.key, actual - cost, atMs) : this.#oracle.peek(booking.key, 1, atMs)
  }

  #permitVerb(verb: 'release' | 'heartbeat', number: number, atMs: number): Answer | undefined {
    const given = numbered(this.#permits, number)
    if (!(this.#oracle instanceof ConcurrencyOracle) || given === undefined) return undefined
    const { permit } = given.permit
    const allowed = permit !== undefined && !this.#over.has(given) && this.#oracle[verb](given.key, permit, atMs)
    if (!allowed || verb === 'release') this.#over.add(given)
    return { allowed }
  }
}

function endAndKey({ end, key }: Step): string {
  return JSON.stringify([end, key])
}

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

/** What a step of a sequence answers, as far as it can be compared; of a booking its wait as `retryAfterMs`, of a permit's verbs `allowed` alone. */
export type Answer = Partial<OracleDecision>

export function bookingAnswer({
  allowed,
  waitMs,
  decision,
}: {
  readonly allowed: boolean
  readonly waitMs: number
  readonly decision: OracleDecision
}): Answer {
  const { limit, remaining, resetAfterMs } = decision
  return { allowed, limit, remaining, retryAfterMs: waitMs, resetAfterMs }
}

/** The thing that a step means by its number, counted round; undefined while there is none. */
export function numbered<Thing>(things: readonly Thing[], number: number): Thing | undefined {
  return things.length === 0 ? undefined : things[number % things.length]
}
