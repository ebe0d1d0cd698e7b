/** The numbers of a policy that the core counts in. */
export interface PolicyNumbers {
  readonly unitsPerUs: number
  readonly unitsPerToken: number
  readonly burst: number
  /** Whether state words are packed buckets; otherwise they are arrival times. */
  readonly packed: boolean
}

export type Verb = 'take' | 'peek' | 'refund' | 'penalize' | 'reset' | 'block' | 'update'

/** One call into the core. */
export interface Call {
  readonly verb: Verb
  /** Index into the scenario's keys; of no meaning to an update. */
  readonly key: number
  /** The caller's clock, in microseconds. */
  readonly nowUs: number
  /** Tokens; of a block microseconds. */
  readonly amount: number
  readonly policy?: PolicyNumbers
}

/** Reasons of the core for an answer that is not a number, by name. */
export type Why = 'answered' | 'REFUSED' | 'BLOCKED' | 'CONTENDED' | 'LATE' | 'EVICTED'

/** What a call gave, and when: stamps are positions in the schedule, and a call that ended before another began has the smaller one. */
export interface Outcome {
  readonly call: Call
  readonly thread: number
  readonly began: number
  /** Infinity: the thread was stopped for good. */
  readonly ended: number
  readonly why: Why
  /** The debt after the call, -1 - debt of a denied take; otherwise the detail of the reason. */
  readonly value: number
  /** What the key that was forgotten for this one owed; -1: none was, as far as the call says. */
  readonly forgotten: number
}

/** One line for a report. */
export function describeOutcome({ call, thread, began, ended, why, value, forgotten }: Outcome): string {
  const what = `${call.verb}(${'ABCDEFGH'[call.key] ?? '?'}, ${call.amount}) at ${call.nowUs}`
  const answer = ended === Number.POSITIVE_INFINITY ? 'stopped for good' : `${why === 'answered' ? '' : `${why} `}${value}`
  return `thread ${thread} [${began}-${ended}] ${what} -> ${answer}${forgotten >= 0 ? `, forgot ${forgotten}` : ''}`
}
