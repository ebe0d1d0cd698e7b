import type { Key } from 'sluicegate'
import type { Awaitable } from './awaitable.js'
import type { StoredReservation } from './stored-limiter.js'

/** The library's method for it. */
const RESERVE_NOW = Symbol.for('sluicegate.reserve-now')

/** A limiter of the library, or one over it, which reserves in this way by itself. */
interface Reserving {
  reserve(key: Key, cost: number): Awaitable<StoredReservation>
}

/**
 * Reserves what may be spent at once, or nothing. After a look another process or thread may have taken what was seen; then `reserve` would book
 * ahead, and a window that is booked ahead and cancelled stays closed.
 */
export function reserveNow(limiter: Reserving, key: Key, cost: number): Awaitable<StoredReservation> {
  const { [RESERVE_NOW]: now } = limiter as Reserving & Readonly<Record<symbol, Reserving['reserve'] | undefined>>
  return now === undefined ? limiter.reserve(key, cost) : now.call(limiter, key, cost)
}
