import type { Call, PolicyNumbers } from './call.js'

/** Threads that call into one small table, and how it was furnished for them. */
export interface Scenario {
  /** The question: who does what at once. */
  readonly name: string
  readonly policy: PolicyNumbers
  /** Table lines; a key's range is all of them, from its home on. */
  readonly lines: number
  readonly entriesPerLine: number
  readonly denyWhenFull: boolean
  /** By key: how far into the table its home lies, 0 to 1 exclusive. */
  readonly homes: readonly number[]
  /** Calls made one after another before the threads start. */
  readonly before: readonly Call[]
  /** By thread, the calls it makes. */
  readonly threads: readonly (readonly Call[])[]
  /** Whether a newcomer may find no room. */
  readonly mayRefuse: boolean
  /** Whether a clock runs so far that the core moves its time base. */
  readonly movesBase: boolean
}

/** A scenario as it is written down: what is left out is the plainest. */
export type ScenarioSketch = Pick<Scenario, 'name' | 'homes' | 'threads'> & Partial<Scenario>

/** One token a millisecond, three at once: all numbers are small and exact. */
export const PLAIN: PolicyNumbers = { unitsPerUs: 1, unitsPerToken: 1000, burst: 3, packed: false }

export function scenario(sketch: ScenarioSketch): Scenario {
  return { policy: PLAIN, lines: 1, entriesPerLine: 1, denyWhenFull: false, before: [], mayRefuse: false, movesBase: false, ...sketch }
}

/** The scenario with state words of the other form, throughout. */
export function withPacked(plain: Scenario, packed: boolean): Scenario {
  const repacked = (call: Call): Call => (call.policy === undefined ? call : { ...call, policy: { ...call.policy, packed } })
  return {
    ...plain,
    policy: { ...plain.policy, packed },
    before: plain.before.map(repacked),
    threads: plain.threads.map((calls) => calls.map(repacked)),
  }
}

/** The latest clock of all: by it the auditor looks at what is left. */
export function latestUs({ before, threads }: Scenario): number {
  return Math.max(...before.map(({ nowUs }) => nowUs), ...threads.flat().map(({ nowUs }) => nowUs))
}

export function hasVerb({ before, threads }: Scenario, verb: Call['verb']): boolean {
  return [...before, ...threads.flat()].some((call) => call.verb === verb)
}
