import { Random } from '../../../packages/testkit/dist/random.js'
import { type Attack, attack } from './adversary.js'
import { FORMS, LOG, PACKED } from './forms.js'
import { counted, type Judgement, limited } from './judge.js'
import { day, frontLoaded, poisson, type Traffic } from './traffic.js'

/** What a run of the study found. */
export interface SlidingWindowFindings {
  readonly study: 'sliding-window'
  readonly seed: number
  readonly windowMs: number
  readonly days: readonly Day[]
  /** One source, by its requests a window over the limit. */
  readonly poisson: readonly AtRate[]
  readonly frontLoaded: readonly AtRate[]
  readonly attacks: readonly Attack[]
  /** Real counts of the first day, the request itself included, and what was believed of them; a few of every size. */
  readonly points: readonly (readonly [real: number, believed: number])[]
  /** The limit that the plot of the points shows. */
  readonly plottedLimit: number
}

/** A day of requests, and how it was judged. */
export type Day = ReturnType<typeof judgedDay>

/** How one source at a steady rate was limited. */
export interface AtRate extends Judgement {
  readonly rate: number
}

const SEED = 2017
const SOURCES = 270_000
const WINDOW_MS = 60_000
const DAYS = [
  { name: 'limits among the rates of ordinary sources', floodShare: 0, limits: [10, 30, 100, 300] },
  { name: 'limits above them, and floods', floodShare: 0.14, limits: [600, 1000] },
]
const RATE_LIMITS = [10, 100, 1000]
const RATES = [0.5, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2]
const ATTACKED = [2, 10, 100, 1000, 10_000]
const PLOTTED_LIMIT = 100
const POINT_STEPS = 50
const POINTS_PER_STEP = 8

/** How much of everything: `quick` is a first look. */
const SIZES = {
  full: { requests: 4_300_000, requestsAtRate: 200_000, restarts: 60 },
  quick: { requests: 300_000, requestsAtRate: 20_000, restarts: 6 },
}

/** How well the approximated sliding window tells what an exact one would say. */
export function slidingWindowStudy({ quick }: { quick: boolean }): SlidingWindowFindings {
  const { requests, requestsAtRate, restarts } = quick ? SIZES.quick : SIZES.full
  const sample = new Sample()
  return {
    study: 'sliding-window',
    seed: SEED,
    windowMs: WINDOW_MS,
    days: DAYS.map((options, nth) => judgedDay({ ...options, requests }, nth === 0 ? sample : undefined)),
    poisson: atRates((perWindow) => poisson(SEED, requestsAtRate, perWindow, WINDOW_MS)),
    frontLoaded: atRates((perWindow) => frontLoaded(SEED, requestsAtRate, perWindow, WINDOW_MS)),
    attacks: [...FORMS, LOG].flatMap((form) => ATTACKED.map((limit) => attack(form, limit, restarts))),
    points: sample.points(),
    plottedLimit: PLOTTED_LIMIT,
  }
}

function judgedDay({ name, requests, floodShare, limits }: (typeof DAYS)[number] & { requests: number }, sample?: Sample) {
  const traffic = day({ seed: SEED, requests, sources: SOURCES, floodShare })
  const all = FORMS.map((form) => counted(traffic, form, limits, WINDOW_MS, form === PACKED ? sample?.add : undefined))
  return {
    name,
    requests,
    sources: SOURCES,
    /** Sources that had a request at all. */
    seen: new Set(traffic.asking).size,
    /** With every request counted, as in the published analysis. */
    counted: all.flatMap(({ judgements }) => judgements),
    differences: all.map(({ difference }) => difference),
    /** By a limiter, which counts what it lets through. */
    limited: [...FORMS, LOG].flatMap((form) => limits.map((limit) => limited(traffic, form, limit, WINDOW_MS))),
  }
}

function atRates(traffic: (perWindow: number) => Traffic): AtRate[] {
  return RATE_LIMITS.flatMap((limit) =>
    RATES.flatMap((rate) => {
      const requests = traffic(Math.round(rate * limit))
      return [...FORMS, LOG].map((form) => ({ rate, ...limited(requests, form, limit, WINDOW_MS) }))
    }),
  )
}

/** As many requests of every size of real count, up to twice the plotted limit, chosen at random among those of that size. */
class Sample {
  private readonly random = new Random(SEED)
  private readonly steps: [number, number][][] = Array.from({ length: POINT_STEPS }, () => [])
  private readonly seen = new Uint32Array(POINT_STEPS)

  /** Reservoir sampling: J. S. Vitter's algorithm R, 1985. */
  readonly add = (real: number, believed: number): void => {
    const step = Math.floor((real / (2 * PLOTTED_LIMIT)) * POINT_STEPS)
    const kept = this.steps[step]
    if (kept === undefined) return
    const nth = (this.seen[step] as number)++
    const at = nth < POINTS_PER_STEP ? nth : this.random.integer(0, nth)
    if (at < POINTS_PER_STEP) kept[at] = [real + 1, believed + 1]
  }

  points(): [number, number][] {
    return this.steps.flat()
  }
}
