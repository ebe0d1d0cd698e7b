import { DAY, NOW, SECOND, script } from './script.js'
import type { Vector, VectorPolicy } from './vector.js'

function inFlight(limit: number, ttlUs: number): VectorPolicy {
  return { limit, windowUs: ttlUs }
}

export const CONCURRENCY_SCRIPTS: readonly Vector[] = [
  script('a permit comes back when it is released, once', inFlight(2, 30 * SECOND), [
    { atUs: NOW, take: 1 },
    { atUs: NOW + 1000, take: 1 },
    { atUs: NOW + 1000, take: 1 },
    { atUs: NOW + 2000, release: 0 },
    { atUs: NOW + 2000, release: 0 },
    { atUs: NOW + 2000, release: 2 },
    { atUs: NOW + 2000, take: 1 },
    { atUs: NOW + 2000, release: 0 },
    { atUs: NOW + 2000, take: 1 },
  ]),
  script('a permit that is not released comes back after its time to live', inFlight(2, SECOND), [
    { atUs: NOW, take: 1 },
    { atUs: NOW + 300_000, take: 1 },
    { atUs: NOW + 999_999, take: 2 },
    { atUs: NOW + SECOND, take: 1 },
    { atUs: NOW + SECOND, release: 0 },
    { atUs: NOW + SECOND, heartbeat: 0 },
    { atUs: NOW + SECOND, take: 1 },
  ]),
  script('a heartbeat gives a permit another time to live', inFlight(1, SECOND), [
    { atUs: NOW, take: 1 },
    { atUs: NOW + 999_999, heartbeat: 0 },
    { atUs: NOW + SECOND, take: 1 },
    { atUs: NOW + 1_999_999, heartbeat: 0 },
    { atUs: NOW + 2_999_999, heartbeat: 0 },
    { atUs: NOW + 2_999_999, take: 1 },
  ]),
  script('costs above one; an impossible cost', inFlight(10, SECOND), [
    { atUs: NOW, take: 11 },
    { atUs: NOW, take: 6 },
    { atUs: NOW, take: 5 },
    { atUs: NOW, take: 4 },
    { atUs: NOW, release: 1 },
    { atUs: NOW, take: 7 },
    { atUs: NOW, take: 6 },
  ]),
  script('the clock steps back: time stands still for what is in flight', inFlight(2, SECOND), [
    { atUs: NOW, take: 1 },
    { atUs: NOW - 500_000, take: 1 },
    { atUs: NOW - 500_000, take: 1 },
    { atUs: NOW + 999_999, take: 1 },
    { atUs: NOW + SECOND, take: 2 },
  ]),
  script('a penalty takes what is free, a refund what expires last', inFlight(4, SECOND), [
    { atUs: NOW, take: 1 },
    { atUs: NOW + 1000, penalize: 9 },
    { atUs: NOW + 1000, refund: 2 },
    { atUs: NOW + 2000, take: 2 },
    { atUs: NOW + 2000, refund: 3 },
    { atUs: NOW + 2000, release: 1 },
    { atUs: NOW + 2000, release: 0 },
    { atUs: NOW + 2000, take: 4 },
    { atUs: NOW + 2000, reset: true },
    { atUs: NOW + 2000, release: 2 },
  ]),
  script('a block is apart from the permits', inFlight(2, SECOND), [
    { atUs: NOW, take: 1 },
    { atUs: NOW, blockUs: 5 * SECOND },
    { atUs: NOW, release: 0 },
    { atUs: NOW, take: 1 },
    { atUs: NOW + 5 * SECOND, take: 1 },
  ]),
  script('after an update permits keep their time, and too many are in flight for a while', inFlight(3, SECOND), [
    { atUs: NOW, take: 3 },
    { atUs: NOW, update: inFlight(2, DAY) },
    { atUs: NOW, take: 1 },
    { atUs: NOW + SECOND, take: 2 },
    { atUs: NOW + SECOND, take: 1 },
  ]),
  script('only what passes now is booked', inFlight(3, SECOND), [
    { atUs: NOW, reserve: 2 },
    { atUs: NOW, reserve: 2 },
    { atUs: NOW, reserve: 4 },
    { atUs: NOW, settle: 0, actual: 1 },
    { atUs: NOW, take: 2 },
    { atUs: NOW, cancel: 0 },
    { atUs: NOW + SECOND, peek: 3 },
  ]),
]
