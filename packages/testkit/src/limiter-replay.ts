import type { Decision, Limiter, Permit, Reservation } from 'sluicegate'
import { type Answer, bookingAnswer, numbered } from './answer.js'
import type { OracleKey } from './oracle/oracle.js'
import type { PolicySpec } from './oracle/policy-spec.js'
import type { PlainStep, Step } from './sequences/sequence.js'

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
export class LimiterReplay {
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
