// A mutex in shared memory: one that is not free sleeps in Atomics.wait. A thread that dies inside leaves it locked for ever,
// which is the fault that the lock-free core does not have.
//
// Source: U. Drepper, "Futexes are tricky", 2011, mutex2.

const FREE = 0
const LOCKED = 1
const CONTENDED = 2

/** Enters the mutex at `at`, after a sleep where another thread is inside. */
export function lock(mutexes: Int32Array, at: number): void {
  if (Atomics.compareExchange(mutexes, at, FREE, LOCKED) === FREE) return
  while (Atomics.exchange(mutexes, at, CONTENDED) !== FREE) Atomics.wait(mutexes, at, CONTENDED)
}

/** Leaves it, and wakes one who sleeps. */
export function unlock(mutexes: Int32Array, at: number): void {
  if (Atomics.exchange(mutexes, at, FREE) === CONTENDED) Atomics.notify(mutexes, at, 1)
}
