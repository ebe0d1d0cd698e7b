import { checkedCost } from './arguments.js'
import type { Booking } from './booking.js'
import { calendarWindow } from './calendar.js'
import { type Clock, type Ticker, tickerOf } from './clock.js'
import type { CoreHost } from './core.js'
import { CountTerms } from './count-terms.js'
import type { Decision } from './decision.js'
import { contentions, denials, evictions } from './diagnostics.js'
import { StoreError } from './errors.js'
import type { OpenCore } from './open-core.js'
import type { Policy } from './policy.js'
import { calendarIn, publishedPolicy, publishPolicy } from './policy-block.js'
import { RateTerms } from './rate-terms.js'
import type { Terms } from './terms.js'

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

/** A booking, and what giving it back needs to know. */
export interface MemoryBooking<Answer extends Decision = Decision> extends Booking<Answer> {
  readonly low: number
  readonly high: number
  /** Of buckets and GCRA: the debt that it left, and the policy's numbers that this is counted in. */
  readonly debt: number
  readonly numbers: string
}

/** Where takes of several sections are written down, and the time that they are all read by. */
export interface Descriptor {
  readonly address: number
  readonly nowUs: number
  readonly isSecondReading: boolean
}

/** Turns the core's answers about hashed keys into decisions, or into errors. */
export class MemoryDecisions {
  protected readonly ticker: Ticker
  protected readonly opened: OpenCore
  /** Set by the core's first callback, before the constructor ends. */
  protected terms!: Terms

  /** Founds the memory with `policy`, or joins one that another thread founded. */
  constructor({ open, clock }: MemoryLimiterParts, policy?: Policy) {
    this.ticker = tickerOf(clock)
    this.opened = open({
      policyChanged: () => {
        const published = publishedPolicy(this.opened)
        // Else the core calls again, for a later one.
        if (published !== undefined) this.terms = this.termsOf(published)
      },
      calendarWindowStart: (block, us) => calendarWindow(calendarIn(this.opened, block), us).startUs,
      calendarWindowEnd: (block, us) => calendarWindow(calendarIn(this.opened, block), us).endUs,
    })
    const { core, section } = this.opened
    if (policy === undefined) core.attach(section)
    else publishPolicy(this.opened, policy, this.nowUs())
    // The ordinary take of a bucket or GCRA is the core's fastest way; others have one of their own.
    if (!(this.terms instanceof RateTerms)) core.take = core.takeAny
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
    return answer >= 0 ? this.terms.allowed(answer) : this.notAllowed(key, low, high, nowUs, tokens, answer)
  }

  /** Peek, for a key whose fingerprint is known. */
  peekHashed(key: string, low: number, high: number, cost: number, nowUs = this.nowUs()): Decision {
    const tokens = checkedCost(cost)
    const debt = this.answered(this.opened.core.peek(low, high, nowUs, tokens), key)
    const blockMs = Math.ceil(this.answered(this.opened.core.blockLeft(low, high, nowUs), key) / 1000)
    return this.terms.foreseen(debt, tokens, blockMs)
  }

  /** A take of `cost` at the earliest time, within `mostUs`. Whoever waits asks again and again, so that denials are told elsewhere. */
  protected bookHashed(key: string, low: number, high: number, cost: number, mostUs: number): MemoryBooking {
    const tokens = checkedCost(cost)
    const nowUs = this.nowUs()
    const { core } = this.opened
    const answer = core.reserve(low, high, nowUs, tokens, mostUs)
    const { terms } = this
    const booked = { key, cost: tokens, bookedUs: nowUs, low, high, numbers: terms.numbers }
    const debt = answer >= 0 ? answer : Number.isNaN(answer) && this.opened.reason() === 'EVICTED' ? core.detailOfUnanswered() : Number.NaN
    if (debt >= 0) {
      const atUs = nowUs + terms.waitUs(debt)
      return { ...booked, allowed: true, atUs, maybeSooner: false, decision: terms.allowed(debt), debt }
    }
    const wouldWaitUs = answer < 0 ? terms.untilFreeUs(-1 - answer, tokens) : undefined
    const decision = answer < 0 ? terms.denied(-1 - answer, tokens) : this.unanswered(key, low, high, nowUs, tokens)
    const atUs = nowUs + (wouldWaitUs ?? decision.retryAfterMs * 1000)
    return {
      ...booked,
      allowed: decision.allowed,
      atUs: decision.allowed ? nowUs : atUs,
      // Only of permits nobody knows when they come back.
      maybeSooner: terms.policy.algorithm === 'concurrency',
      decision,
      debt: 0,
    }
  }

  /**
   * A take that is written down in a descriptor; it stands if that is committed. Undefined when the clock has to be read again,
   * unless it was already. What has to be told about a denial the caller tells, about the whole.
   */
  stageHashed(into: Descriptor, key: string, low: number, high: number, cost: number): MemoryBooking | undefined {
    const { core } = this.opened
    const { nowUs } = into
    const answer = core.stage(into.address, low, high, nowUs, cost)
    const isLate = Number.isNaN(answer) && this.opened.reason() === 'LATE'
    if (isLate && !into.isSecondReading) return undefined
    const { terms } = this
    const decision =
      answer >= 0
        ? terms.allowed(answer)
        : answer < 0
          ? terms.denied(-1 - answer, cost)
          : this.unanswered(key, low, high, nowUs, cost, isLate)
    const debt = answer > 0 ? answer : 0
    return {
      key,
      cost,
      bookedUs: nowUs,
      atUs: nowUs,
      allowed: decision.allowed,
      maybeSooner: true,
      decision,
      low,
      high,
      debt,
      numbers: terms.numbers,
    }
  }

  /**
   * Gives tokens of a booking back. Of buckets and GCRA what surely has not flowed back by itself: nobody knows whether the bucket
   * would have been full meanwhile. One whose time has not come goes back whole, if nobody booked after it.
   */
  protected giveBackHashed(booking: MemoryBooking, tokens: number): Decision {
    const { low, high, atUs, bookedUs, debt, numbers, cost } = booking
    const key = booking.key as string
    const nowUs = this.nowUs()
    let back = tokens
    let bound = atUs
    this.opened.core.look()
    const { terms } = this
    if (terms instanceof RateTerms) {
      const { unitsPerUs, unitsPerToken, capacity } = terms
      const isWaiting = atUs > bookedUs && nowUs < atUs
      const worn = Math.max(0, nowUs - atUs) * unitsPerUs
      back = isWaiting ? (tokens === cost ? cost * unitsPerToken : 0) : Math.min(tokens * unitsPerToken, cost * unitsPerToken - worn)
      bound = isWaiting ? debt - (nowUs - bookedUs) * unitsPerUs : capacity
      if (numbers !== terms.numbers) back = 0
    }
    if (back > 0) this.answered(this.opened.core.cancel(low, high, nowUs, back, bound), key)
    return this.peekHashed(key, low, high, 1, nowUs)
  }

  /** A decision that is not simply allowed: denied, or one of the core's reasons. */
  protected notAllowed(key: string, low: number, high: number, nowUs: number, cost: number, answer: number): Decision {
    const decision = answer < 0 ? this.terms.denied(-1 - answer, cost) : this.unanswered(key, low, high, nowUs, cost)
    if (!decision.allowed && denials.hasSubscribers) denials.publish({ policy: decision.policy, key, cost, decision })
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
    const detail = this.opened.core.detailOfUnanswered()
    this.publishEviction(key)
    return detail
  }

  protected contended(key: string): StoreError {
    if (contentions.hasSubscribers) contentions.publish({ policy: this.terms.policy.name, key })
    return new StoreError('CONTENTION', 'other threads kept changing this key; the call was given up after a bounded wait')
  }

  private termsOf(policy: Policy): Terms {
    const isRate = policy.algorithm === 'token-bucket' || policy.algorithm === 'gcra'
    return isRate ? new RateTerms(policy) : new CountTerms(policy, this.opened.core)
  }

  /** A take that the core did not answer with a debt. */
  private unanswered(key: string, low: number, high: number, nowUs: number, cost: number, isSecond = false): Decision {
    const detail = this.opened.core.detailOfUnanswered()
    switch (this.opened.reason()) {
      case 'EVICTED': {
        const decision = detail >= 0 ? this.terms.allowed(detail) : this.terms.denied(-1 - detail, cost)
        this.publishEviction(key)
        return decision
      }
      case 'BLOCKED':
        return this.terms.foreseen(this.answered(this.opened.core.peek(low, high, nowUs, cost), key), cost, Math.ceil(detail / 1000))
      case 'LATE': {
        // This thread's clock was read before another thread's by which the key was changed, or one forgotten. A new reading
        // nearly always mends that; after a step back, or where tokens are booked ahead, none would for long.
        const laterUs = isSecond ? nowUs : this.ticker.read()
        if (laterUs <= nowUs) return this.terms.denied(detail, cost)
        const answer = this.opened.core.take(low, high, laterUs, cost)
        if (answer >= 0) return this.terms.allowed(answer)
        return answer < 0 ? this.terms.denied(-1 - answer, cost) : this.unanswered(key, low, high, laterUs, cost, true)
      }
      case 'REFUSED':
        return this.terms.refused(cost, Math.ceil(detail / 1000))
      case 'CONTENDED':
        throw this.contended(key)
    }
  }

  private publishEviction(key: string): void {
    if (!evictions.hasSubscribers) return
    evictions.publish({ policy: this.terms.policy.name, key, tokens: this.opened.core.forgotten() / this.terms.unitsPerToken })
  }
}
