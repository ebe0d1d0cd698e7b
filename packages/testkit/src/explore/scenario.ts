import type { Call } from './call.js'
import { type ExploredPolicy, PLAIN } from './explored-policy.js'
import type { OverflowTerms } from './ledger.js'

/** What the encodings differ in, in which a question is asked. */
type EncodingOfPolicy = Partial<Pick<ExploredPolicy, 'encoding'>>

/** Threads that call into one small table, and how it was furnished for them. */
export interface Scenario {
  /** The question: who does what at once. */
  readonly name: string
  readonly policy: ExploredPolicy
  readonly encodings: readonly EncodingOfPolicy[]
  /** Table lines; a key's range is all of them, from its home on. */
  readonly lines: number
  readonly entriesPerLine: number
  /** Lines of the first part of the table, and of the second; the rest are the third's. Undefined: the table has one part. */
  readonly parts: readonly [number, number] | undefined
  /** What new keys without room are counted by; undefined: they are denied. */
  readonly overflow: OverflowTerms | undefined
  readonly denyWhenFull: boolean
  /** By key: how far into the table its home lies, 0 to 1 exclusive. */
  readonly homes: readonly number[]
  /** Calls made one after another before the threads start. */
  readonly before: readonly Call[]
  /** By thread, the calls it makes. */
  readonly threads: readonly (readonly Call[])[]
  /** Whether a new key may find no room. */
  readonly mayRefuse: boolean
  /** Whether a clock runs so far that the core moves its time base. */
  readonly movesBase: boolean
}

/** A scenario as it is written down: what is left out is the plainest, and all keys have one home. */
export type Ask = (name: string, before: Scenario['before'], threads: Scenario['threads'], others?: Partial<Scenario>) => Scenario

const RATES: readonly EncodingOfPolicy[] = [{ encoding: 'ARRIVAL' }, { encoding: 'BUCKET' }]

export const scenario: Ask = (name, before, threads, others) => {
  const keys = [...before, ...threads.flat()].map(({ key, other = 0 }) => Math.max(key, other))
  return {
    name,
    before,
    threads,
    homes: Array<number>(Math.max(...keys) + 1).fill(0),
    policy: PLAIN,
    encodings: RATES,
    lines: 1,
    entriesPerLine: 1,
    parts: undefined,
    overflow: undefined,
    denyWhenFull: false,
    mayRefuse: false,
    movesBase: false,
    ...others,
  }
}

/** Scenarios of one group, which differ from the plainest in `common`. */
export function askOf(group: string, common: Partial<Scenario>): Ask {
  return (name, before, threads, others) => scenario(`${group}: ${name}`, before, threads, { ...common, ...others })
}

/** The same question in every encoding of the state word that it is asked of. */
export function inEachEncoding(scenario: Scenario): Scenario[] {
  return scenario.encodings.map((encoding) => withEncoding(scenario, encoding))
}

function withEncoding(plain: Scenario, encoding: EncodingOfPolicy): Scenario {
  const changed = (call: Call): Call => (call.policy === undefined ? call : { ...call, policy: { ...call.policy, ...encoding } })
  return {
    ...plain,
    policy: { ...plain.policy, ...encoding },
    before: plain.before.map(changed),
    threads: plain.threads.map((calls) => calls.map(changed)),
  }
}

/** The latest clock of all: by it the auditor looks at what is left. */
export function latestUs({ before, threads }: Scenario): number {
  return Math.max(...before.map(({ nowUs }) => nowUs), ...threads.flat().map(({ nowUs }) => nowUs))
}

export function hasVerb({ before, threads }: Scenario, verb: Call['verb']): boolean {
  return [...before, ...threads.flat()].some((call) => call.verb === verb)
}
