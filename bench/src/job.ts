/** One thing to measure in its own process: who decides, over how many keys, and in what kind of loop. */
export interface Job {
  readonly contender: string
  readonly keys: number
  /** Takes in one turn of the event loop, a real turn after each; 0 for one loop without turns. */
  readonly takesPerTurn: number
  readonly outcome: 'allow' | 'deny'
  /** Keys cut out of a buffer for each take, as a server gets them off a socket, instead of made before. */
  readonly freshKeys: boolean
  /** How long one repeat should last. */
  readonly repeatMs: number
  /** Where memory is measured: takes of each key, default 1. */
  readonly takesPerKey?: number
}

/** What one repeat found. */
export interface Repeat {
  /** Nanoseconds a decision: of the loop without turns gross, of a loop with turns net of the same loop without takes. */
  readonly ns: number
  /** The same with everything that the loop and its turns cost. */
  readonly grossNs: number
  readonly takes: number
  readonly allowed: number
}

/** Enough for any loop here to be allowed for ever: 1,000 tokens come back each microsecond. Fits the packed word. */
export const ALLOW = { limit: 1_000_000_000, window: '1s', burst: 15_000_000 } as const

/** Spent by the first take, so that all others are denied. */
export const DENY = { limit: 1, window: '1h', burst: 1 } as const

/**
 * Rivals that count in windows get this one where everything is allowed, so that none ends inside a measurement: it spares
 * them the work of an expiry.
 */
export const RIVAL_WINDOW_MS = 60_000

/** A limiter under measurement: called as its documentation recommends, and awaited only where its interface demands it. */
export interface Contender {
  /** The answer, or a promise of it where `awaited`. */
  take(key: string): unknown
  /** Whether an answer let the request pass. A rejected promise is a denial. */
  passed(answer: unknown): boolean
  readonly awaited: boolean
  /** Bytes that it says it holds, where it can say. */
  memoryBytes?(): number
}

/** Makes a contender for a job. Each process makes one, so that no call site has seen another. */
export type ContenderFactory = (job: Job) => Contender | Promise<Contender>
