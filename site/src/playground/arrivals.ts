/** One request: when, in milliseconds from the start, and whose. */
export interface Arrival {
  readonly atMs: number
  readonly key: string
}

/** What makes the requests. */
export const SOURCES = ['steady', 'poisson', 'bursts', 'clicks', 'log'] as const
export type Source = (typeof SOURCES)[number]

export interface Demand {
  readonly source: Source
  /** Requests per second, on average. */
  readonly rate: number
  /** Of bursts: how many come at once. */
  readonly size: number
  readonly seconds: number
  /** Equal seeds give equal arrivals. */
  readonly seed: number
  /** Times of clicks in milliseconds. */
  readonly clicks: readonly number[]
}

/** What a page can draw and decide in an instant. */
export const MOST_ARRIVALS = 20_000
const KEY = 'you'

/** The arrivals of a demand, in order. Those of a log come from its text, see `readLog`. */
export function arrivalsOf(demand: Demand): Arrival[] {
  return timesOf(demand)
    .slice(0, MOST_ARRIVALS)
    .map((atMs) => ({ atMs, key: KEY }))
}

function timesOf({ source, rate, size, seconds, seed, clicks }: Demand): number[] {
  const endMs = seconds * 1000
  if (source === 'clicks') return clicks.filter((ms) => ms <= endMs)
  if (source === 'log' || !(rate > 0)) return []
  const random = randomFrom(seed)
  const times: number[] = []
  const gapMs = (source === 'bursts' ? size : 1) * (1000 / rate)
  for (let ms = source === 'poisson' ? gapMs * exponential(random) : 0; ms < endMs && times.length < MOST_ARRIVALS; ) {
    // A burst takes a moment: 2 ms between its requests.
    for (let i = 0; i < (source === 'bursts' ? size : 1); i++) if (ms + 2 * i < endMs) times.push(inMicroseconds(ms + 2 * i))
    ms += source === 'poisson' ? gapMs * exponential(random) : gapMs
  }
  return times.sort((a, b) => a - b)
}

function exponential(random: () => number): number {
  return -Math.log(1 - random())
}

/** As exact as the limiter's clock. */
function inMicroseconds(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

/** Numbers in [0, 1), the same in every browser (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
