import type { Decision } from '../decision.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { WaitRequest } from '../wait-request.js'
import type { Booked } from './fleet-verbs.js'

/** What waiting needs of a limiter. */
export interface WaitingDesk<Answer extends Decision> {
  /** Charges `cost` at the earliest time, within `mostMs`. Rejects with `OUTAGE`. */
  book(key: Key, cost: number, mostMs: number): Promise<Booked>
  /** What the taker of a booking is told, so long after it was asked for; undefined when it came too late, and is to be booked again. */
  answer(booked: Booked, sinceMs: number): Promise<Answer | undefined>
  /** Soon, together with what others do not want. */
  giveBack(booked: Booked): void
  /** A denial. */
  refuse(decision: Decision): Answer
  /** The denial of a request that may not overtake those who stand in line. */
  deny(key: Key, cost: number): Promise<Answer>
  /** The policy by which waiters book ahead. */
  policyNow(): Policy
  /** Waits for what is decided while the store cannot be reached. */
  waitWithout(request: WaitRequest): Promise<Answer>
}
