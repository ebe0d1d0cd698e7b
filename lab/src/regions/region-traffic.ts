/** One part of the traffic that all ways get. */
export interface Phase {
  readonly name: 'fill' | 'twice' | 'below' | 'before' | 'shift' | 'again' | 'region' | 'back' | 'home'
  readonly seconds: number
  /** Requests a second by region. */
  readonly rates: readonly number[]
  readonly dead?: 'region' | 'home'
}

/** Each way between a region and the far store. */
export const DELAYS_MS = [40, 80, 150] as const

const FILL = [300, 180, 120] as const
const TWICE = [100, 60, 40] as const
const BELOW = [45, 27, 18] as const

/** What regions without demand saved is spent before a part that counts. */
export const PHASES: readonly Phase[] = [
  { name: 'fill', seconds: 5, rates: FILL },
  { name: 'twice', seconds: 6, rates: TWICE },
  { name: 'below', seconds: 6, rates: BELOW },
  { name: 'before', seconds: 3, rates: [90, 0, 0] },
  { name: 'shift', seconds: 6, rates: [0, 0, 90] },
  { name: 'again', seconds: 4, rates: FILL },
  { name: 'region', seconds: 6, rates: [0, 120, 80], dead: 'region' },
  { name: 'back', seconds: 3, rates: FILL },
  { name: 'home', seconds: 6, rates: TWICE, dead: 'home' },
]

/** What the simulation is checked on: parts so long that the calls of one run are like those of the next. */
export const CHECKED: readonly Phase[] = [
  { name: 'fill', seconds: 5, rates: FILL },
  { name: 'again', seconds: 8, rates: BELOW },
  { name: 'below', seconds: 60, rates: BELOW },
  { name: 'before', seconds: 4, rates: [90, 0, 0] },
  { name: 'shift', seconds: 120, rates: [0, 0, 90] },
]

/** Of the simulation: a key that is cold for a moment makes one differ from the next. */
export const RUNS = 5

/** A take as a process of a region recorded it, in microseconds of the machine's monotonic clock. */
export type RecordedTake = readonly [dueUs: number, fromUs: number, toUs: number, allowed: 0 | 1]
