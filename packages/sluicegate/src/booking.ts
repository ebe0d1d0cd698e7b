import type { Decision } from './decision.js'
import type { Key } from './limiter.js'

/** Tokens charged now, to be spent at `atUs` or later. */
export interface Booking {
  readonly key: Key
  readonly cost: number
  /** Whether they were charged. */
  readonly allowed: boolean
  /** When they may be spent, microseconds since the Unix epoch; not allowed: when they could have been, `Infinity` for never. */
  readonly atUs: number
  /** Not allowed: of a denied take of the same cost. */
  readonly decision: Decision
}

/** What waiting and reserving need of a limiter. Each call is one atomic step in the limiter's store. */
export interface BookingDesk {
  /** Charges `cost` at the earliest time at which it conforms, if that is within `mostMs` from now. */
  book(key: Key, cost: number, mostMs: number): Booking
  /** Gives `tokens` of a booking back, as much as is safe (docs/guide.md says how much). Answers as `peek` would. */
  giveBack(booking: Booking, tokens: number): Decision
}
