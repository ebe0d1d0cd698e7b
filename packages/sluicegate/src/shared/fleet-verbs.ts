import type { Decision } from '../decision.js'
import type { Key } from '../limiter.js'
import type { Duration } from '../policy/duration.js'

/** Tokens charged for a time to come, or why none were. */
export interface Booked {
  readonly key: Key
  readonly cost: number
  readonly allowed: boolean
  /** Until they may be spent, from the answer on. */
  readonly waitUs: number
  readonly decision: Decision
  /** Of two of a key the one that was booked later has the larger one. */
  readonly order: number
  /** Of what may come back before its time: the name of what is held, or would be. */
  readonly permit: string | undefined
}

/**
 * Whoever holds the true state, asked one verb at a time: Redis, or a primary process. A call is one atomic step there, on its clock. It
 * rejects with `StoreError` `OUTAGE` when nothing came back in time; then nobody knows whether it was done, and it is not tried again.
 */
export interface FleetVerbs<Booking extends Booked = Booked> {
  /** How many policies have to agree: one, or those of `allOf`. */
  readonly partCount: number
  take(key: Key, cost: number): Promise<Decision>
  peek(key: Key, cost: number): Promise<Decision>
  refund(key: Key, tokens: number): Promise<Decision>
  penalize(key: Key, tokens: number): Promise<Decision>
  /** {@link penalize} with as many tokens for each policy as were used of it elsewhere, of some 0. */
  charge(key: Key, tokens: readonly number[]): Promise<unknown>
  block(key: Key, duration: Duration): Promise<Decision>
  reset(key: Key): Promise<Decision>
  /** Charges `cost` at the earliest time at which it conforms, within `mostUs`; of permits and several policies only what passes now. */
  book(key: Key, cost: number, mostUs: number): Promise<Booking>
  /** What the taker of a booking is told: a take that passed, unless the key was blocked while he slept; then it goes back. */
  answer(booked: Booking): Promise<Decision>
  /** Gives `tokens` of what was booked back, as much as is safe. */
  giveBack(booked: Booking, tokens: number): Promise<Decision>
  /** Gives all of it back, for nobody. The call goes out before this returns; it rejects when an answer is waited for and does not come. */
  discard(booked: Booking): Promise<unknown>
  /** A denial of those who may not overtake, or whose time is over. */
  refuse(decision: Decision): Decision
}
