import assert from 'node:assert/strict'
import type { Decision, Key, Limiter, ManualClock, Policy, Reservation } from 'sluicegate'
import { specOf } from '../kit.js'
import type { Oracle, OracleBooking, OracleDecision } from '../oracle/oracle.js'
import { oracleFor } from '../oracle/oracle-for.js'
import type { PolicySpec } from '../oracle/policy-spec.js'

/** A reservation, and when it may be spent, which the library does not tell to the microsecond. */
export interface CheckedReservation {
  readonly reservation: Reservation
  readonly atUs: number
}

/** A limiter and its oracle side by side: every answer is compared, field by field, and handed on. */
export class CheckedLimiter {
  readonly #limiter: Limiter
  readonly #oracle: Oracle
  readonly #clock: ManualClock
  readonly #bookings = new Map<Reservation, readonly [OracleBooking, cost: number]>()

  constructor(limiter: Limiter, spec: PolicySpec, clock: ManualClock) {
    this.#limiter = limiter
    this.#oracle = oracleFor(spec)
    this.#clock = clock
  }

  take(key: Key, cost = 1): Decision {
    return agreed(this.#limiter.take(key, cost), this.#oracle.take(key, cost, this.#clock.nowMs()))
  }

  peek(key: Key, cost = 1): Decision {
    return agreed(this.#limiter.peek(key, cost), this.#oracle.peek(key, cost, this.#clock.nowMs()))
  }

  refund(key: Key, tokens: number): Decision {
    return agreed(this.#limiter.refund(key, tokens), this.#oracle.refund(key, tokens, this.#clock.nowMs()))
  }

  penalize(key: Key, tokens: number): Decision {
    return agreed(this.#limiter.penalize(key, tokens), this.#oracle.penalize(key, tokens, this.#clock.nowMs()))
  }

  /** The duration in milliseconds. */
  block(key: Key, durationMs: number): Decision {
    return agreed(this.#limiter.block(key, durationMs), this.#oracle.block(key, durationMs, this.#clock.nowMs()))
  }

  reset(key: Key): Decision {
    return agreed(this.#limiter.reset(key), this.#oracle.reset(key, this.#clock.nowMs()))
  }

  update(policy: Policy): void {
    this.#limiter.update(policy)
    this.#oracle.update(specOf(policy), this.#clock.nowMs())
  }

  reserve(key: Key, cost: number): CheckedReservation {
    const reservation = this.#limiter.reserve(key, cost)
    const booking = this.#oracle.reserve(key, cost, this.#clock.nowMs())
    assert.deepEqual([reservation.allowed, reservation.waitMs], [booking.allowed, booking.waitMs])
    agreed(reservation.decision, booking.decision)
    this.#bookings.set(reservation, [booking, cost])
    return { reservation, atUs: Number(booking.atUs) }
  }

  cancel({ reservation }: CheckedReservation): Decision {
    return this.#once(reservation, 0, reservation.cancel())
  }

  settle({ reservation }: CheckedReservation, actual: number): Decision {
    return this.#once(reservation, actual, reservation.settle(actual))
  }

  #once(reservation: Reservation, actual: number, answer: Decision): Decision {
    const nowMs = this.#clock.nowMs()
    const [booking, cost] = this.#bookings.get(reservation) ?? []
    this.#bookings.delete(reservation)
    if (booking?.allowed && cost !== undefined && actual < cost) return agreed(answer, this.#oracle.cancel(booking, cost - actual, nowMs))
    if (booking?.allowed && cost !== undefined && actual > cost) {
      return agreed(answer, this.#oracle.penalize(booking.key, actual - cost, nowMs))
    }
    return answer
  }
}

function agreed(answer: Decision, expected: OracleDecision): Decision {
  assert.deepEqual(numbersOf(answer), numbersOf(expected))
  for (const [i, part] of (expected.parts ?? []).entries()) agreed(answer.parts?.[i] as Decision, part)
  return answer
}

function numbersOf({ allowed, limit, remaining, retryAfterMs, resetAfterMs }: OracleDecision): OracleDecision {
  return { allowed, limit, remaining, retryAfterMs, resetAfterMs }
}
