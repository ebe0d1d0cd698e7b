import { type Decision, type Key, type Limiter, type Permit, type Reservation, StoreError } from 'sluicegate'
import { Random } from './random.js'
import type { Life } from './worker-job.js'

/** The permits and bookings that one life keeps open. */
const MOST_HELD = 20

/** Calls a limiter until it is stopped. */
export function live(limiter: Limiter, { keys, cost, seed, counts, takesOnly }: Life): never {
  const random = new Random(seed)
  const calls = new AnyCall(limiter, random, cost)
  for (;;) {
    const i = random.integer(0, keys.length - 1)
    const key = keys[i] as Key
    if (takesOnly) {
      if (limiter.take(key, cost).allowed) Atomics.add(counts, i + 1, 1)
    } else calls.make(key)
    Atomics.add(counts, 0, 1)
  }
}

/** Every verb there is, those of permits and bookings included. */
class AnyCall {
  readonly #random: Random
  readonly #permits: Permit[] = []
  readonly #bookings: Reservation[] = []
  readonly #verbs: readonly ((key: Key) => unknown)[]

  constructor(limiter: Limiter, random: Random, cost: number) {
    this.#random = random
    const take = (key: Key): void => this.#hold(limiter.take(key, cost))
    const reserve = (key: Key): unknown => kept(this.#bookings, limiter.reserve(key, cost * random.integer(1, 3)))
    this.#verbs = [
      ...[take, take, take, take, take, take],
      ...[reserve, reserve],
      () => random.pick(this.#bookings)?.cancel(),
      () => random.pick(this.#bookings)?.settle(random.integer(0, 4 * cost)),
      () => random.pick(this.#permits)?.release(),
      () => random.pick(this.#permits)?.heartbeat(),
      (key) => limiter.peek(key, cost),
      (key) => limiter.refund(key, cost),
      (key) => limiter.penalize(key, cost),
      (key) => limiter.block(key, random.integer(0, 1)),
      (key) => limiter.reset(key),
    ]
  }

  make(key: Key): void {
    try {
      this.#random.pick(this.#verbs)(key)
    } catch (error) {
      // A full table is an answer too; anything else ends the worker, and the test with it.
      if (!(error instanceof StoreError && error.code === 'TABLE_FULL')) throw error
    }
  }

  #hold(decision: Decision): void {
    if ('release' in decision) kept(this.#permits, decision as Permit)
  }
}

/** Among the last few. */
function kept<Thing>(things: Thing[], thing: Thing): void {
  things.push(thing)
  if (things.length > MOST_HELD) things.shift()
}
