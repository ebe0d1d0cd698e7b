import type { Grant } from './authority.js'
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
  private voidUs: number

  constructor(grant: Grant, sentUs: number, arrivedUs: number) {
    this.grant = grant
    this.sentUs = sentUs
    this.arrivedUs = arrivedUs
    this.open = grant.ready
    this.count = grant.ready + grant.later
    this.voidUs = this.endOf(0)
  }

  /** Tokens that may be spent at a time. */
  readyAt(nowUs: number): number {
    while (this.voidUs <= nowUs) this.drop(1)
    while (this.open < this.count && this.beginOf(this.open) <= nowUs) this.open++
    return this.open > this.next ? this.open - this.next : 0
  }

  /** Tokens that are neither spent nor void at the time last asked about. */
  get left(): number {
    return this.count - this.next
  }

  /** Spends tokens that are ready. */
  drop(tokens: number): void {
    this.next += tokens
    this.voidUs = this.endOf(this.next)
  }

  /** When so many more of them are there than were at the time last asked about, which are none; `Infinity` for never. */
  readyFrom(tokens: number): number {
    const last = this.next + tokens - 1
    return last < this.count ? this.beginOf(last) : Number.POSITIVE_INFINITY
  }

  private beginOf(token: number): number {
    const us = this.grant.beginUs(token)
    return this.arrivedUs + Math.ceil(us + us / CLOCK_DRIFT)
  }

  private endOf(token: number): number {
    if (token >= this.count) return Number.POSITIVE_INFINITY
    const us = this.grant.endUs(token)
    return this.sentUs + Math.floor(us - us / CLOCK_DRIFT)
  }
}
