import type { Key } from 'sluicegate'
import type { Awaitable } from './awaitable.js'
import type { StoredReservation } from './stored-limiter.js'

/** The library's method for it. */
const RESERVE_NOW = Symbol.for('sluicegate.reserve-now')

type Reserve = (key: Key, cost: number) => Awaitable<StoredReservation>

/**
 * `reserve` of a limiter of the library for what may be spent at once, or nothing. After a look another process or thread may have taken what was
 * seen; then the plain one would book ahead, and a window that is booked ahead and cancelled stays closed.
 */
export function reserveNowOf(limiter: { readonly reserve: Reserve }): Reserve {
  const { [RESERVE_NOW]: now } = limiter as unknown as Readonly<Record<symbol, Reserve | undefined>>
  return (now ?? limiter.reserve).bind(limiter)
}
