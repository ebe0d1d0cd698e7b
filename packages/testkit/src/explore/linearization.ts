import type { Call, Outcome } from './call.js'
import { isOfHolds, withHolds } from './hold-model.js'
import { banLeft, blocked, type Ledger, NEVER, newModel, overflowed, updated, withKey } from './ledger.js'
import type { KeyModel } from './models.js'

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
  /** Whether new keys may find no room. */
  readonly mayRefuse: boolean
}

/**
 * A call; or what is its own moment before it: the look of a take at its key's block, the closing of a window, the refund of a
 * permit, after which the call only looks.
 */
interface Moment {
  readonly id: number
  readonly outcome: Outcome
  readonly kind: 'own' | 'look' | 'opening' | 'part'
}

/** Where an order that explains the history leads; undefined when none does. */
export function explanation(history: History): Ledger | undefined {
  const blocks = history.outcomes.some(({ call }) => call.verb === 'block') || history.before.blockedUntil.some((us) => us !== NEVER)
  const ofHolds =
    history.outcomes.some(({ call }) => isOfHolds(call)) || history.before.keys.some((model) => model?.isHolding !== undefined)
  let id = 0
  const moments = history.outcomes.flatMap((outcome): Moment[] =>
    [...kindsBefore(outcome, history.before, blocks, ofHolds), 'own' as const].map((kind) => ({ outcome, kind, id: id++ })),
  )
  return new Explaining(history).explains(history.before, moments, history.evictions, history.uncounted)
}

function kindsBefore({ call }: Outcome, { policy }: Ledger, blocks: boolean, ofHolds: boolean): Moment['kind'][] {
  if (blocks && (call.verb === 'take' || call.verb === 'reserve')) return ['look']
  if (ofHolds && call.verb !== 'update') return ['opening']
  if (policy.encoding === 'WIDE' && OPENING_VERBS.has(call.verb)) return call.verb === 'reserve' ? ['opening', 'opening'] : ['opening']
  return policy.encoding === 'CONCURRENCY' && call.verb === 'refund' ? Array<'part'>(call.amount).fill('part') : []
}

const OPENING_VERBS: ReadonlySet<Call['verb']> = new Set(['take', 'reserve', 'penalize', 'takeBoth'])

class Explaining {
  private readonly history: History
  /** Where it has been in vain. */
  private readonly ends = new Set<string>()

  constructor(history: History) {
    this.history = history
  }

  explains(ledger: Ledger, waiting: readonly Moment[], evictions: number, uncounted: number): Ledger | undefined {
    if (waiting.every(({ outcome }) => outcome.ended === Number.POSITIVE_INFINITY) && evictions === 0) return ledger
    const here = JSON.stringify([
      ledger.keys,
      ledger.blockedUntil,
      ledger.policy,
      ledger.overflow,
      evictions,
      uncounted,
      waiting.map(({ id }) => id),
    ])
    if (this.ends.has(here)) return undefined
    for (const moment of waiting) {
      if (!hasBegun(moment, waiting)) continue
      const rest = waiting.filter((other) => other !== moment)
      for (const after of meanings(this.history, ledger, moment)) {
        const end = this.explains(after, rest, evictions, uncounted)
        if (end !== undefined) return end
      }
    }
    const end = this.afterForgetting(ledger, waiting, evictions, uncounted)
    if (end === undefined) this.ends.add(here)
    return end
  }

  /** A new key forgot a key that owed something, but would have passed (I7). */
  private afterForgetting(ledger: Ledger, waiting: readonly Moment[], evictions: number, uncounted: number): Ledger | undefined {
    if (evictions + uncounted === 0) return undefined
    for (let key = 0; key < ledger.keys.length; key++) {
      if (ledger.keys[key] === undefined) continue
      if (!waiting.some((moment) => hasBegun(moment, waiting) && mayForget(ledger, key, moment.outcome))) continue
      const counted = evictions > 0 ? 1 : 0
      const end = this.explains(withKey(ledger, key, undefined), waiting, evictions - counted, uncounted - (1 - counted))
      if (end !== undefined) return end
    }
    return undefined
  }
}

function mayForget(ledger: Ledger, key: number, { call }: Outcome): boolean {
  if (call.key === key || ledger.keys[key]?.isHolding?.(call.nowUs) === true) return false
  const { unitsPerToken, burst } = ledger.policy
  const debt = ledger.keys[key]?.debtAt(call.nowUs) ?? 0
  return debt > 0 && debt + unitsPerToken <= burst * unitsPerToken
}

/** Whether nothing that is still to come has to come before it. */
function hasBegun(moment: Moment, waiting: readonly Moment[]): boolean {
  return !waiting.some((other) => other !== moment && comesFirst(other, moment))
}

function comesFirst(a: Moment, b: Moment): boolean {
  if (a.outcome === b.outcome) return a.kind !== 'own' && b.kind === 'own'
  return a.outcome.ended < b.outcome.began || (a.outcome.thread === b.outcome.thread && a.outcome.began < b.outcome.began)
}

/** The ledgers that a moment may leave behind, given what it answered. None: it can't come here. */
function meanings(history: History, ledger: Ledger, { outcome, kind }: Moment): Ledger[] {
  const { call, why, value } = outcome
  const open = outcome.ended === Number.POSITIVE_INFINITY
  if (kind === 'opening') return opened(ledger, call)
  if (kind === 'part') return ordinary(history, ledger, { ...outcome, call: { ...call, amount: 1 } }, true)
  if (kind === 'look') {
    const left = banLeft(ledger, call.key, call.nowUs)
    return open || left === (why === 'BANNED' ? value : 0) ? [ledger] : []
  }
  if (why === 'BANNED') return [ledger]
  if (why === 'CONTENDED') return []
  if (why === 'REFUSED' && !open) return history.mayRefuse && value >= 1 && withoutRoom(ledger, call) === undefined ? [ledger] : []
  if (why === 'OVERFLOWED') {
    const passed = withoutRoom(ledger, call)
    return passed !== undefined && value === passed.newUs ? [{ ...ledger, overflow: passed.after }] : []
  }
  if (open && ledger.overflow !== undefined && call.verb === 'take') {
    const passed = withoutRoom(ledger, call)
    return [...ordinary(history, ledger, outcome, open), ...(passed === undefined ? [] : [{ ...ledger, overflow: passed.after }])]
  }
  if (call.verb === 'update') return [updated(ledger, call)]
  if (call.verb === 'block') {
    const after = blocked(ledger, call)
    return open || value === banLeft(after, call.key, call.nowUs) ? [after] : []
  }
  if (call.verb === 'refund' && ledger.policy.encoding === 'CONCURRENCY')
    return ordinary(history, ledger, { ...outcome, call: { ...call, verb: 'peek' } }, open)
  if (call.verb === 'takeBoth') return together(history, ledger, outcome, open)
  return ordinary(history, ledger, outcome, open)
}

/** What becomes of a take of a new key without room; undefined when it is denied. */
function withoutRoom({ overflow, policy }: Ledger, call: Call): ReturnType<typeof overflowed> {
  return overflow === undefined || call.verb !== 'take' ? undefined : overflowed(overflow, policy, call)
}

/** A call need not have opened a window before it counted; of two keys it may have opened either's. */
function opened(ledger: Ledger, call: Call): Ledger[] {
  return [call.key, ...(call.other === undefined ? [] : [call.other])].reduce<Ledger[]>(
    (ledgers, key) =>
      ledgers.flatMap((one) => {
        const model = one.keys[key]
        const after = model?.opened?.(call)
        return after === undefined || after === model ? [one] : [one, withKey(one, key, after)]
      }),
    [ledger],
  )
}

function ordinary(history: History, ledger: Ledger, { call, why, value, more }: Outcome, open: boolean): Ledger[] {
  const isPermits = call.verb === 'release' || call.verb === 'heartbeat'
  // It held no permit to begin with.
  if (isPermits && call.bound === undefined) return open || value === 0 ? [ledger] : []
  return modelsOf(history, ledger, call.key, call.nowUs).flatMap((model) => {
    const step = isOfHolds(call) ? withHolds(model, ledger.policy).step(call) : model.step(call)
    const isDenied = step.denied === true
    const isExtraEqual = Number.isNaN(more) || step.more === undefined || step.more === more
    const answered = isExtraEqual && value === (isDenied ? -1 - step.value : step.value)
    const fits = why === 'LATE' ? isDenied && step.value > 0 && value === step.value : answered
    if (!open && !fits) return []
    return [step.after === model ? ledger : withKey(ledger, call.key, step.after)]
  })
}

/** Takes of two keys: both, or neither because one of them (`more` says which) is denied. */
function together(history: History, ledger: Ledger, outcome: Outcome, open: boolean): Ledger[] {
  const { call, value, more } = outcome
  const one: Outcome = { ...outcome, call: { ...call, verb: 'take' }, more: Number.NaN }
  const two: Outcome = { ...one, call: { ...one.call, key: call.other as number } }
  if (!open && value < 0) return ordinary(history, ledger, more === 0 ? one : two, false)
  const passes = (key: number, after: Ledger): boolean => after.keys[key] !== ledger.keys[key]
  return ordinary(history, ledger, one, open)
    .filter((after) => passes(one.call.key, after))
    .flatMap((after) => ordinary(history, after, { ...two, value: more }, open))
    .filter((after) => passes(two.call.key, after))
}

/**
 * How the key may stand: as is written; or, when it is unknown or was forgotten because it owed nothing, as one that counts from the
 * latest time by which a key was forgotten. That time may be of any call, so this is generous; that nothing is admitted above the
 * burst in any interval is checked apart.
 */
function modelsOf(history: History, ledger: Ledger, key: number, nowUs: number): KeyModel[] {
  const known = ledger.keys[key]
  const found: KeyModel[] = []
  if (known !== undefined) found.push(known)
  else if (history.takeoverHighUs === NEVER) found.push(newModel(ledger.policy, nowUs))
  const since = new Set<number>()
  for (const us of [history.takeoverHighUs, ...history.outcomes.map(({ call }) => call.nowUs)]) {
    if (us < history.takeoverHighUs || us === NEVER || (known?.debtAt(us) ?? 0) > 0) continue
    since.add(Math.max(us, nowUs))
  }
  return [...found, ...Array.from(since, (us) => newModel(ledger.policy, us))]
}
