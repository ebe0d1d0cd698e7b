import type { ExploredPolicy } from './explored-policy.js'

/** `takeBoth` takes of its key and of `other` together, or of neither. */
export type Verb =
  | 'take'
  | 'peek'
  | 'refund'
  | 'penalize'
  | 'reset'
  | 'block'
  | 'update'
  | 'reserve'
  | 'cancel'
  | 'takeBoth'
  | 'release'
  | 'heartbeat'

/** One call into the core. */
export interface Call {
  readonly verb: Verb
  /** Index into the scenario's keys; of no meaning to an update. */
  readonly key: number
  /** The caller's clock, in microseconds. */
  readonly nowUs: number
  /** Tokens; of a block microseconds. */
  readonly amount: number
  readonly policy?: ExploredPolicy
  readonly other?: number
  /** Of a reservation the longest wait, of a cancel the time that was reserved; of a permit when it expires. Microseconds. */
  readonly bound?: number
  /** Of the permits that were given before the start this one. Without it, the one that the thread was given last is meant. */
  readonly nth?: number
}

/** Reasons of the core for an answer that is not a number, by name. */
export type Why = 'answered' | 'REFUSED' | 'BANNED' | 'CONTENDED' | 'LATE' | 'EVICTED' | 'OVERFLOWED'

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
  /** What it returned beside its value, see `Step`; NaN for nothing. */
  readonly more: number
  /** What the key that was forgotten for this one owed; -1: none was, as far as the call says. */
  readonly forgotten: number
}

/** One line for a report. */
export function describeOutcome({ call, thread, began, ended, why, value, more, forgotten }: Outcome): string {
  const what = `${call.verb}(${'ABCDEFGH'[call.key] ?? '?'}, ${call.amount}) at ${call.nowUs}`
  const extra = Number.isNaN(more) ? '' : ` and ${more}`
  const answer = ended === Number.POSITIVE_INFINITY ? 'stopped for good' : `${why === 'answered' ? '' : `${why} `}${value}${extra}`
  return `thread ${thread} [${began}-${ended}] ${what} -> ${answer}${forgotten >= 0 ? `, forgot ${forgotten}` : ''}`
}
