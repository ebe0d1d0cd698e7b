import type { Call, Outcome } from './call.js'
import { applied, blocked, blockLeft, debtOf, type Ledger, NEVER, updated, withoutKey } from './ledger.js'

// Is there an order in which the calls, one after another, give exactly the answers that they gave at once? One that keeps a call
// that had ended before another began. Answers carry the key's debt to the unit, so a lost or a doubled charge, one that
// landed on another key, or one by a wrong clock leaves no such order.
//
// Reference: M. Herlihy, J. Wing, "Linearizability: a correctness condition for concurrent objects", 1990.

/** What a schedule produced, and what it started from. */
export interface History {
  readonly before: Ledger
  readonly outcomes: readonly Outcome[]
  /** Latest time by which a key had been forgotten at the start, in microseconds. */
  readonly takeoverHighUs: number
  /** Keys forgotten in debt, as the core counted them. */
  readonly evictions: number
  /** Evictions that a thread was stopped before it could count. */
  readonly uncounted: number
  /** Whether newcomers may find no room. */
  readonly mayRefuse: boolean
}

/** A call, or the look of a take at its key's block, which is a moment of its own. */
interface Moment {
  readonly outcome: Outcome
  readonly isLook: boolean
}

/** Where an order that explains the history leads; undefined when none does. */
export function explanation(history: History): Ledger | undefined {
  const blocks = history.outcomes.some(({ call }) => call.verb === 'block') || history.before.blockedUntil.some((us) => us !== NEVER)
  const moments = history.outcomes.flatMap((outcome): Moment[] => {
    const own = { outcome, isLook: false }
    return blocks && outcome.call.verb === 'take' ? [{ outcome, isLook: true }, own] : [own]
  })
  return explains(history, history.before, moments, history.evictions, history.uncounted)
}

function explains(history: History, ledger: Ledger, waiting: readonly Moment[], evictions: number, uncounted: number): Ledger | undefined {
  if (waiting.every(({ outcome }) => outcome.ended === Number.POSITIVE_INFINITY) && evictions === 0) return ledger
  for (const moment of waiting) {
    if (!hasBegun(moment, waiting)) continue
    const rest = waiting.filter((other) => other !== moment)
    for (const after of meanings(history, ledger, moment)) {
      const end = explains(history, after, rest, evictions, uncounted)
      if (end !== undefined) return end
    }
  }
  return afterForgetting(history, ledger, waiting, evictions, uncounted)
}

/** A newcomer forgot a key that owed something, but would have passed (I7). */
function afterForgetting(
  history: History,
  ledger: Ledger,
  waiting: readonly Moment[],
  evictions: number,
  uncounted: number,
): Ledger | undefined {
  if (evictions + uncounted === 0) return undefined
  for (let key = 0; key < ledger.paidAt.length; key++) {
    if (ledger.paidAt[key] === NEVER) continue
    if (!waiting.some((moment) => hasBegun(moment, waiting) && mayForget(ledger, key, moment.outcome))) continue
    const counted = evictions > 0 ? 1 : 0
    const end = explains(history, withoutKey(ledger, key), waiting, evictions - counted, uncounted - (1 - counted))
    if (end !== undefined) return end
  }
  return undefined
}

function mayForget(ledger: Ledger, key: number, { call }: Outcome): boolean {
  if (call.key === key) return false
  const { unitsPerToken, burst } = ledger.policy
  const debt = debtOf(ledger, key, call.nowUs, NEVER)
  return debt > 0 && debt + unitsPerToken <= burst * unitsPerToken
}

/** Whether nothing that is still to come has to come before it. */
function hasBegun(moment: Moment, waiting: readonly Moment[]): boolean {
  return !waiting.some((other) => other !== moment && comesFirst(other, moment))
}

function comesFirst(a: Moment, b: Moment): boolean {
  if (a.outcome === b.outcome) return a.isLook
  return a.outcome.ended < b.outcome.began || (a.outcome.thread === b.outcome.thread && a.outcome.began < b.outcome.began)
}

/** The ledgers that a moment may leave behind, given what it answered. None: it can't come here. */
function meanings(history: History, ledger: Ledger, { outcome, isLook }: Moment): Ledger[] {
  const { call, why, value } = outcome
  const open = outcome.ended === Number.POSITIVE_INFINITY
  if (isLook) {
    const left = blockLeft(ledger, call.key, call.nowUs)
    return open || left === (why === 'BLOCKED' ? value : 0) ? [ledger] : []
  }
  if (why === 'BLOCKED') return [ledger]
  if (why === 'CONTENDED') return []
  if (why === 'REFUSED' && !open) return history.mayRefuse && value >= 1 ? [ledger] : []
  if (call.verb === 'update') return [updated(ledger, call)]
  if (call.verb === 'block') {
    const after = blocked(ledger, call)
    return open || value === blockLeft(after, call.key, call.nowUs) ? [after] : []
  }
  return ordinary(history, ledger, outcome, open)
}

function ordinary(history: History, ledger: Ledger, { call, why, value }: Outcome, open: boolean): Ledger[] {
  const found: Ledger[] = []
  for (const debt of debtsOf(history, ledger, call)) {
    const { after, debt: next, denied } = applied(ledger, call, debt)
    const fits = why === 'LATE' ? denied && debt > 0 && value === debt : value === (denied ? -1 - next : next)
    if (open || fits) found.push(after)
  }
  return found
}

/**
 * What the key may owe: what is written; or, when it is unknown or was forgotten because it owed nothing, as much as the latest time
 * by which a key was forgotten lies ahead. That time may be of any call, so this is generous; that nothing is admitted above the
 * burst in any interval is checked apart.
 */
function debtsOf(history: History, ledger: Ledger, call: Call): Set<number> {
  const debts = new Set<number>()
  const paid = ledger.paidAt[call.key] as number
  if (paid !== NEVER || history.takeoverHighUs === NEVER) debts.add(debtOf(ledger, call.key, call.nowUs, NEVER))
  const times = [history.takeoverHighUs, ...history.outcomes.map(({ call: other }) => other.nowUs)]
  for (const sinceUs of times) {
    if (sinceUs < history.takeoverHighUs || sinceUs === NEVER || sinceUs * ledger.policy.unitsPerUs < paid) continue
    debts.add(debtOf({ ...ledger, paidAt: ledger.paidAt.with(call.key, NEVER) }, call.key, call.nowUs, sinceUs))
  }
  return debts
}
