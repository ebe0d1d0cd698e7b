import { Random } from '../../../packages/testkit/dist/random.js'
import { Zipf } from '../../../packages/testkit/dist/zipf.js'

/** Requests in the order of time. */
export interface Traffic {
  /** Microseconds since the Unix epoch. */
  readonly timesUs: Float64Array
  /** Who asks, 0 to `sources - 1`. */
  readonly asking: Uint32Array
  readonly sources: number
}

export interface DayOptions {
  readonly seed: number
  readonly requests: number
  readonly sources: number
  /** The part of them that comes in floods: from one source at a time, far faster than any other asks. */
  readonly floodShare: number
}

const START_MS = Date.UTC(2026, 0, 1)
const DAY_MS = 86_400_000
/** Times are sorted together with who asks, as one number below 2^53. */
const TICK_US = 100
const TICKS_PER_MS = 1000 / TICK_US
const SOURCE_ROOM = 2 ** 20

const EXPONENT = 1
/** The busiest hour has (1 + SWING) / (1 - SWING) times the requests of the quietest. */
const SWING = 0.6
const BURST = { chance: 0.02, mean: 20, meanGapMs: 150 }
const FLOOD = { requests: 10_000, perSecond: [30, 100] } as const

/**
 * A day of requests: sources by Zipf's law with exponent 1, a busy and a quiet time of day, and one request in fifty followed by a
 * burst of about twenty more from its source, 150 ms apart on average. A flood is 10,000 requests of one source, 30 to 100 a second.
 */
export function day({ seed, requests, sources, floodShare }: DayOptions): Traffic {
  const random = new Random(seed)
  const zipf = new Zipf(sources, EXPONENT)
  const packed = new Float64Array(requests)
  let made = 0
  const train = (source: number, length: number, meanGapMs: number): void => {
    let atMs = timeOfDayMs(random)
    for (let nth = 0; nth < length && made < requests && atMs < DAY_MS; nth++) {
      packed[made++] = Math.floor(atMs * TICKS_PER_MS) * SOURCE_ROOM + source
      atMs += random.exponential(meanGapMs)
    }
  }
  while (made < requests * floodShare) {
    train(random.integer(0, sources - 1), FLOOD.requests, 1000 / random.integer(...FLOOD.perSecond))
  }
  while (made < requests) {
    const following = random.chance(BURST.chance) ? Math.round(random.exponential(BURST.mean)) : 0
    train(zipf.draw(random), 1 + following, BURST.meanGapMs)
  }
  packed.sort()
  return {
    timesUs: packed.map((value) => START_MS * 1000 + Math.floor(value / SOURCE_ROOM) * TICK_US),
    asking: Uint32Array.from(packed, (value) => value % SOURCE_ROOM),
    sources,
  }
}

/** One source that asks at random, `perWindow` requests a window on average. */
export function poisson(seed: number, requests: number, perWindow: number, windowMs: number): Traffic {
  const random = new Random(seed)
  let atMs = START_MS
  return ofOne(requests, () => {
    atMs += random.exponential(windowMs / perWindow)
    return atMs
  })
}

/** One source that asks `perWindow` times in the first tenth of each window, at random within it, and not at all in the rest. */
export function frontLoaded(seed: number, requests: number, perWindow: number, windowMs: number): Traffic {
  const random = new Random(seed)
  return ofOne(requests, (nth) => START_MS + (Math.floor(nth / perWindow) + random.fraction() / 10) * windowMs)
}

function ofOne(requests: number, atMs: (nth: number) => number): Traffic {
  const timesUs = Float64Array.from({ length: requests }, (_, nth) => Math.round(atMs(nth) * 1000)).sort()
  return { timesUs, asking: new Uint32Array(requests), sources: 1 }
}

function timeOfDayMs(random: Random): number {
  for (;;) {
    const share = random.fraction()
    if (random.fraction() * (1 + SWING) < 1 + SWING * Math.sin(2 * Math.PI * share)) return share * DAY_MS
  }
}
