import type { Grant } from './grant.js'
import { CLOCK_DRIFT } from './leasing.js'

/**
 * The tokens of one grant. The beginning of each counts from the arrival of the answer, its end from the sending of the question, on
 * this process's monotonic clock: whenever between them the authority answered, no token is spent before it conforms, and none after its
 * end. So clocks never have to agree.
 */
export class Batch {
  private readonly grant: Grant
  private readonly sentUs: number
  private readonly arrivedUs: number
  /** Numbers of the first token that is neither spent nor void, of the first that does not conform yet, and of none. */
  private next = 0
  private open: number
  private readonly count: number
  /** Tokens that ended without being spent, and were not told yet. */
  private ended = 0
  /** Before that time no other token begins, and none ends. */
  private steadyUs = Number.NEGATIVE_INFINITY

  constructor(grant: Grant, sentUs: number, arrivedUs: number) {
    this.grant = grant
    this.sentUs = sentUs
    this.arrivedUs = arrivedUs
    this.open = grant.availableNow
    this.count = grant.availableNow + grant.availableLater
  }

  /** Tokens that may be spent at a time. */
  readyAt(nowUs: number): number {
    if (nowUs >= this.steadyUs) this.settle(nowUs)
    return this.ready
  }

  /** Until when that stays so, if nothing is spent. */
  get untilChangeUs(): number {
    return this.steadyUs
  }

  /** Tokens that could be spent at the time last asked about, less those that were. */
  get ready(): number {
    return this.open > this.next ? this.open - this.next : 0
  }

  /** Tokens that are neither spent nor void at the time last asked about. */
  get left(): number {
    return this.count - this.next
  }

  /** By which the authority knows what is given back; undefined when nothing can be. */
  get id(): number | undefined {
    return this.grant.id
  }

  /** Makes void whatever is left. */
  end(): void {
    this.ended += this.left
    this.next = this.count
  }

  /** How many tokens ended without being spent, since that was asked last: nobody ever spends them. */
  takeEnded(): number {
    const { ended } = this
    this.ended = 0
    return ended
  }

  /** Spends tokens that are ready. */
  drop(tokens: number): void {
    this.next += tokens
  }

  /** When the first of them is void; `Infinity` when none is left. */
  get untilUs(): number {
    return this.endOf(this.next)
  }

  /** When so many of those that are left may be spent; `Infinity` when there are fewer. */
  readyFrom(tokens: number): number {
    return this.beginOf(this.next + tokens - 1)
  }

  private settle(nowUs: number): void {
    const next = firstAfter(nowUs, this.next, (token) => this.endOf(token))
    this.ended += next - this.next
    this.next = next
    this.open = firstAfter(nowUs, this.open, (token) => this.beginOf(token))
    this.steadyUs = Math.min(this.endOf(this.next), this.beginOf(this.open))
  }

  private beginOf(token: number): number {
    if (token >= this.count) return Number.POSITIVE_INFINITY
    const us = this.grant.beginUs(token)
    return this.arrivedUs + Math.ceil(us + us / CLOCK_DRIFT)
  }

  private endOf(token: number): number {
    if (token >= this.count) return Number.POSITIVE_INFINITY
    const us = this.grant.endUs(token)
    return this.sentUs + Math.floor(us - us / CLOCK_DRIFT)
  }
}

/**
 * The first number from `from` on whose time is still to come. Times never go back from one number to the next: of a million that have
 * come a few are looked at.
 */
function firstAfter(nowUs: number, from: number, timeOf: (number: number) => number): number {
  let low = from
  let step = 1
  while (timeOf(low + step - 1) <= nowUs) {
    low += step
    step *= 2
  }
  let high = low + step - 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (timeOf(middle) <= nowUs) low = middle + 1
    else high = middle
  }
  return low
}
