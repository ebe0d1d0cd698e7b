/** Windows for which limits are suggested. */
const PEAK_WINDOWS = [
  ['1s', 1_000],
  ['10s', 10_000],
  ['1m', 60_000],
  ['10m', 600_000],
  ['1h', 3_600_000],
  ['1d', 86_400_000],
] as const
/** Shares of keys that a suggested limit never denies. */
export const PEAK_PERCENTILES = [50, 90, 95, 99, 99.9, 100] as const

const WINDOWS = PEAK_WINDOWS.length
const WORDS = 3 * WINDOWS
const MAX_SAMPLED = 100_000

/** The highest counts of one key in aligned windows: what a fixed window of this length has to allow. */
export interface PeakRow {
  readonly window: string
  /** One for each of {@link PEAK_PERCENTILES}, over the keys. */
  readonly peaks: readonly number[]
}

/**
 * The highest count of each key in windows of six lengths, and percentiles of them over the keys.
 *
 * Memory is constant: of more than 100,000 keys a sample is kept, by a hash of the key, so that busy keys and quiet ones have the same
 * chance. A key that is dropped from the sample never comes back, and a key is in it from its first request or not at all.
 */
export class PeakRates {
  /** Keys are in the sample with this chance. */
  chance = 1
  readonly #slots = new Map<string, number>()
  readonly #free: number[] = []
  readonly #max: number
  /** For each key and length: the number of the window that is counted now, its count, and the highest count. */
  #state = new Uint32Array(1_024 * WORDS)
  /** The numbers of the windows of the last time, which many lines share. */
  readonly #now = new Uint32Array(WINDOWS)
  #nowMs = Number.NaN
  #used = 0

  constructor(maxSampled = MAX_SAMPLED) {
    this.#max = maxSampled
  }

  get sampledKeys(): number {
    return this.#slots.size
  }

  add(key: string, timeMs: number): void {
    const slot = this.#slots.get(key) ?? this.#admit(key)
    if (slot < 0) return
    if (timeMs !== this.#nowMs) this.#setNow(timeMs)
    const state = this.#state
    for (let i = 0, at = slot * WORDS; i < WINDOWS; i++, at += 3) {
      const window = this.#now[i] as number
      const count = window === state[at] ? (state[at + 1] as number) + 1 : 1
      state[at] = window
      state[at + 1] = count
      if (count > (state[at + 2] as number)) state[at + 2] = count
    }
  }

  rows(): PeakRow[] {
    return PEAK_WINDOWS.map(([window], i) => {
      const peaks = Uint32Array.from(this.#slots.values(), (slot) => this.#state[slot * WORDS + 3 * i + 2] as number).sort()
      return { window, peaks: PEAK_PERCENTILES.map((percentile) => peaks[Math.ceil((percentile / 100) * peaks.length) - 1] ?? 0) }
    })
  }

  #admit(key: string): number {
    if (chanceOf(key) >= this.chance) return -1
    while (this.#slots.size >= this.#max) {
      this.#thin()
      if (chanceOf(key) >= this.chance) return -1
    }
    const slot = this.#free.pop() ?? this.#used++
    if ((slot + 1) * WORDS > this.#state.length) this.#grow()
    this.#state.fill(0, slot * WORDS, (slot + 1) * WORDS)
    this.#slots.set(key, slot)
    return slot
  }

  #thin(): void {
    this.chance /= 2
    for (const [key, slot] of this.#slots) {
      if (chanceOf(key) < this.chance) continue
      this.#slots.delete(key)
      this.#free.push(slot)
    }
  }

  #setNow(timeMs: number): void {
    this.#nowMs = timeMs
    PEAK_WINDOWS.forEach(([, windowMs], i) => {
      this.#now[i] = Math.floor(timeMs / windowMs)
    })
  }

  #grow(): void {
    const twice = new Uint32Array(2 * this.#state.length)
    twice.set(this.#state)
    this.#state = twice
  }
}

/** A number from 0 to 1 that depends on the key alone. Source: FNV-1a with the last mixing of MurmurHash3, both in the public domain. */
function chanceOf(key: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
