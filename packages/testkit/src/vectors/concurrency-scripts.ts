import { at, DAY, NOW, SECOND, script } from './script.js'
import type { Vector, VectorPolicy } from './vector.js'

function inFlight(limit: number, ttlUs: number): VectorPolicy {
  return { limit, windowUs: ttlUs }
}

export const CONCURRENCY_SCRIPTS: readonly Vector[] = [
  script('a permit comes back when it is released, once', inFlight(2, 30 * SECOND), [
    at(NOW, { take: 1 }),
    at(NOW + 1000, { take: 1 }, { take: 1 }),
    at(NOW + 2000, { release: 0 }, { release: 0 }, { release: 2 }, { take: 1 }, { release: 0 }, { take: 1 }),
  ]),
  script('a permit that is not released comes back after its time to live', inFlight(2, SECOND), [
    at(NOW, { take: 1 }),
    at(NOW + 300_000, { take: 1 }),
    at(NOW + 999_999, { take: 2 }),
    at(NOW + SECOND, { take: 1 }, { release: 0 }, { heartbeat: 0 }, { take: 1 }),
  ]),
  script('a heartbeat gives a permit another time to live', inFlight(1, SECOND), [
    at(NOW, { take: 1 }),
    at(NOW + 999_999, { heartbeat: 0 }),
    at(NOW + SECOND, { take: 1 }),
    at(NOW + 1_999_999, { heartbeat: 0 }),
    at(NOW + 2_999_999, { heartbeat: 0 }, { take: 1 }),
  ]),
  script('costs above one; an impossible cost', inFlight(10, SECOND), [
    at(NOW, { take: 11 }, { take: 6 }, { take: 5 }, { take: 4 }, { release: 1 }, { take: 7 }, { take: 6 }),
  ]),
  script('the clock steps back: time stands still for what is in flight', inFlight(2, SECOND), [
    at(NOW, { take: 1 }),
    at(NOW - 500_000, { take: 1 }, { take: 1 }),
    at(NOW + 999_999, { take: 1 }),
    at(NOW + SECOND, { take: 2 }),
  ]),
  script('a penalty takes what is free, a refund what expires last', inFlight(4, SECOND), [
    at(NOW, { take: 1 }),
    at(NOW + 1000, { penalize: 9 }, { refund: 2 }),
    at(NOW + 2000, { take: 2 }, { refund: 3 }, { release: 1 }, { release: 0 }, { take: 4 }, { reset: true }, { release: 2 }),
  ]),
  script('a block is apart from the permits', inFlight(2, SECOND), [
    at(NOW, { take: 1 }, { blockUs: 5 * SECOND }, { release: 0 }, { take: 1 }),
    at(NOW + 5 * SECOND, { take: 1 }),
  ]),
  script('after an update permits keep their time, and too many are in flight for a while', inFlight(3, SECOND), [
    at(NOW, { take: 3 }, { update: inFlight(2, DAY) }, { take: 1 }),
    at(NOW + SECOND, { take: 2 }, { take: 1 }),
  ]),
  script('only what passes now is booked', inFlight(3, SECOND), [
    at(NOW, { reserve: 2 }, { reserve: 2 }, { reserve: 4 }, { settle: 0, actual: 1 }, { take: 2 }, { cancel: 0 }),
    at(NOW + SECOND, { peek: 3 }),
  ]),
]
