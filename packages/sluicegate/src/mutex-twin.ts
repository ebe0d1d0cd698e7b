import { type Clock, clockFromHandle, clockHandle, preciseClock, type Ticker, tickerOf } from './clock.js'
import type { Decision } from './decision.js'
import { emissionOf } from './emission.js'
import { fingerprint, high, low, randomSecret } from './fingerprint.js'
import type { BoundKey } from './limiter.js'
import { checkedPolicy } from './checked-policy.js'
import type { Policy } from './policy.js'

// The token bucket as it is written without compare-and-swap: shared memory under a mutex, asleep in Atomics.wait while
// another thread is inside. It exists to be measured against; it is not part of the public API. A thread that dies inside
// leaves the stripe locked for ever, which is the fault that the lock-free core does not have.
//
// Source of the mutex: U. Drepper, "Futexes are tricky", 2011, mutex2.

/** What to hand to a worker thread. */
export interface MutexTwinHandle {
  readonly policy: Policy
  readonly shared: SharedArrayBuffer
  readonly stripes: number
  readonly secret: readonly [number, number]
  readonly clock: ReturnType<typeof clockHandle>
}

const FREE = 0
const LOCKED = 1
const CONTENDED = 2

const ENTRIES_PER_STRIPE = 64
const ENTRIES_PER_KEY = 1.45
/** An entry: the fingerprint in one double's room, tokens in units, and the time they were counted, in microseconds. */
const DOUBLES_PER_ENTRY = 3

/** A fresh twin with room for `maxKeys`. */
export function createMutexTwin(
  policy: Policy,
  { maxKeys = 100_000, clock = preciseClock() }: { maxKeys?: number; clock?: Clock } = {},
): MutexTwin {
  const stripes = Math.ceil((maxKeys * ENTRIES_PER_KEY) / ENTRIES_PER_STRIPE)
  const shared = new SharedArrayBuffer(stripes * 8 + stripes * ENTRIES_PER_STRIPE * DOUBLES_PER_ENTRY * 8)
  return new MutexTwin({ policy: checkedPolicy(policy), shared, stripes, secret: randomSecret(), clock: clockHandle(clock) }, clock)
}

/** The same twin in a worker thread. */
export function attachMutexTwin(handle: MutexTwinHandle): MutexTwin {
  return new MutexTwin(handle, clockFromHandle(handle.clock) ?? preciseClock())
}

/** A token bucket a key, each stripe of the table under a mutex of its own. */
export class MutexTwin {
  private readonly given: MutexTwinHandle
  private readonly ticker: Ticker
  private readonly locks: Int32Array
  private readonly words: Int32Array
  private readonly numbers: Float64Array
  private readonly unitsPerUs: number
  private readonly unitsPerToken: number
  private readonly capacity: number

  constructor(given: MutexTwinHandle, clock: Clock) {
    this.given = given
    this.ticker = tickerOf(clock)
    this.locks = new Int32Array(given.shared, 0, given.stripes * 2)
    this.words = new Int32Array(given.shared, given.stripes * 8)
    this.numbers = new Float64Array(given.shared, given.stripes * 8)
    const { unitsPerUs, unitsPerToken, capacity } = emissionOf(given.policy)
    this.unitsPerUs = unitsPerUs
    this.unitsPerToken = unitsPerToken
    this.capacity = capacity
  }

  handle(): MutexTwinHandle {
    return this.given
  }

  take(key: string, cost = 1): Decision {
    fingerprint(key, this.given.secret[0], this.given.secret[1])
    return this.takeHashed(low, high, cost)
  }

  key(key: string): Pick<BoundKey, 'key' | 'take'> {
    fingerprint(key, this.given.secret[0], this.given.secret[1])
    const [boundLow, boundHigh] = [low, high]
    return { key, take: (cost = 1) => this.takeHashed(boundLow, boundHigh, cost) }
  }

  private takeHashed(low: number, high: number, cost: number): Decision {
    const nowUs = Number.isNaN(this.ticker.us) ? this.ticker.read() : this.ticker.us
    const stripe = (low >>> 0) % this.given.stripes
    const lock = stripe * 2
    this.lock(lock)
    const at = this.entry(stripe, low, high, nowUs)
    const tokens = at < 0 ? 0 : this.tokens(at, nowUs)
    const left = tokens - cost * this.unitsPerToken
    if (at >= 0 && left >= 0) {
      this.numbers[at + 1] = left
      this.numbers[at + 2] = nowUs
    }
    this.unlock(lock)
    return this.decision(left >= 0, left >= 0 ? left : tokens, left)
  }

  /** The key's place in its stripe, or that of a full bucket made the key's own; -1 when there is none. */
  private entry(stripe: number, low: number, high: number, nowUs: number): number {
    const first = stripe * ENTRIES_PER_STRIPE * DOUBLES_PER_ENTRY
    const last = first + ENTRIES_PER_STRIPE * DOUBLES_PER_ENTRY
    let spare = -1
    for (let at = first; at < last; at += DOUBLES_PER_ENTRY) {
      if (this.words[2 * at] === low && this.words[2 * at + 1] === high) return at
      if (spare < 0 && (this.numbers[at + 2] === 0 || this.tokens(at, nowUs) >= this.capacity)) spare = at
      if (this.numbers[at + 2] === 0) break
    }
    if (spare >= 0) {
      this.words[2 * spare] = low
      this.words[2 * spare + 1] = high
      this.numbers[spare + 1] = this.capacity
      this.numbers[spare + 2] = nowUs
    }
    return spare
  }

  private tokens(at: number, nowUs: number): number {
    const elapsedUs = nowUs - (this.numbers[at + 2] as number)
    return Math.min(this.capacity, (this.numbers[at + 1] as number) + elapsedUs * this.unitsPerUs)
  }

  private lock(at: number): void {
    if (Atomics.compareExchange(this.locks, at, FREE, LOCKED) === FREE) return
    while (Atomics.exchange(this.locks, at, CONTENDED) !== FREE) Atomics.wait(this.locks, at, CONTENDED)
  }

  private unlock(at: number): void {
    if (Atomics.exchange(this.locks, at, FREE) === CONTENDED) Atomics.notify(this.locks, at, 1)
  }

  private decision(allowed: boolean, left: number, short: number): Decision {
    const { limit, name } = this.given.policy
    return {
      allowed,
      limit,
      remaining: Math.floor(left / this.unitsPerToken),
      retryAfterMs: allowed ? 0 : Math.ceil(-short / (this.unitsPerUs * 1000)),
      resetAfterMs: Math.ceil((this.capacity - left) / (this.unitsPerUs * 1000)),
      policy: name,
      source: 'memory',
    }
  }
}
