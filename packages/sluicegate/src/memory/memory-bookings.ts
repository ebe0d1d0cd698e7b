import { checkedCost } from '../arguments.js'
import type { Decision } from '../decision.js'
import { RateDecoder } from '../policy/decision-decoder.js'
import type { Booking } from '../waiting/booking.js'
import type { ReleaseWords } from '../waiting/release-watch.js'
import type { Core } from './core.js'
import { laterReading } from './later-reading.js'
import { MemoryDecisions } from './memory-decisions.js'

/** A booking, and what giving it back needs to know. */
export interface MemoryBooking<Answer extends Decision = Decision> extends Booking<Answer> {
  readonly low: number
  readonly high: number
  /** Of buckets and GCRA: the debt that it left, and the policy's numbers that this is counted in. */
  readonly debt: number
  readonly numbers: string
  /** Passed though the key found no room. Only of a take that is written down in a descriptor. */
  readonly isOverflow?: boolean
}

/** Where takes of several sections are written down, and the time that they are all read by. */
export interface Descriptor {
  readonly address: number
  readonly nowUs: number
  /** How often the clock was read because it had been read too early. */
  readonly readings: number
}

/** Takes that lie ahead or are made together with others, and what comes back of them. */
export abstract class MemoryBookings extends MemoryDecisions {
  /** This thread's core, for what is done over several limiters of one memory. */
  get core(): Core {
    return this.opened.core
  }

  /** Where what comes back before its time is counted. */
  releases(): ReleaseWords {
    return this.opened.releases()
  }

  /** A take of `cost` at the earliest time, within `mostUs`. Whoever waits asks again and again, so that denials are told elsewhere. */
  protected bookHashed(key: string, low: number, high: number, cost: number, mostUs: number): MemoryBooking {
    const booking = this.booked(key, low, high, checkedCost(cost), mostUs)
    this.publishEvents()
    return booking
  }

  /**
   * A take that is written down in a descriptor; it stands if that is committed. A number instead is a later reading, by which all is to
   * be asked again. What has to be told the caller tells, about the whole.
   */
  stageHashed(into: Descriptor, key: string, low: number, high: number, cost: number): MemoryBooking | number {
    const { nowUs } = into
    const answer = this.opened.core.stage(into.address, low, high, nowUs, cost)
    const reason = Number.isNaN(answer) ? this.opened.reason() : undefined
    const isLate = reason === 'LATE'
    const { decoder } = this
    const late = isLate ? decoder.denied(this.opened.core.detailOfUnanswered(), cost) : undefined
    const laterUs = late && laterReading(this.ticker, nowUs, into.readings, late)
    if (laterUs !== undefined) return laterUs
    const made =
      late ??
      (answer >= 0 ? decoder.allowed(answer) : answer < 0 ? decoder.denied(-1 - answer, cost) : this.unanswered(key, low, high, nowUs, cost))
    const decision = this.held(made, key, low, high, cost)
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
      debt: Number.isNaN(answer) ? 0 : Math.max(0, answer),
      numbers: decoder.numbers,
      isOverflow: reason === 'OVERFLOWED',
    }
  }

  /** What a take that passed now would say, whatever is left; a denial when the key is blocked. */
  protected answerHashed({ key, low, high }: MemoryBooking): Decision {
    const standing = this.peekHashed(key as string, low, high, 1)
    const blockedUs = this.answered(this.opened.core.banLeft(low, high, this.nowUs()), key as string)
    return blockedUs > 0 ? standing : { ...standing, allowed: true, retryAfterMs: 0 }
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
    const { decoder } = this
    if (decoder instanceof RateDecoder) {
      const { unitsPerUs, unitsPerToken, capacity } = decoder
      const isWaiting = atUs > bookedUs && nowUs < atUs
      const worn = Math.max(0, nowUs - atUs) * unitsPerUs
      back = isWaiting ? (tokens === cost ? cost * unitsPerToken : 0) : Math.min(tokens * unitsPerToken, cost * unitsPerToken - worn)
      bound = isWaiting ? debt - (nowUs - bookedUs) * unitsPerUs : capacity
      if (numbers !== decoder.numbers) back = 0
    }
    if (back > 0) this.answered(this.opened.core.cancel(low, high, nowUs, back, bound), key)
    return this.peekHashed(key, low, high, 1, nowUs)
  }

  private booked(key: string, low: number, high: number, cost: number, mostUs: number): MemoryBooking {
    const nowUs = this.nowUs()
    const { core } = this.opened
    const answer = core.reserve(low, high, nowUs, cost, mostUs)
    const { decoder } = this
    const asked = { key, cost, bookedUs: nowUs, low, high, numbers: decoder.numbers }
    const isEvicted = Number.isNaN(answer) && this.opened.reason() === 'EVICTED'
    const debt = isEvicted ? core.detailOfUnanswered() : answer
    if (debt >= 0) {
      if (isEvicted) this.noteEviction(key)
      const atUs = nowUs + decoder.waitUs(debt)
      const decision = this.held(decoder.allowed(debt), key, low, high, cost)
      return { ...asked, allowed: true, atUs, maybeSooner: false, decision, debt }
    }
    const wouldWaitUs = answer < 0 ? decoder.untilFreeUs(-1 - answer, cost) : undefined
    const made = answer < 0 ? decoder.denied(-1 - answer, cost) : this.unanswered(key, low, high, nowUs, cost)
    const decision = this.held(made, key, low, high, cost)
    const atUs = nowUs + (wouldWaitUs ?? decision.retryAfterMs * 1000)
    return {
      ...asked,
      allowed: decision.allowed,
      atUs: decision.allowed ? nowUs : atUs,
      // Only of permits nobody knows when they come back.
      maybeSooner: decoder.policy.algorithm === 'concurrency',
      isBlocked: wouldWaitUs === undefined,
      decision,
      debt: 0,
    }
  }
}
