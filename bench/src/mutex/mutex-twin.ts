import type { Decision } from '../../../packages/sluicegate/dist/decision/decision.js'
import type { BoundKey } from '../../../packages/sluicegate/dist/limiter.js'
import { fingerprint, high, low, randomSecret } from '../../../packages/sluicegate/dist/memory/fingerprint.js'
import { checkedPolicy } from '../../../packages/sluicegate/dist/policy/checked-policy.js'
import type { Policy } from '../../../packages/sluicegate/dist/policy/policy.js'
import { emissionOf } from '../../../packages/sluicegate/dist/policy/policy-numbers.js'
import {
  type Clock,
  clockFromHandle,
  clockHandle,
  preciseClock,
  type Ticker,
  tickerOf,
} from '../../../packages/sluicegate/dist/time/clock.js'

// A mutex in shared memory: one that is not free sleeps in Atomics.wait. A thread that dies inside leaves it locked for ever,
// which is the fault that the lock-free core does not have.
//
// Source: U. Drepper, "Futexes are tricky", 2011, mutex2.

const FREE = 0
const LOCKED = 1
const CONTENDED = 2

/** Enters the mutex at `at`, after a sleep where another thread is inside. */
function lock(mutexes: Int32Array, at: number): void {
  if (Atomics.compareExchange(mutexes, at, FREE, LOCKED) === FREE) return
  while (Atomics.exchange(mutexes, at, CONTENDED) !== FREE) Atomics.wait(mutexes, at, CONTENDED)
}

/** Leaves it, and wakes one who sleeps. */
function unlock(mutexes: Int32Array, at: number): void {
  if (Atomics.exchange(mutexes, at, FREE) === CONTENDED) Atomics.notify(mutexes, at, 1)
}

/** What to hand to a worker thread. */
interface MutexTwinHandle {
  readonly policy: Policy
  readonly shared: SharedArrayBuffer
  readonly stripes: number
  readonly secret: readonly [number, number]
  readonly clock: ReturnType<typeof clockHandle>
}

interface MutexTwinOptions {
  /** Default 100,000. */
  readonly maxKeys?: number
  /** Default `preciseClock()`. */
  readonly clock?: Clock
}

/** A power of two. */
const ENTRIES_PER_STRIPE = 64
const ENTRIES_PER_KEY = 1.45
/** An entry: the fingerprint, tokens in units, and the time they were counted, in microseconds. */
const TOKENS = 1
const COUNTED_US = 2
const DOUBLES_PER_ENTRY = 3

/** A fresh twin with room for `maxKeys`. */
export function createMutexTwin(policy: Policy, { maxKeys = 100_000, clock = preciseClock() }: MutexTwinOptions = {}): MutexTwin {
  const stripes = Math.ceil((maxKeys * ENTRIES_PER_KEY) / ENTRIES_PER_STRIPE)
  const shared = new SharedArrayBuffer(stripes * 8 + stripes * ENTRIES_PER_STRIPE * DOUBLES_PER_ENTRY * 8)
  return new MutexTwin({ shared, stripes, policy: checkedPolicy(policy), secret: randomSecret(), clock: clockHandle(clock) }, clock)
}

/** The same twin in a worker thread. */
export function attachMutexTwin(handle: MutexTwinHandle): MutexTwin {
  return new MutexTwin(handle, clockFromHandle(handle.clock) ?? preciseClock())
}

/**
 * The token bucket in shared memory as one writes it without compare-and-swap: each stripe of the table under its own mutex, see `mutex.ts`. It
 * exists to be measured against.
 */
class MutexTwin {
  private readonly given: MutexTwinHandle
  /** All entries, as doubles; an entry's `at` is its first. */
  private readonly numbers: Float64Array
  /** The same, two words a double. */
  private readonly words: Int32Array
  private readonly mutexes: Int32Array
  private readonly ticker: Ticker
  private readonly unitsPerUs: number
  private readonly unitsPerToken: number
  private readonly capacity: number
  /** Of the last step, in units. */
  private left = 0

  constructor(given: MutexTwinHandle, clock: Clock) {
    this.given = given
    this.ticker = tickerOf(clock)
    this.mutexes = new Int32Array(given.shared, 0, given.stripes * 2)
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
    lock(this.mutexes, stripe * 2)
    const allowed = this.step(this.entry(stripe, low, high, nowUs), nowUs, cost)
    unlock(this.mutexes, stripe * 2)
    return this.decision(allowed, cost)
  }

  /** Takes, if it can, and remembers what is left; `at` is -1 where there is no room for the key. Inside the mutex. */
  private step(at: number, nowUs: number, cost: number): boolean {
    const tokens = at < 0 ? 0 : this.tokens(at, nowUs)
    const left = tokens - cost * this.unitsPerToken
    const passes = at >= 0 && left >= 0
    if (passes) this.keep(at, left, nowUs)
    this.left = passes ? left : tokens
    return passes
  }

  /** The answer to the last step. Outside of the mutex. */
  private decision(allowed: boolean, cost: number): Decision {
    const { limit, name } = this.given.policy
    const short = cost * this.unitsPerToken - this.left
    return {
      allowed,
      limit,
      remaining: Math.floor(this.left / this.unitsPerToken),
      retryAfterMs: allowed ? 0 : Math.ceil(short / (this.unitsPerUs * 1000)),
      resetAfterMs: Math.ceil((this.capacity - this.left) / (this.unitsPerUs * 1000)),
      policy: name,
      source: 'memory',
    }
  }

  private tokens(at: number, nowUs: number): number {
    const elapsedUs = nowUs - (this.numbers[at + COUNTED_US] as number)
    return Math.min(this.capacity, (this.numbers[at + TOKENS] as number) + elapsedUs * this.unitsPerUs)
  }

  private keep(at: number, tokens: number, nowUs: number): void {
    this.numbers[at + TOKENS] = tokens
    this.numbers[at + COUNTED_US] = nowUs
  }

  /** The key's place in its stripe, or a free one, or that of a full key, made the key's own; -1 when there is none. */
  private entry(stripe: number, low: number, high: number, nowUs: number): number {
    const first = stripe * ENTRIES_PER_STRIPE
    let spare = -1
    for (let nth = 0; nth < ENTRIES_PER_STRIPE; nth++) {
      const at = (first + ((high + nth) & (ENTRIES_PER_STRIPE - 1))) * DOUBLES_PER_ENTRY
      if (this.words[2 * at] === low && this.words[2 * at + 1] === high) return at
      const isUnused = this.words[2 * at] === 0 && this.words[2 * at + 1] === 0
      if (spare < 0 && (isUnused || this.tokens(at, nowUs) >= this.capacity)) spare = at
      if (isUnused) break
    }
    if (spare >= 0) {
      this.words[2 * spare] = low
      this.words[2 * spare + 1] = high
      this.keep(spare, this.capacity, nowUs)
    }
    return spare
  }
}
