import { type ExploredPolicy, PLAIN } from './explored-policy.js'

/**
 * `takeBoth` takes of its key and of `other` together, or of neither. `save` takes a key out, `load` brings one that owes `amount` tokens. Work:
 * `open` holds tokens until `bound`; `add` spends, `renew` holds longer and `finish` closes what was opened before the start.
 */
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
  | 'save'
  | 'load'
  | 'open'
  | 'add'
  | 'renew'
  | 'finish'

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
  /** Of a reservation the longest wait, of a cancel the time that was reserved; of a permit when it expires, of a hold when it ends. Microseconds. */
  readonly bound?: number
  /** Of work: what its hold has left, and to when it is renewed. */
  readonly rest?: number
  readonly toUs?: number
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

// Keys, and three moments. At EARLIER + 9 ms everything spent EARLIER has come back; LATER lies three tokens after NOW.
export const A = 0
export const B = 1
export const C = 2
export const D = 3
export const EARLIER = 1_000
export const NOW = 10_000
export const LATER = 13_000

/** Half the rate, two at once. */
export const STRICTER: ExploredPolicy = { ...PLAIN, unitsPerToken: 2000, burst: 2 }
/** Thrice the rate, four at once, in units of a third of a microsecond. */
export const LOOSER: ExploredPolicy = { ...PLAIN, unitsPerUs: 3, burst: 4 }
export const FORTNIGHT_US = 14 * 86_400e6

export const call = (verb: Verb, key: number, nowUs: number, amount: number): Call => ({ verb, key, nowUs, amount })
export const take = (key: number, nowUs = NOW, amount = 1): Call => call('take', key, nowUs, amount)
export const peek = (key: number, nowUs = NOW): Call => call('peek', key, nowUs, 0)
export const reset = (key: number, nowUs = NOW): Call => call('reset', key, nowUs, 0)
export const refund = (key: number, nowUs: number, amount = 1): Call => call('refund', key, nowUs, amount)
export const penalize = (key: number, nowUs: number, amount = 1): Call => call('penalize', key, nowUs, amount)
export const takeBoth = (key: number, other: number, nowUs = NOW, amount = 1): Call => ({ ...call('takeBoth', key, nowUs, amount), other })
/** A take up to 50 ms ahead. */
export const reserve = (key: number, nowUs: number, amount = 1): Call => ({ ...call('reserve', key, nowUs, amount), bound: 50_000 })
export const cancel = (key: number, nowUs: number, bound: number, amount = 1): Call => ({ ...call('cancel', key, nowUs, amount), bound })
/** Of the permit that the thread was given last. */
export const release = (key: number, nowUs: number): Call => call('release', key, nowUs, 1)
export const heartbeat = (key: number, nowUs: number): Call => call('heartbeat', key, nowUs, 1)
/** The same about one of the permits that were given before the start. */
export const about = (permit: Call, nth: number, untilUs: number): Call => ({ ...permit, nth, bound: untilUs })
export const save = (key: number, nowUs = NOW): Call => call('save', key, nowUs, 0)
export const load = (key: number, nowUs = NOW, amount = 1): Call => call('load', key, nowUs, amount)
export const open = (key: number, nowUs: number, amount: number, bound: number): Call => ({ ...call('open', key, nowUs, amount), bound })
/** Of the hold that was opened as number `nth` before the start. */
export const add = (key: number, nowUs: number, amount: number, of: HoldOf): Call => ({ ...call('add', key, nowUs, amount), ...of })
export const finish = (key: number, nowUs: number, amount: number, of: HoldOf): Call => ({ ...call('finish', key, nowUs, amount), ...of })
export const renew = (key: number, nowUs: number, toUs: number, of: HoldOf): Call => ({ ...call('renew', key, nowUs, 0), ...of, toUs })
/** Which hold, what it has left, and its end. */
export type HoldOf = Required<Pick<Call, 'nth' | 'rest' | 'bound'>>
export const block = (key: number, us: number): Call => call('block', key, NOW, us)
export const update = (policy: ExploredPolicy, nowUs = NOW): Call => ({ verb: 'update', key: A, nowUs, amount: 0, policy })
