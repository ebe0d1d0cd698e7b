import type { Ticker } from './clock.js'
import { StoreError } from './errors.js'
import { high, low } from './fingerprint.js'
import type { Key } from './limiter.js'
import type { Descriptor, MemoryBooking } from './memory-decisions.js'
import type { MemoryLimiter } from './memory-limiter.js'

/** What came of a take of all parts at once. */
interface TakeOfAll {
  /** Whether each part was charged; else none was. */
  readonly isCharged: boolean
  /** The reading of the clock by which all of them decided. */
  readonly nowUs: number
  readonly bookings: readonly MemoryBooking[]
}

/** Attempts to change all parts at once before a call gives up with CONTENTION. */
const MAX_ATTEMPTS = 100

/** Takes of several sections of one memory: each is written down in a descriptor, which is then put through whole or not at all. */
export class TakesTogether {
  private readonly parts: readonly MemoryLimiter[]
  private readonly ticker: Ticker

  constructor(parts: readonly MemoryLimiter[], ticker: Ticker) {
    this.parts = parts
    this.ticker = ticker
  }

  /**
   * @param key the key of all parts, or one for each.
   * @throws {StoreError} `CONTENTION`
   */
  take(key: Key, cost: number): TakeOfAll {
    const { core } = this.first
    let nowUs = this.first.nowUs()
    let isSecondReading = false
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const descriptor = core.openDescriptor()
      if (descriptor === 0) continue
      const bookings = this.staged({ address: descriptor, nowUs, isSecondReading }, key, cost)
      if (bookings === undefined) {
        core.closeDescriptor(descriptor)
        nowUs = this.ticker.read()
        isSecondReading = true
      } else if (!bookings.every(isAllowed)) {
        core.closeDescriptor(descriptor)
        return { isCharged: false, nowUs, bookings }
      } else if (core.commit(descriptor)) {
        return { isCharged: true, nowUs, bookings }
      }
    }
    throw new StoreError('CONTENTION', 'other threads kept changing these keys; the call was given up after a bounded wait')
  }

  /** What a take makes of the key of each part, written down; undefined when the clock has to be read again. */
  private staged(into: Descriptor, key: Key, cost: number): readonly MemoryBooking[] | undefined {
    const bookings: MemoryBooking[] = []
    let ownLow = 0
    let ownHigh = 0
    try {
      for (let i = 0; i < this.parts.length; i++) {
        const part = this.parts[i] as MemoryLimiter
        const own = typeof key === 'string' ? key : (key[i] as string)
        // They have one secret: what is one key to all of them is hashed once.
        if (i === 0 || typeof key !== 'string') {
          part.hash(own)
          ownLow = low
          ownHigh = high
        }
        const booking = part.stageHashed(into, own, ownLow, ownHigh, cost)
        if (booking === undefined) return undefined
        bookings.push(booking)
      }
      return bookings
    } catch (error) {
      this.first.core.closeDescriptor(into.address)
      throw error
    }
  }

  private get first(): MemoryLimiter {
    return this.parts[0] as MemoryLimiter
  }
}

function isAllowed({ allowed }: MemoryBooking): boolean {
  return allowed
}
