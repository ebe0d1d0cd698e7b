import { checkedCost } from '../arguments.js'
import type { Decision } from '../decision/decision.js'
import { RateDecoder } from '../decision/decision-decoder.js'
import type { Booking } from '../waiting/reserving.js'
import { laterReading, type MemoryDecisions } from './memory-decisions.js'

/** Of windows, logs and permits, which count tokens. */
const WHOLE = { unitsPerToken: 1, unitsPerUs: 0 }

/** The core's answer to a cancel that finds nothing to give back. */
const NOTHING_OWED = -1

/** A booking with the data that giving it back needs. */
export interface MemoryBooking<Answer extends Decision = Decision> extends Booking<Answer> {
  readonly low: number
  readonly high: number
  /** Buckets and GCRA: the debt after the booking. */
  readonly debt: number
  /** Buckets and GCRA, booked ahead: what counts it. */
  readonly rate?: RateDecoder | undefined
  /** Of the policy's numbers when it was charged. */
  readonly generation: number
  /** Nothing of it can come back: it was allowed although the table has no room for the key, or was forgiven on the way to another limiter. */
  readonly isOverflow?: boolean
  /** Buckets and GCRA, carried to another limiter: what it owed there, in units. */
  readonly left?: number
}

/** What a booking of a rate owed at its time, in units. */
export function leftOf({ left, cost }: MemoryBooking, { unitsPerToken }: RateDecoder): number {
  return left ?? cost * unitsPerToken
}

/** The descriptor that collects takes of several sections, and the clock reading that all of them use. */
export interface Descriptor {
  readonly address: number
  readonly nowUs: number
  /** How often the clock was read again because its reading was too early. */
  readonly readings: number
}

/** Takes ahead of their time, takes staged in a descriptor together with others, and what they give back. */
export class MemoryBookings {
  private readonly decisions: MemoryDecisions

  constructor(decisions: MemoryDecisions) {
    this.decisions = decisions
  }

  /** A take, with what giving it back needs. */
  take(key: string, low: number, high: number, cost: number): MemoryBooking {
    const { decisions } = this
    const bookedUs = decisions.nowUs()
    const decision = decisions.takeAt(bookedUs, key, low, high, cost)
    const atUs = decision.allowed ? bookedUs : bookedUs + decision.retryAfterMs * 1000
    const isOverflow = decision.allowed && decisions.isOverflow
    const { generation } = decisions
    return {
      key,
      cost,
      low,
      high,
      bookedUs,
      atUs,
      allowed: decision.allowed,
      maybeSooner: false,
      decision,
      debt: 0,
      generation,
      isOverflow,
    }
  }

  /** Charges `cost` at the earliest time within `mostUs`. A waiter asks repeatedly, so its caller publishes denials. */
  book(key: string, low: number, high: number, cost: number, mostUs: number): MemoryBooking {
    const booking = this.booked(key, low, high, checkedCost(cost), mostUs)
    this.decisions.events.publish()
    return booking
  }

  private booked(key: string, low: number, high: number, cost: number, mostUs: number): MemoryBooking {
    const { decisions } = this
    const bookedUs = decisions.nowUs()
    const { opened } = decisions
    // Nothing is booked ahead in a window that never comes.
    const isAhead = decisions.decoder.policy.calendar?.unit !== 'ever'
    const answer = opened.core.reserve(low, high, bookedUs, cost, isAhead ? mostUs : 0)
    const { decoder, generation } = decisions
    const reason = Number.isNaN(answer) ? opened.reason() : undefined
    const debt = reason === 'EVICTED' || reason === 'HELD' ? opened.core.detailOfUnanswered() : answer
    const isCharged = debt >= 0
    if (reason === 'HELD' && !isCharged) return this.heldBack(key, low, high, cost, bookedUs, -1 - debt)
    if (isCharged && reason === 'EVICTED') decisions.noteEviction(key)
    const waitUs = isCharged ? decoder.waitUs(debt) : answer < 0 ? decoder.untilFreeUs(-1 - answer, cost) : undefined
    const made = isCharged
      ? reason === 'HELD'
        ? decisions.allowedBesideHolds(debt, bookedUs)
        : decoder.allowed(debt)
      : answer < 0
        ? decoder.denied(-1 - answer, cost)
        : decisions.decisionForReason(key, low, high, bookedUs, cost)
    const decision = decisions.withPermit(made, key, low, high, cost)
    // Allowed without a debt.
    const isOverflow = !isCharged && decision.allowed
    // Written out: to spread a part that others have too costs more than the decision.
    return {
      key,
      cost,
      low,
      high,
      bookedUs,
      atUs: isOverflow ? bookedUs : bookedUs + (waitUs ?? decision.retryAfterMs * 1000),
      allowed: isCharged || isOverflow,
      // Only a permit may come back at any time.
      maybeSooner: !isCharged && decoder.policy.algorithm === 'concurrency',
      isBlocked: waitUs === undefined,
      decision,
      debt: isCharged ? debt : 0,
      rate: decoder instanceof RateDecoder ? decoder : undefined,
      generation,
      isOverflow,
    }
  }

  /** A take for which holds leave no room: one that is closed makes room at any time. */
  private heldBack(key: string, low: number, high: number, cost: number, bookedUs: number, debt: number): MemoryBooking {
    const decision = this.decisions.foreseenBesideHolds(debt, cost, 0, bookedUs)
    const atUs = bookedUs + decision.retryAfterMs * 1000
    const { generation } = this.decisions
    return { key, cost, low, high, bookedUs, atUs, allowed: false, maybeSooner: true, decision, debt: 0, generation }
  }

  /**
   * A take that is written into a descriptor and takes effect when the descriptor is committed. A number instead of a booking is a later
   * clock reading: stage all parts again with it. The caller publishes the denial, for all parts together.
   */
  stage(into: Descriptor, key: string, low: number, high: number, cost: number): MemoryBooking | number {
    const { nowUs } = into
    const { decisions } = this
    const { opened } = decisions
    const answer = opened.core.stage(into.address, low, high, nowUs, cost)
    // Read after the call, which may have found another policy.
    const { decoder } = decisions
    const reason = Number.isNaN(answer) ? opened.reason() : undefined
    const isLate = reason === 'LATE'
    const late = isLate ? decoder.denied(opened.core.detailOfUnanswered(), cost) : undefined
    const laterUs = late && laterReading(decisions.ticker, nowUs, into.readings, late)
    if (laterUs !== undefined) return laterUs
    const made =
      late ??
      (answer >= 0
        ? decoder.allowed(answer)
        : answer < 0
          ? decoder.denied(-1 - answer, cost)
          : decisions.decisionForReason(key, low, high, nowUs, cost))
    const decision = decisions.withPermit(made, key, low, high, cost)
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
      generation: decisions.generation,
      isOverflow: reason === 'OVERFLOWED',
    }
  }

  /** The decision of a take that passes now, whatever is left; a denial if the key is banned. */
  redeem({ key, low, high }: MemoryBooking): Decision {
    const state = this.decisions.peek(key as string, low, high, 1)
    const blockedUs = this.decisions.answered(this.decisions.opened.core.banLeft(low, high, this.decisions.nowUs()), key as string)
    return blockedUs > 0 ? state : { ...state, allowed: true, retryAfterMs: 0 }
  }

  /**
   * Gives back tokens of a booking. Buckets and GCRA take back only what cannot have refilled by itself: the bucket may have been full in
   * the meantime. A booking that is not due yet goes back whole, unless a later one exists. Of a booking from before a change of the numbers
   * nothing comes back: the change may have forgiven what the key had spent.
   */
  giveBack(booking: MemoryBooking, tokens: number): Decision {
    const { low, high, atUs, bookedUs, debt, cost, isOverflow = false } = booking
    const key = booking.key as string
    const nowUs = this.decisions.nowUs()
    let back = tokens
    let bound = atUs
    this.decisions.opened.look()
    const { decoder } = this.decisions
    if (decoder instanceof RateDecoder) {
      const { unitsPerUs, unitsPerToken, capacity } = decoder
      const isWaiting = atUs > bookedUs && nowUs < atUs
      const worn = Math.max(0, nowUs - atUs) * unitsPerUs
      back = isWaiting ? (tokens === cost ? cost * unitsPerToken : 0) : Math.min(tokens * unitsPerToken, leftOf(booking, decoder) - worn)
      bound = isWaiting ? debt - (nowUs - bookedUs) * unitsPerUs : capacity
    }
    if (back > 0 && !isOverflow) this.cancelled(booking, nowUs, back, bound)
    return this.decisions.peek(key, low, high, 1, nowUs)
  }

  /** Whether what comes back of a booking is room in the window of this moment. */
  isOfNow({ atUs, generation, isOverflow = false }: MemoryBooking): boolean {
    const { decisions } = this
    const { algorithm, windowMs, calendar } = decisions.decoder.policy
    const isWindow = (algorithm === 'fixed-window' || algorithm === 'sliding-window') && calendar === undefined
    if (!isWindow || isOverflow || generation !== decisions.generation) return false
    const [nowUs, windowUs] = [decisions.nowUs(), windowMs * 1000]
    return atUs <= nowUs && Math.floor(atUs / windowUs) === Math.floor(nowUs / windowUs)
  }

  /** Takes a booking back before its time, to make it anew: in whole or not at all. True: the key owes nothing for it any more. */
  unbook(booking: MemoryBooking): boolean {
    const { bookedUs, atUs, debt, cost, generation } = booking
    const { decisions } = this
    const nowUs = decisions.nowUs()
    decisions.opened.look()
    const { decoder } = decisions
    const isRate = decoder instanceof RateDecoder
    if (generation !== decisions.generation) {
      return (isRate && this.unbookBefore(booking, decoder, nowUs)) || this.isFull(booking, nowUs)
    }
    const { unitsPerToken, unitsPerUs } = isRate ? decoder : WHOLE
    return this.cancelled(booking, nowUs, cost * unitsPerToken, isRate ? debt - (nowUs - bookedUs) * unitsPerUs : atUs)
  }

  /** {@link unbook} of a booking under the numbers before these: what the change has not forgiven of it comes back, if nothing was booked after it. */
  private unbookBefore(booking: MemoryBooking, { unitsPerToken, unitsPerUs, capacity }: RateDecoder, nowUs: number): boolean {
    const { bookedUs, debt, cost, rate } = booking
    const { opened, generation } = this.decisions
    const record = opened.core.policyRecord()
    const isLastChange = generation === booking.generation + 1 && opened.field(record, 'RECORD_KEEPS_DEBT') === 0
    if (rate === undefined || !isLastChange) return false
    const changedUs = opened.field(record, 'RECORD_SINCE_US')
    const before = BigInt(debt - (changedUs - bookedUs) * rate.unitsPerUs)
    const [to, from] = [BigInt(unitsPerToken), BigInt(rate.unitsPerToken)]
    const level = Number((before * to + from - 1n) / from)
    const top = Math.min(level, capacity)
    const back = top - (level - cost * unitsPerToken)
    return back <= 0 || this.cancelled({ ...booking, generation }, nowUs, back, top - (nowUs - changedUs) * unitsPerUs)
  }

  /** Whether a waiting booking may be for a sooner time if it is made anew: something came back of what was charged before it. */
  isLate(booking: MemoryBooking): boolean {
    const { key, low, high, bookedUs, atUs, debt, generation } = booking
    const { decisions } = this
    const nowUs = decisions.nowUs()
    decisions.opened.look()
    const { decoder } = decisions
    if (decoder instanceof RateDecoder) {
      if (generation !== decisions.generation) return true
      const owed = decisions.answered(decisions.opened.core.peek(low, high, nowUs, 1), key as string)
      return owed + decoder.unitsPerToken <= debt - (nowUs - bookedUs) * decoder.unitsPerUs
    }
    // A window that is booked stays closed until it begins, but for a reset.
    return (
      decoder.policy.algorithm !== 'fixed-window' ||
      decisions.peekAlone(key as string, low, high, 1, nowUs).retryAfterMs * 1000 < atUs - nowUs
    )
  }

  private isFull({ key, low, high }: MemoryBooking, nowUs: number): boolean {
    return this.decisions.peekAlone(key as string, low, high, 1, nowUs).resetAfterMs === 0
  }

  /** Whether anything came back, or nothing is owed that could. */
  private cancelled({ key, low, high, generation }: MemoryBooking, nowUs: number, back: number, bound: number): boolean {
    const answer = this.decisions.opened.core.cancel(low, high, nowUs, back, bound, generation)
    if (answer < 0) return answer === NOTHING_OWED
    this.decisions.answered(answer, key as string)
    return true
  }
}
