import { contentions } from '../decision/diagnostics.js'
import { contentionError } from '../errors.js'
import type { Key } from '../limiter.js'
import type { Ticker } from '../time/clock.js'
import type { SharedName } from './all-of-policy.js'
import { high, low } from './fingerprint.js'
import type { Descriptor, MemoryBooking } from './memory-bookings.js'
import type { MemoryLimiter } from './memory-limiter.js'

/** Result of a take of all parts. */
interface TakeOfAll {
  /** Whether each part was charged; else none was. */
  readonly isCharged: boolean
  /** The reading of the clock by which all of them decided. */
  readonly nowUs: number
  readonly bookings: readonly MemoryBooking[]
}

/** The halves of the hash of each part's key, one after another. */
export type Hashes = readonly number[]

/** Attempts to change all parts at once before a call gives up with CONTENTION. */
const MAX_ATTEMPTS = 100

/** Takes of several sections of one memory: all are staged in a descriptor, which commits as a whole or not at all. */
export class TakesTogether {
  private readonly ticker: Ticker
  private readonly name: SharedName

  constructor(ticker: Ticker, name: SharedName) {
    this.ticker = ticker
    this.name = name
  }

  /**
   * @param key the key of all parts, or one for each.
   * @throws {StoreError} `CONTENTION`
   */
  take(parts: readonly MemoryLimiter[], key: Key, cost: number, hashes?: Hashes): TakeOfAll {
    try {
      const take = this.tried(parts, key, cost, hashes)
      if (take !== undefined) return take
    } finally {
      for (const part of parts) part.decisions.events.publish()
    }
    ;(parts[0] as MemoryLimiter).core.giveUp()
    if (contentions.hasSubscribers) contentions.publish({ policy: this.name.text, key })
    throw contentionError('these keys')
  }

  private tried(parts: readonly MemoryLimiter[], key: Key, cost: number, hashes: Hashes | undefined): TakeOfAll | undefined {
    const { core, decisions } = parts[0] as MemoryLimiter
    let nowUs = decisions.nowUs()
    let readings = 0
    let lost = 0
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const descriptor = core.openDescriptor()
      if (descriptor === 0) {
        core.yieldAfter(++lost)
        nowUs = this.ticker.read()
        continue
      }
      const bookings = staged(parts, { address: descriptor, nowUs, readings }, key, cost, hashes)
      if (typeof bookings === 'number') {
        core.closeDescriptor(descriptor)
        nowUs = bookings
        readings++
      } else if (!bookings.every(isAllowed)) {
        core.closeDescriptor(descriptor)
        return { isCharged: false, nowUs, bookings }
      } else if (core.commit(descriptor)) {
        for (const [i, { isOverflow }] of bookings.entries()) if (isOverflow) parts[i]?.core.countOverflow()
        return { isCharged: true, nowUs, bookings }
      } else {
        // Other threads may have charged at a later reading than the old one.
        core.yieldAfter(++lost)
        nowUs = this.ticker.read()
        readings = 0
      }
    }
    return undefined
  }
}

/** To be given to {@link TakesTogether.take} again and again. All parts share one secret. */
export function hashesOf(part: MemoryLimiter, keys: readonly string[]): Hashes {
  return keys.flatMap((key) => {
    part.hash(key)
    return [low, high]
  })
}

/** The staged take of each part; or a later clock reading, with which to stage all of them again. */
function staged(
  parts: readonly MemoryLimiter[],
  into: Descriptor,
  key: Key,
  cost: number,
  hashes: Hashes | undefined,
): readonly MemoryBooking[] | number {
  const bookings: MemoryBooking[] = []
  let ownLow = 0
  let ownHigh = 0
  try {
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i] as MemoryLimiter
      const own = typeof key === 'string' ? key : (key[i] as string)
      if (hashes !== undefined) {
        ownLow = hashes[2 * i] as number
        ownHigh = hashes[2 * i + 1] as number
      } else if (i === 0 || typeof key !== 'string') {
        // All parts share one secret, so one key is hashed once.
        part.hash(own)
        ownLow = low
        ownHigh = high
      }
      const booking = part.bookings.stage(into, own, ownLow, ownHigh, cost)
      if (typeof booking === 'number') return booking
      bookings.push(booking)
    }
    return bookings
  } catch (error) {
    parts[0]?.core.closeDescriptor(into.address)
    throw error
  }
}

function isAllowed({ allowed }: MemoryBooking): boolean {
  return allowed
}
