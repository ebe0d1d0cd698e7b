import type { Decision } from '../../../packages/sluicegate/dist/decision/decision.js'
import type { BoundKey } from '../../../packages/sluicegate/dist/limiter.js'
import { fingerprint, high, low, randomSecret } from '../../../packages/sluicegate/dist/memory/fingerprint.js'
import { checkedPolicy } from '../../../packages/sluicegate/dist/policy/checked-policy.js'
import type { Policy } from '../../../packages/sluicegate/dist/policy/policy.js'
import {
  type Clock,
  clockFromHandle,
  clockHandle,
  preciseClock,
  type Ticker,
  tickerOf,
} from '../../../packages/sluicegate/dist/time/clock.js'
import { lock, unlock } from './mutex.js'

/** What to hand to a worker thread. */
export interface MutexTwinHandle {
  readonly policy: Policy
  readonly shared: SharedArrayBuffer
  readonly stripes: number
  readonly doublesPerEntry: number
  readonly secret: readonly [number, number]
  readonly clock: ReturnType<typeof clockHandle>
}

export interface MutexTwinOptions {
  /** Default 100,000. */
  readonly maxKeys?: number
  /** Default `preciseClock()`. */
  readonly clock?: Clock
}

/** A power of two. */
const ENTRIES_PER_STRIPE = 64
const ENTRIES_PER_KEY = 1.45

/** Fresh shared memory for `maxKeys`, `doublesPerEntry` each. */
export function foundMutexTable(
  policy: Policy,
  doublesPerEntry: number,
  { maxKeys = 100_000, clock = preciseClock() }: MutexTwinOptions,
): [MutexTwinHandle, Clock] {
  const stripes = Math.ceil((maxKeys * ENTRIES_PER_KEY) / ENTRIES_PER_STRIPE)
  const shared = new SharedArrayBuffer(stripes * 8 + stripes * ENTRIES_PER_STRIPE * doublesPerEntry * 8)
  const table = { shared, stripes, doublesPerEntry }
  return [{ ...table, policy: checkedPolicy(policy), secret: randomSecret(), clock: clockHandle(clock) }, clock]
}

/** The clock of a handle, in this thread. */
export function clockOf({ clock }: MutexTwinHandle): Clock {
  return clockFromHandle(clock) ?? preciseClock()
}

/**
 * Keys in shared memory as one writes it without compare-and-swap: each stripe of the table under its own mutex, see
 * `mutex.ts`. What an entry holds beside the key's fingerprint, its first double, is its algorithm's. It exists to be measured
 * against; it is not part of the public API.
 */
export abstract class MutexTable {
  protected readonly policy: Policy
  /** All entries, as doubles; an entry's `at` is its first. */
  protected readonly numbers: Float64Array
  /** The same, two words a double. */
  protected readonly words: Int32Array
  private readonly given: MutexTwinHandle
  private readonly ticker: Ticker
  private readonly mutexes: Int32Array

  constructor(given: MutexTwinHandle, clock: Clock) {
    this.given = given
    this.policy = given.policy
    this.ticker = tickerOf(clock)
    this.mutexes = new Int32Array(given.shared, 0, given.stripes * 2)
    this.words = new Int32Array(given.shared, given.stripes * 8)
    this.numbers = new Float64Array(given.shared, given.stripes * 8)
  }

  /** Makes the entry that of a key never seen. */
  protected abstract makeNew(at: number, nowUs: number): void
  /** Whether its key is full, so that another may have the entry. */
  protected abstract isAsNew(at: number, nowUs: number): boolean
  /** Takes, if it can, and remembers what `decision` needs; `at` is -1 where there is no room for the key. Inside the mutex. */
  protected abstract step(at: number, nowUs: number, cost: number): boolean
  /** The answer to the last step. Outside. */
  protected abstract decision(allowed: boolean, nowUs: number, cost: number): Decision

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
    return this.decision(allowed, nowUs, cost)
  }

  /** The key's place in its stripe, or a free one made the key's own; -1 when there is none. */
  private entry(stripe: number, low: number, high: number, nowUs: number): number {
    const { doublesPerEntry } = this.given
    const first = stripe * ENTRIES_PER_STRIPE
    let spare = -1
    for (let nth = 0; nth < ENTRIES_PER_STRIPE; nth++) {
      const at = (first + ((high + nth) & (ENTRIES_PER_STRIPE - 1))) * doublesPerEntry
      if (this.words[2 * at] === low && this.words[2 * at + 1] === high) return at
      const isUnused = this.words[2 * at] === 0 && this.words[2 * at + 1] === 0
      if (spare < 0 && (isUnused || this.isAsNew(at, nowUs))) spare = at
      if (isUnused) break
    }
    if (spare >= 0) {
      this.words[2 * spare] = low
      this.words[2 * spare + 1] = high
      this.makeNew(spare, nowUs)
    }
    return spare
  }
}
