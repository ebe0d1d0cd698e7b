import type { Key } from 'sluicegate'

/** The library's method for it. */
const RESERVE_NOW = Symbol.for('sluicegate.reserve-now')

type Reserve<Made> = (key: Key, cost: number) => Made

/**
 * `reserve` of a limiter of the library for what may be spent at once, or nothing. After a look another process or thread may have taken what was
 * seen; then the plain one would book ahead, and a window that is booked ahead and cancelled stays closed.
 */
export function reserveNowOf<Made>(limiter: { readonly reserve: Reserve<Made> }): Reserve<Made> {
  const { [RESERVE_NOW]: now } = limiter as unknown as Readonly<Record<symbol, Reserve<Made> | undefined>>
  return (now ?? limiter.reserve).bind(limiter)
}
