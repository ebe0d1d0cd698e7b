import type { Grant } from './grant.js'
import { CLOCK_DRIFT } from './leasing.js'

/**
 * The tokens of one grant. On this process's monotonic clock the beginning of each counts from the arrival of the answer, and its end from
 * the sending of the request. Whenever between these the backend answered, no token is spent before it conforms, and none after its end. So
 * clocks never have to agree.
 */
export class Batch {
  private readonly grant: Grant
  private readonly sentUs: number
  private readonly arrivedUs: number
  /** The first token that is neither spent nor expired, the first that does not conform yet, and the number of tokens. */
  private next = 0
  private open: number
  private readonly count: number
  /** Tokens that expired unspent and were not taken by {@link takeEnded}. */
  private ended = 0
  /** Before this no other token begins or expires. */
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

  /** Until when that stays the same, if nothing is spent. */
  get untilChangeUs(): number {
    return this.steadyUs
  }

  /** Tokens that may be spent, as of the last time read. */
  get ready(): number {
    return this.open > this.next ? this.open - this.next : 0
  }

  /** Tokens neither spent nor expired, as of the last time read. */
  get left(): number {
    return this.count - this.next
  }

  /** The id under which tokens are returned; undefined when none can be. */
  get id(): number | undefined {
    return this.grant.id
  }

  /** Expires all tokens that are left. */
  end(): void {
    this.ended += this.left
    this.next = this.count
  }

  /** Tokens that expired unspent since the last call: no take spends them. */
  takeEnded(): number {
    const { ended } = this
    this.ended = 0
    return ended
  }

  /** Spends tokens that may be spent now. */
  drop(tokens: number): void {
    this.next += tokens
  }

  /** When the first of them expires; `Infinity` when none is left. */
  get untilUs(): number {
    return this.endOf(this.next)
  }

  /** When `tokens` of those that are left may be spent; `Infinity` when there are fewer. */
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
 * The first number from `from` on whose time is after `nowUs`. The times never decrease, so this is a galloping search: of a million
 * elapsed times a few are read.
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
