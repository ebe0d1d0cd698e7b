import type { Grant, Granted, Spent } from './grant.js'
import { CLOCK_DRIFT } from './leasing.js'

/**
 * The tokens of one grant, on this process's monotonic clock. They may be spent since the answer arrived, and the end of each counts from the
 * sending of the request. Whenever between these the backend answered, no token is spent before it conforms, and none after its end. So clocks
 * never have to agree.
 */
export class Batch {
  /** Tokens of the grant. */
  readonly granted: number
  private readonly grant: Grant
  private readonly sentUs: number
  /** The first token that is neither spent nor expired. */
  private next = 0
  /** Tokens that expired unspent and were not taken by {@link takeEnded}. */
  private ended = 0

  constructor(grant: Grant, sentUs: number) {
    this.granted = grant.tokens
    this.grant = grant
    this.sentUs = sentUs
  }

  /** Tokens that may be spent at a time. */
  leftAt(nowUs: number): number {
    if (nowUs >= this.untilUs) {
      const next = firstAfter(nowUs, this.next, (token) => this.endOf(token))
      this.ended += next - this.next
      this.next = next
    }
    return this.left
  }

  /** Tokens that may be spent, as of the last time read. */
  get left(): number {
    return this.granted - this.next
  }

  /** When the first of them expires; `Infinity` when none is left. */
  get untilUs(): number {
    return this.endOf(this.next)
  }

  /** The id under which tokens are returned; undefined when none can be. */
  get id(): number | undefined {
    return this.grant.id
  }

  /** The id under which those that expire unspent are returned; undefined where they flow back by themselves. */
  get unspentId(): number | undefined {
    const { isReturned, flowsBack, id } = this.grant
    return (isReturned ?? !flowsBack) ? id : undefined
  }

  /** Spends tokens that are left. */
  drop(tokens: number): void {
    this.next += tokens
  }

  /** Expires all tokens that are left. */
  end(): void {
    this.ended += this.left
    this.next = this.granted
  }

  /** Tokens that expired unspent since the last call: no take spends them. */
  takeEnded(): number {
    const { ended } = this
    this.ended = 0
    return ended
  }

  private endOf(token: number): number {
    if (token >= this.granted) return Number.POSITIVE_INFINITY
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

/** `retryAfterMs` is rounded up to whole milliseconds: a caller may return up to one later than was computed. */
export const RETRY_ROUNDING_US = 1000

/** The leased tokens of one key, from several grants; those that expire first are spent first. */
export class HeldTokens {
  private readonly batches: Batch[] = []
  /** Tokens that may be spent, counted again from `recountUs` on. */
  private tokens = 0
  private recountUs = Number.NEGATIVE_INFINITY
  private unspent: Granted[] = []
  private readonly wasted: (part: number) => void
  private readonly part: number

  /**
   * @param wasted called with the part of a lease that expired unspent.
   * @param part which policy of `allOf` they are of; else 0.
   */
  constructor(wasted: (part: number) => void, part: number) {
    this.wasted = wasted
    this.part = part
  }

  /** Tokens that may be spent, as of the last time read. */
  get left(): number {
    return this.tokens
  }

  /** Before this no token expires, unless tokens arrive or are spent. */
  get countedUntilUs(): number {
    return this.recountUs
  }

  /** When the first of them expire; `Infinity` when there are none. */
  get untilUs(): number {
    return this.batches[0]?.untilUs ?? Number.POSITIVE_INFINITY
  }

  add(grant: Grant, sentUs: number): void {
    this.recountUs = Number.NEGATIVE_INFINITY
    if (grant.tokens === 0) return
    const { batches } = this
    const batch = new Batch(grant, sentUs)
    let at = batches.length
    while (at > 0 && (batches[at - 1] as Batch).untilUs > batch.untilUs) at--
    batches.splice(at, 0, batch)
  }

  /** Tokens that may be spent at a time. */
  readyAt(nowUs: number): number {
    if (nowUs >= this.recountUs) this.count(nowUs)
    return this.tokens
  }

  /** Spends `cost` tokens if as many may be spent now. @param spent receives what was spent of each grant. */
  spend(nowUs: number, cost: number, spent?: Spent): boolean {
    if (this.readyAt(nowUs) < cost) return false
    this.tokens -= cost
    this.drop(cost, spent)
    return true
  }

  /** Expires all tokens; they are returned. */
  end(): void {
    for (const batch of this.batches) {
      batch.end()
      this.note(batch)
    }
    this.clear()
  }

  /** Drops all tokens; none are returned. */
  drain(): void {
    this.unspent = []
    this.clear()
  }

  /** Returnable tokens that expired unspent since the last call. */
  takeUnspent(): readonly Granted[] {
    const { unspent } = this
    if (unspent.length > 0) this.unspent = []
    return unspent
  }

  /** When the first returnable tokens expire; `Infinity` when there are none. */
  get backUs(): number {
    let us = Number.POSITIVE_INFINITY
    for (const batch of this.batches) if (batch.unspentId !== undefined) us = Math.min(us, batch.untilUs)
    return us
  }

  private count(nowUs: number): void {
    const { batches } = this
    let tokens = 0
    let untilUs = Number.POSITIVE_INFINITY
    for (let i = 0; i < batches.length; i++) {
      const batch = batches[i] as Batch
      tokens += batch.leftAt(nowUs)
      this.note(batch)
      if (batch.left === 0) batches.splice(i--, 1)
      untilUs = Math.min(untilUs, batch.untilUs)
    }
    this.tokens = tokens
    this.recountUs = untilUs
  }

  private note(batch: Batch): void {
    const tokens = batch.takeEnded()
    if (tokens > 0) this.wasted(tokens / batch.granted)
    if (tokens > 0 && batch.unspentId !== undefined) this.unspent.push({ grantId: batch.unspentId, part: this.part, cost: tokens })
  }

  /** Spends from the lease that expires first on, and drops leases that are used up. */
  private drop(cost: number, spent: Spent | undefined): void {
    const { batches } = this
    let missing = cost
    for (let i = 0; missing > 0; i++) {
      const batch = batches[i] as Batch
      const tokens = Math.min(missing, batch.left)
      batch.drop(tokens)
      if (spent !== undefined && batch.id !== undefined && tokens > 0) spent.push({ grantId: batch.id, part: this.part, cost: tokens })
      missing -= tokens
      if (batch.left === 0) batches.splice(i--, 1)
    }
  }

  private clear(): void {
    this.batches.length = 0
    this.recountUs = Number.NEGATIVE_INFINITY
  }
}
