import { type Answer, bookingAnswer, numbered } from './answer.js'
import { ConcurrencyOracle, type OraclePermit } from './oracle/concurrency-oracle.js'
import type { Oracle, OracleBooking, OracleDecision, OracleKey } from './oracle/oracle.js'
import { oracleFor } from './oracle/oracle-for.js'
import type { PolicySpec } from './oracle/policy-spec.js'
import type { Step } from './sequences/sequence.js'

interface Booked {
  readonly booking: OracleBooking
  readonly cost: number
}

interface Given {
  readonly key: OracleKey
  readonly permit: OraclePermit
}

/** Plays the steps of a sequence on its oracle. */
export class OracleReplay {
  readonly #oracle: Oracle
  readonly #bookings: Booked[] = []
  readonly #permits: Given[] = []
  readonly #settled = new Set<Booked>()
  /** A reservation that was over once stays over, wherever the clock goes. */
  readonly #over = new Set<Given>()

  /** @param oracle makes that of a policy; default that of the contract. */
  constructor(policy: PolicySpec, oracle: (spec: PolicySpec) => Oracle = oracleFor) {
    this.#oracle = oracle(policy)
  }

  /** Undefined where there is none to compare. */
  answer(step: Step): Answer | undefined {
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
        return oracle.reset(key, atMs)
      case 'update':
        oracle.update(step.policy, atMs)
        return undefined
      case 'reserve': {
        const booking = oracle.reserve(key, step.cost, atMs)
        this.#bookings.push({ booking, cost: step.cost })
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
    const { booking, cost } = booked
    if (actual < cost) return this.#oracle.cancel(booking, cost - actual, atMs)
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
