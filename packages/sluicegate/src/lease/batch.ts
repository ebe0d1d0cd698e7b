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
  /** When the first that does not conform yet does, and when the first that is left is void. */
  private openUs: number
  private voidUs: number

  constructor(grant: Grant, sentUs: number, arrivedUs: number) {
    this.grant = grant
    this.sentUs = sentUs
    this.arrivedUs = arrivedUs
    this.open = grant.ready
    this.count = grant.ready + grant.later
    this.openUs = this.beginOf(this.open)
    this.voidUs = this.endOf(0)
  }

  /** Tokens that may be spent at a time. */
  readyAt(nowUs: number): number {
    while (this.voidUs <= nowUs) this.drop(1)
    while (this.openUs <= nowUs) this.openUs = this.beginOf(++this.open)
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

  /** When the first of them is void; `Infinity` when none is left. */
  get untilUs(): number {
    return this.voidUs
  }

  /** When so many of those that are left may be spent; `Infinity` when there are fewer. */
  readyFrom(tokens: number): number {
    return this.beginOf(this.next + tokens - 1)
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
