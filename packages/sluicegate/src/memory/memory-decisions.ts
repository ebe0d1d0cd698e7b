import { checkedCost } from '../arguments.js'
import type { Decision } from '../decision/decision.js'
import { DecisionCounter } from '../decision/decision-counts.js'
import { CountDecoder, type DecisionDecoder, RateDecoder } from '../decision/decision-decoder.js'
import { contentions, type EvictionEvent, evictions, publishDenial, type TableFullEvent, tablesFull } from '../decision/diagnostics.js'
import { contentionError, StoreError } from '../errors.js'
import type { HeldKeys } from '../holds/held-keys.js'
import type { KeyHolds } from '../holds/key-holds.js'
import { minuteWindow } from '../policy/calendar.js'
import type { Policy } from '../policy/policy.js'
import type { Ticker } from '../time/clock.js'
import { warnOnce } from '../warn-once.js'
import type { CoreHost, OpenCore } from './open-core.js'
import { calendarIn, PolicyChange, publishedPolicy } from './policy-record.js'

/** Takes per call because of an early clock reading. */
const MOST_READINGS = 8
/** Looks at a clock until it has moved: more than a microsecond of them. */
const MOST_CLOCK_READS = 64
/** A later reading in this call cannot help a take that is denied for longer. */
const NEAR_MS = 1

/**
 * The clock reading with which to repeat a take. It was `denied` only because another thread changed the key at a later reading than `nowUs`:
 * that thread read its clock later, or its clock is a microsecond ahead. A new reading nearly always solves this. After a step back of the
 * clock, or where tokens are booked ahead, it cannot. Undefined: the take stays denied.
 *
 * @param readings how often the call has read its clock for that.
 */
export function laterReading(ticker: Ticker, nowUs: number, readings: number, denied: Decision): number | undefined {
  const isNear = denied.retryAfterMs <= NEAR_MS
  if (readings > 0 && (readings >= MOST_READINGS || !isNear)) return undefined
  for (let reads = isNear ? MOST_CLOCK_READS : 1; reads > 0; reads--) {
    const laterUs = ticker.read()
    if (laterUs > nowUs) return laterUs
  }
  return undefined
}

/** At most what the core reads as a cost: above every burst. */
function fittingCost(cost: number): number {
  return Math.min(cost, 2 ** 31 - 1)
}

/** A decision with what is held counted as spent. */
export function besideHolds(decision: Decision, { total, lastUs }: KeyHolds, nowUs: number): Decision {
  const { remaining, resetAfterMs } = decision
  return {
    ...decision,
    remaining: Math.max(0, remaining - total),
    resetAfterMs: Math.max(resetAfterMs, Math.ceil((lastUs - nowUs) / 1000)),
  }
}

const warn = /* @__PURE__ */ warnOnce<'SLUICEGATE_TABLE_FULL'>()

/**
 * Events of the table: evictions and new keys without room. A subscriber may call the core again, so events are held back until the
 * result of the current call has been read.
 */
class TableEvents {
  private pending: (() => void)[] = []

  /** Making room for `key` has evicted a key with a debt of `tokens`. */
  evicted(policy: string, key: string, tokens: () => number): void {
    if (!evictions.hasSubscribers) return
    const event: EvictionEvent = { policy, key, tokens: tokens() }
    this.pending.push(() => evictions.publish(event))
  }

  /** The table has no room for `key`. Warns once in a process. @param keys how many keys the table tracks. */
  full(policy: string, key: string, allowed: boolean, keys: () => number): void {
    warn(
      'SLUICEGATE_TABLE_FULL',
      () =>
        `limiter "${policy}" has no room for a new key: it tracks ${keys()} keys, and those near the new one are all being denied. ` +
        'New keys now share a small budget or are denied. Raise maxKeys, or choose a coarser key',
    )
    if (!tablesFull.hasSubscribers) return
    const event: TableFullEvent = { policy, key, allowed }
    this.pending.push(() => tablesFull.publish(event))
  }

  /** Publishes the events of the current call. Call it last. */
  publish(): void {
    const { pending } = this
    if (pending.length === 0) return
    this.pending = []
    for (const publish of pending) publish()
  }
}

/**
 * What a piece of open work is charged as: of what is free, of its hold, as debt that its policy allows, or used already. What is held or used is
 * charged although it is not there.
 */
export type ChargedAs = 'free' | 'held' | 'debt' | 'used'

/**
 * Decisions about keys whose fingerprints are known: calls of the core, decoded into decisions or errors. One section of a shared memory, one
 * thread.
 */
export class MemoryDecisions {
  readonly opened: OpenCore
  readonly ticker: Ticker
  readonly events = new TableEvents()
  /** Set anew by the core's first callback, when it opens. */
  decoder!: DecisionDecoder
  readonly counter = new DecisionCounter()
  /** Grows with each change of the policy's numbers. */
  generation = 0
  /** Of the last decision of {@link takeAt} that allowed: the table had no room for the key. */
  isOverflow = false
  /** Of work that is open in this thread; undefined until the first. */
  held: HeldKeys | undefined
  /** Whether other threads have this memory: they do not know what is held here. */
  isShared: boolean
  /** Called after this thread has released something that others may wait for. */
  onRelease: (key: string) => void = () => undefined

  /** Initializes the section with `policy`, or joins one that another thread has initialized. */
  constructor(open: (host: CoreHost) => OpenCore, ticker: Ticker, policy?: Policy) {
    this.ticker = ticker
    this.isShared = policy === undefined
    this.opened = open({
      policyChanged: () => {
        const published = publishedPolicy(this.opened)
        // If undefined, the core calls again for a later policy.
        if (published === undefined) return
        this.generation = this.opened.field(this.opened.core.policyRecord(), 'RECORD_GENERATION')
        // What is in force when the core opens is the policy that was given: callers compare it by identity.
        const known = this.decoder?.policy
        this.decoder = this.decoderFor(JSON.stringify(known) === JSON.stringify(published) ? (known as Policy) : published)
      },
      calendarWindowStart: (record, us) => minuteWindow(calendarIn(this.opened, record), us).startUs,
      calendarWindowEnd: (record, us) => minuteWindow(calendarIn(this.opened, record), us).endUs,
    })
    if (policy !== undefined) this.decoder = this.decoderFor(policy)
    this.opened.begin(() => {
      const { core, section } = this.opened
      if (policy === undefined) core.attach(section)
      else new PolicyChange(this.opened, policy).publish(this.nowUs())
      // `take` of the core is the fast path of buckets and GCRA; the other algorithms need `takeAny`.
      if (!(this.decoder instanceof RateDecoder)) core.take = core.takeAny
    })
  }

  /** Decides in the core: an answer >= 0 is the debt after an allowed take. */
  take(key: string, low: number, high: number, cost: number): Decision {
    const tokens = typeof cost === 'number' && (cost | 0) === cost && cost > 0 ? cost : checkedCost(cost)
    const nowUs = this.nowUs()
    if (this.held !== undefined) return this.takeAt(nowUs, key, low, high, tokens)
    const answer = this.opened.core.take(low, high, nowUs, tokens)
    if (!(answer >= 0)) return this.notAllowed(key, low, high, nowUs, tokens, answer)
    this.counter.allowed++
    return this.decoder.allowed(answer)
  }

  /** {@link take} by a given reading of the clock. */
  takeAt(nowUs: number, key: string, low: number, high: number, cost: number): Decision {
    const tokens = checkedCost(cost)
    const holds = this.held?.of(key, nowUs)
    if (holds !== undefined) {
      const beside = this.peekBeside(holds, key, low, high, tokens, nowUs)
      if (!beside.allowed) return this.denied(key, tokens, beside)
    }
    const answer = this.opened.core.take(low, high, nowUs, tokens)
    this.isOverflow = Number.isNaN(answer) && this.opened.reason() === 'OVERFLOWED'
    if (!(answer >= 0)) return this.notAllowed(key, low, high, nowUs, tokens, answer)
    this.counter.allowed++
    const decision = this.decoder.allowed(answer)
    return holds === undefined ? decision : besideHolds(decision, holds, nowUs)
  }

  /** A negative answer is -1 minus the debt of a denied take; NaN has its own reason. */
  private notAllowed(key: string, low: number, high: number, nowUs: number, cost: number, answer: number): Decision {
    const decision =
      answer < 0
        ? this.decoder.denied(-1 - answer, cost)
        : this.withPermit(this.decisionForReason(key, low, high, nowUs, cost), key, low, high, cost)
    return this.denied(key, cost, decision)
  }

  private denied(key: string, cost: number, decision: Decision): Decision {
    this.counter.count(decision)
    this.events.publish()
    publishDenial(key, cost, decision)
    return decision
  }

  /** A take that the core answered with a reason instead of a debt. */
  decisionForReason(key: string, low: number, high: number, nowUs: number, cost: number): Decision {
    const detail = this.opened.core.detailOfUnanswered()
    switch (this.opened.reason()) {
      case 'EVICTED':
        this.noteEviction(key)
        return detail >= 0 ? this.decoder.allowed(detail) : this.decoder.denied(-1 - detail, cost)
      case 'BANNED':
        return this.decoder.foreseen(this.answered(this.opened.core.peek(low, high, nowUs, cost), key), cost, Math.ceil(detail / 1000))
      case 'LATE':
        return this.takenLater(key, low, high, nowUs, cost)
      case 'REFUSED':
        return this.withoutRoom(key, this.decoder.refused(cost, Math.ceil(detail / 1000)))
      case 'OVERFLOWED':
        return this.withoutRoom(key, this.decoder.overflowed(Math.ceil(detail / 1000)))
      case 'CONTENDED':
        throw this.contended(key)
    }
  }

  /** A take that the core denied because the key was changed, or another evicted, at a later clock reading. */
  private takenLater(key: string, low: number, high: number, nowUs: number, cost: number): Decision {
    let readUs = nowUs
    for (let readings = 0; ; readings++) {
      const denied = this.decoder.denied(this.opened.core.detailOfUnanswered(), cost)
      const laterUs = laterReading(this.ticker, readUs, readings, denied)
      if (laterUs === undefined) return denied
      readUs = laterUs
      const answer = this.opened.core.take(low, high, readUs, cost)
      if (answer >= 0) return this.decoder.allowed(answer)
      if (answer < 0) return this.decoder.denied(-1 - answer, cost)
      if (this.opened.reason() !== 'LATE') return this.decisionForReason(key, low, high, readUs, cost)
    }
  }

  /** The answer for a new key that found no room. */
  private withoutRoom(key: string, decision: Decision): Decision {
    this.events.full(this.decoder.policy.name, key, decision.allowed, () => this.opened.counters().keys)
    return decision
  }

  noteEviction(key: string): void {
    const { core } = this.opened
    this.events.evicted(this.decoder.policy.name, key, () => core.forgotten() / this.decoder.unitsPerToken)
  }

  /** The decision with its permit, if the policy gives permits. Call it before the next call of the core. */
  withPermit(decision: Decision, _key: string, _low: number, _high: number, _cost: number): Decision {
    return decision
  }

  private contended(key: string): StoreError {
    if (contentions.hasSubscribers) contentions.publish({ policy: this.decoder.policy.name, key })
    return contentionError()
  }

  /** Peek, for a key whose fingerprint is known. */
  peek(key: string, low: number, high: number, cost: number, nowUs = this.nowUs()): Decision {
    const holds = this.held?.of(key, nowUs)
    return holds === undefined
      ? this.peekAlone(key, low, high, cost, nowUs)
      : this.peekBeside(holds, key, low, high, checkedCost(cost), nowUs)
  }

  /** What a take of `cost` gets beside what is held of the key. */
  peekBeside(holds: KeyHolds, key: string, low: number, high: number, cost: number, nowUs: number): Decision {
    const decision = besideHolds(this.peekAlone(key, low, high, fittingCost(holds.total + cost), nowUs), holds, nowUs)
    if (decision.allowed) return decision
    // The soonest time at which so many holds have ended by themselves, and the rest and the take fit beside what is spent.
    let soonestMs = decision.retryAfterMs
    for (const [fromUs, held] of holds.falls(nowUs)) {
      const fromMs = Math.ceil((fromUs - nowUs) / 1000)
      if (fromMs >= soonestMs) break
      const { retryAfterMs } = this.peekAlone(key, low, high, fittingCost(held + cost), nowUs)
      soonestMs = Math.min(soonestMs, Math.max(fromMs, retryAfterMs))
    }
    return { ...decision, retryAfterMs: soonestMs }
  }

  /** Charges a piece of open work, which nobody sees as a decision. False: nothing was charged. */
  charge(key: string, low: number, high: number, nowUs: number, cost: number, as: ChargedAs): boolean {
    const answer = this.opened.core.take(low, high, nowUs, fittingCost(cost))
    return answer >= 0 || this.chargedBeyond(key, low, high, nowUs, cost, as, answer)
  }

  private chargedBeyond(key: string, low: number, high: number, nowUs: number, cost: number, as: ChargedAs, answer: number): boolean {
    const { core } = this.opened
    if (Number.isNaN(answer)) {
      const reason = this.opened.reason()
      if (reason === 'CONTENDED') throw this.contended(key)
      if (reason === 'EVICTED') this.noteEviction(key)
      if (reason === 'OVERFLOWED' || (reason === 'EVICTED' && core.detailOfUnanswered() >= 0)) return true
      // A new key finds no room, or an operator has closed this one.
      if (reason === 'REFUSED' || (reason === 'BANNED' && as !== 'used')) return false
    }
    if (as === 'free' || (as === 'held' && this.isShared)) return false
    this.answered(core.penalize(low, high, nowUs, cost), key)
    return true
  }

  /** Takes a charge of the same reading back. */
  uncharge(low: number, high: number, nowUs: number, cost: number): void {
    this.opened.core.refund(low, high, nowUs, cost)
  }

  /** {@link peek}, whatever is held. */
  peekAlone(key: string, low: number, high: number, cost: number, nowUs: number): Decision {
    const tokens = checkedCost(cost)
    const debt = this.answered(this.opened.core.peek(low, high, nowUs, tokens), key)
    const blockMs = Math.ceil(this.answered(this.opened.core.banLeft(low, high, nowUs), key) / 1000)
    return this.decoder.foreseen(debt, tokens, blockMs)
  }

  /** The answer of any other call. @throws {StoreError} `TABLE_FULL` or `CONTENTION` if there is none. */
  answered(answer: number, key: string): number {
    if (answer >= 0) return answer
    const reason = this.opened.reason()
    if (reason === 'REFUSED') {
      throw new StoreError('TABLE_FULL', 'the table has no room for this key, because every key near it has debt: raise maxKeys')
    }
    if (reason !== 'EVICTED') throw this.contended(key)
    this.noteEviction(key)
    return this.opened.core.detailOfUnanswered()
  }

  /** Microseconds since the Unix epoch, for the core. */
  nowUs(): number {
    const { us } = this.ticker
    return Number.isNaN(us) ? this.ticker.read() : us
  }

  private decoderFor(policy: Policy): DecisionDecoder {
    const isRate = policy.algorithm === 'token-bucket' || policy.algorithm === 'gcra'
    return isRate ? new RateDecoder(policy) : new CountDecoder(policy, this.opened.core)
  }
}
