import { checkedCost } from '../arguments.js'
import { type Clock, type Ticker, tickerOf } from '../clock.js'
import type { Decision } from '../decision.js'
import { contentions, type EvictionEvent, evictions, type TableFullEvent, tablesFull, publishDenial } from '../diagnostics.js'
import { StoreError } from '../errors.js'
import { minuteWindow } from '../policy/calendar.js'
import { CountDecoder, RateDecoder, type DecisionDecoder } from '../policy/decision-decoder.js'
import type { Policy } from '../policy/policy.js'
import { QueuedLimiter } from '../queue/create-queue.js'
import type { CoreHost } from './core.js'
import { warnOfFullTable } from './full-table-warning.js'
import { laterReading } from './later-reading.js'
import type { OpenCore } from './open-core.js'
import { calendarIn, PolicyChange, publishedPolicy } from './policy-record.js'

/** What a limiter in memory is made of; `open` gives it this thread's core. */
export interface MemoryLimiterParts {
  readonly open: (host: CoreHost) => OpenCore
  readonly secret: readonly [number, number]
  readonly clock: Clock
  /** Size of the top lists; 0 for none. */
  readonly hotKeys: number
  /** How many may wait at once. */
  readonly maxWaiters: number
}

/** Turns the core's answers about hashed keys into decisions, or into errors. */
export abstract class MemoryDecisions extends QueuedLimiter {
  protected readonly ticker: Ticker
  protected readonly opened: OpenCore
  /** Set by the core's first callback, before the constructor ends. */
  protected decoder!: DecisionDecoder
  private pendingEvents: (() => void)[] = []

  /** Founds the memory with `policy`, or joins one that another thread founded. */
  constructor({ open, clock }: MemoryLimiterParts, policy?: Policy) {
    super()
    this.ticker = tickerOf(clock)
    this.opened = open({
      policyChanged: () => {
        const published = publishedPolicy(this.opened)
        // Else the core calls again, for a later one.
        if (published !== undefined) this.decoder = this.decoderFor(published)
      },
      calendarWindowStart: (block, us) => minuteWindow(calendarIn(this.opened, block), us).startUs,
      calendarWindowEnd: (block, us) => minuteWindow(calendarIn(this.opened, block), us).endUs,
    })
    const { core, section } = this.opened
    if (policy === undefined) core.attach(section)
    else new PolicyChange(this.opened, policy).publish(this.nowUs())
    // The ordinary take of a bucket or GCRA is the core's fastest way; others have one of their own.
    if (!(this.decoder instanceof RateDecoder)) core.take = core.takeAny
  }

  /** Microseconds since the Unix epoch, for the core. */
  nowUs(): number {
    const { us } = this.ticker
    return Number.isNaN(us) ? this.ticker.read() : us
  }

  /** Take, for a key whose fingerprint is known. */
  takeHashed(key: string, low: number, high: number, cost: number): Decision {
    const tokens = typeof cost === 'number' && (cost | 0) === cost && cost > 0 ? cost : checkedCost(cost)
    const nowUs = this.nowUs()
    const answer = this.opened.core.take(low, high, nowUs, tokens)
    return answer >= 0 ? this.decoder.allowed(answer) : this.notAllowed(key, low, high, nowUs, tokens, answer)
  }

  /** What a decision that the core has just made holds, if anything. To be asked before anybody else can call the core. */
  protected held(decision: Decision, _key: string, _low: number, _high: number, _cost: number): Decision {
    return decision
  }

  /** Tells of the keys that were forgotten, or found no room, for what was just asked: last, because who hears of it may call the core. */
  publishEvents(): void {
    const { pendingEvents } = this
    if (pendingEvents.length === 0) return
    this.pendingEvents = []
    for (const tell of pendingEvents) tell()
  }

  /** Peek, for a key whose fingerprint is known. */
  peekHashed(key: string, low: number, high: number, cost: number, nowUs = this.nowUs()): Decision {
    const tokens = checkedCost(cost)
    const debt = this.answered(this.opened.core.peek(low, high, nowUs, tokens), key)
    const blockMs = Math.ceil(this.answered(this.opened.core.banLeft(low, high, nowUs), key) / 1000)
    return this.decoder.foreseen(debt, tokens, blockMs)
  }

  /** A decision that is not simply allowed: denied, or one of the core's reasons. */
  protected notAllowed(key: string, low: number, high: number, nowUs: number, cost: number, answer: number): Decision {
    const decision =
      answer < 0 ? this.decoder.denied(-1 - answer, cost) : this.held(this.unanswered(key, low, high, nowUs, cost), key, low, high, cost)
    this.publishEvents()
    publishDenial(key, cost, decision)
    return decision
  }

  /** Lets a number through, throws when there is none. */
  protected answered(answer: number, key: string): number {
    if (answer >= 0) return answer
    const reason = this.opened.reason()
    if (reason === 'REFUSED') {
      throw new StoreError('TABLE_FULL', 'no room for this key: nothing near it may be forgotten. Raise maxKeys')
    }
    if (reason !== 'EVICTED') throw this.contended(key)
    this.noteEviction(key)
    return this.opened.core.detailOfUnanswered()
  }

  protected contended(key: string): StoreError {
    if (contentions.hasSubscribers) contentions.publish({ policy: this.decoder.policy.name, key })
    return new StoreError('CONTENTION', 'other threads kept changing this key; the call was given up after a bounded wait')
  }

  private decoderFor(policy: Policy): DecisionDecoder {
    const isRate = policy.algorithm === 'token-bucket' || policy.algorithm === 'gcra'
    return isRate ? new RateDecoder(policy) : new CountDecoder(policy, this.opened.core)
  }

  /** A take that the core did not answer with a debt. */
  protected unanswered(key: string, low: number, high: number, nowUs: number, cost: number): Decision {
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

  /** A take that the core has just denied because the key was changed, or one forgotten, at a later reading. */
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
      if (this.opened.reason() !== 'LATE') return this.unanswered(key, low, high, readUs, cost)
    }
  }

  protected noteEviction(key: string): void {
    if (!evictions.hasSubscribers) return
    const tokens = this.opened.core.forgotten() / this.decoder.unitsPerToken
    const event: EvictionEvent = { policy: this.decoder.policy.name, key, tokens }
    this.pendingEvents.push(() => evictions.publish(event))
  }

  /** The answer for a new key without room; the process and those who listen are told. */
  private withoutRoom(key: string, decision: Decision): Decision {
    const policy = this.decoder.policy.name
    warnOfFullTable(policy, this.opened)
    if (tablesFull.hasSubscribers) {
      const event: TableFullEvent = { policy, key, allowed: decision.allowed }
      this.pendingEvents.push(() => tablesFull.publish(event))
    }
    return decision
  }
}
