import { checkedCost } from '../arguments.js'
import type { Decision } from '../decision/decision.js'
import { DecisionCounter } from '../decision/decision-counts.js'
import { CountDecoder, type DecisionDecoder, RateDecoder } from '../decision/decision-decoder.js'
import { contentions, evictions, publishDenial, tablesFull } from '../decision/diagnostics.js'
import { contentionError, StoreError } from '../errors.js'
import { minuteWindow } from '../policy/calendar.js'
import { isRate, type Policy } from '../policy/policy.js'
import type { Ticker } from '../time/clock.js'
import { warnOnce } from '../warn-once.js'
import { type CoreHost, closedCore, type OpenCore } from './open-core.js'
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
    const event = { policy, key, tokens: tokens() }
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
    const event = { policy, key, allowed }
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
  /** Called after this thread has released something that others may wait for. */
  onRelease: (key: string) => void = () => undefined

  /** Initializes the section with `policy`, or joins one that another thread has initialized. */
  constructor(open: (host: CoreHost) => OpenCore, ticker: Ticker, policy?: Policy) {
    this.ticker = ticker
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
      else {
        core.setAlone(true)
        new PolicyChange(this.opened, policy).publish(this.nowUs())
      }
      // `take` of the core is the fast path of buckets and GCRA; the other algorithms need `takeAny`.
      if (!(this.decoder instanceof RateDecoder)) this.opened.take = core.takeAny
    })
  }

  /** Decides in the core: an answer >= 0 is the debt after an allowed take. */
  take(key: string, low: number, high: number, cost: number): Decision {
    const isOrdinary = typeof cost === 'number' && (cost | 0) === cost && cost > 0
    if (!isOrdinary) return this.takeAt(this.nowUs(), key, low, high, checkedCost(cost))
    const nowUs = this.nowUs()
    const answer = this.opened.take(low, high, nowUs, cost)
    if (!(answer >= 0)) return this.notAllowed(key, low, high, nowUs, cost, answer)
    this.counter.allowed++
    return this.decoder.allowed(answer)
  }

  /** {@link take} by a given reading of the clock. */
  takeAt(nowUs: number, key: string, low: number, high: number, cost: number): Decision {
    const tokens = checkedCost(cost)
    const answer = this.answerTo(low, high, nowUs, tokens)
    this.isOverflow = Number.isNaN(answer) && this.opened.reason() === 'OVERFLOWED'
    if (!(answer >= 0)) return this.notAllowed(key, low, high, nowUs, tokens, answer)
    this.counter.allowed++
    return this.decoder.allowed(answer)
  }

  /** The core's answer to a take of any cost. */
  private answerTo(low: number, high: number, nowUs: number, tokens: number): number {
    const { opened } = this
    return (tokens | 0) === tokens ? opened.take(low, high, nowUs, tokens) : opened.core.takeMany(low, high, nowUs, tokens)
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
        return this.foreseen(key, low, high, cost, nowUs, true, detail)
      case 'LATE':
        return this.takenLater(key, low, high, nowUs, cost)
      case 'REFUSED':
        return this.withoutRoom(key, this.decoder.refused(cost, Math.ceil(detail / 1000)))
      case 'OVERFLOWED':
        return this.withoutRoom(key, this.decoder.overflowed(Math.ceil(detail / 1000)))
      case 'HELD':
        return detail >= 0 ? this.allowedBesideHolds(detail, nowUs) : this.foreseenBesideHolds(-1 - detail, cost, 0, nowUs)
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
      if (laterUs === undefined) return this.opened.core.heldTokens() > 0 ? this.peek(key, low, high, cost, readUs) : denied
      readUs = laterUs
      const answer = this.answerTo(low, high, readUs, cost)
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

  contended(key: string): StoreError {
    if (contentions.hasSubscribers) contentions.publish({ policy: this.decoder.policy.name, key })
    return contentionError()
  }

  // Beside holds, for the key of the last call.

  /** The decision of an allowed take that leaves this debt. */
  allowedBesideHolds(debt: number, nowUs: number): Decision {
    return this.withoutHeld(this.decoder.allowed(debt), nowUs)
  }

  /** The decision that a take of `cost` would get. @param blockMs remaining ban, 0 for none. */
  foreseenBesideHolds(debt: number, cost: number, blockMs: number, nowUs: number): Decision {
    const { decoder } = this
    const { core } = this.opened
    let held = core.heldTokens()
    const decision = this.withoutHeld(decoder.foreseen(debt, cost + held, blockMs), nowUs)
    if (decision.allowed) return decision
    // The soonest time at which so many holds have ended by themselves, and the rest and the take fit beside what is spent.
    let soonestMs = decision.retryAfterMs
    for (let endUs = core.nextEnd(nowUs); endUs > 0; endUs = core.nextEnd(endUs)) {
      held = Math.max(0, held - core.tokensAtEnd())
      const endMs = Math.ceil((endUs - nowUs) / 1000)
      if (endMs >= soonestMs) break
      soonestMs = Math.min(soonestMs, Math.max(endMs, decoder.foreseen(debt, cost + held, blockMs).retryAfterMs))
    }
    return { ...decision, retryAfterMs: soonestMs }
  }

  /** With what is held counted as spent. */
  private withoutHeld(decision: Decision, nowUs: number): Decision {
    const { core } = this.opened
    const remaining = Math.max(0, decision.remaining - core.heldTokens())
    const resetAfterMs = Math.max(decision.resetAfterMs, Math.ceil((core.heldUntilUs() - nowUs) / 1000))
    return { ...decision, remaining, resetAfterMs }
  }

  /** Peek, for a key whose fingerprint is known. */
  peek(key: string, low: number, high: number, cost: number, nowUs = this.nowUs()): Decision {
    return this.foreseen(key, low, high, checkedCost(cost), nowUs, true)
  }

  /** {@link peek}, whatever is held. */
  peekAlone(key: string, low: number, high: number, cost: number, nowUs: number): Decision {
    return this.foreseen(key, low, high, checkedCost(cost), nowUs, false)
  }

  private foreseen(key: string, low: number, high: number, cost: number, nowUs: number, seesHolds: boolean, blockUs?: number): Decision {
    const { core } = this.opened
    const answer = core.peek(low, high, nowUs, cost)
    const isHeld = seesHolds && Number.isNaN(answer) && this.opened.reason() === 'HELD'
    const debt = this.answered(answer, key)
    const blockMs = Math.ceil((blockUs ?? this.answered(core.banLeft(low, high, nowUs), key)) / 1000)
    return isHeld ? this.foreseenBesideHolds(debt, cost, blockMs, nowUs) : this.decoder.foreseen(debt, cost, blockMs)
  }

  /** The answer of any other call. @throws {StoreError} `TABLE_FULL` or `CONTENTION` if there is none. */
  answered(answer: number, key: string): number {
    if (answer >= 0) return answer
    const reason = this.opened.reason()
    if (reason === 'REFUSED') {
      throw new StoreError('TABLE_FULL', 'the table has no room for this key, because every key near it has debt: raise maxKeys')
    }
    if (reason === 'EVICTED') this.noteEviction(key)
    else if (reason !== 'HELD') throw this.contended(key)
    return this.opened.core.detailOfUnanswered()
  }

  /** Microseconds since the Unix epoch, for the core. */
  nowUs(): number {
    const { us } = this.ticker
    return Number.isNaN(us) ? this.ticker.read() : us
  }

  private decoderFor(policy: Policy): DecisionDecoder {
    if (isRate(policy)) return new RateDecoder(policy)
    // Before it opens nobody asks about the key of a last call.
    return new CountDecoder(policy, this.opened.later === undefined ? this.opened.core : closedCore)
  }
}
