import type { Key, Limiter } from 'sluicegate'

/**
 * `reserve` of a limiter of the library for what may be spent at once, or nothing. After a look another process or thread may have taken what was
 * seen; then the plain one would book ahead, and a window that is booked ahead and cancelled stays closed.
 */
export function reserveNowOf<Made>(limiter: {
  readonly reserve: (key: Key, cost: number, options?: Parameters<Limiter['reserve']>[2]) => Made
}): (key: Key, cost: number) => Made {
  const reserve = limiter.reserve.bind(limiter)
  return (key, cost) => reserve(key, cost, NOW)
}

const NOW = { maxWait: 0 }
