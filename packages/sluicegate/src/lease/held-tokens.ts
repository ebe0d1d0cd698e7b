import type { Drawn, Grant, Granted } from './grant.js'
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

  /** The id under which those that expire unspent are returned; undefined where they flow back by themselves. */
  get unspentId(): number | undefined {
    const { isReturned, flowsBack, id } = this.grant
    return (isReturned ?? !flowsBack) ? id : undefined
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

  /** Tokens of the grant. */
  get granted(): number {
    return this.count
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

/** `retryAfterMs` is rounded up to whole milliseconds: a caller may return up to one later than was computed. */
export const RETRY_ROUNDING_US = 1000

/** The leased tokens of one key, from several grants; those that expire first are spent first. */
export class HeldTokens {
  private readonly batches: Batch[] = []
  /** Tokens that may be spent now, and now or later; both are counted again from `recountUs` on. */
  private ready = 0
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

  /** Tokens that may be spent now or later, as of the last time read. */
  get left(): number {
    return this.tokens
  }

  /** Before this no token begins or expires, unless tokens arrive or are spent. */
  get countedUntilUs(): number {
    return this.recountUs
  }

  /** When the first of them expire; `Infinity` when there are none. */
  get untilUs(): number {
    return this.batches[0]?.untilUs ?? Number.POSITIVE_INFINITY
  }

  add(grant: Grant, sentUs: number, arrivedUs: number): void {
    this.recountUs = Number.NEGATIVE_INFINITY
    if (grant.availableNow + grant.availableLater === 0) return
    const { batches } = this
    const batch = new Batch(grant, sentUs, arrivedUs)
    let at = batches.length
    while (at > 0 && (batches[at - 1] as Batch).untilUs > batch.untilUs) at--
    batches.splice(at, 0, batch)
  }

  /** Tokens that may be spent at a time. */
  readyAt(nowUs: number): number {
    if (nowUs >= this.recountUs) this.count(nowUs)
    return this.ready
  }

  /** Spends `cost` tokens if as many may be spent now. @param drawn receives what was spent of each grant. */
  spend(nowUs: number, cost: number, drawn?: Drawn): boolean {
    if (this.readyAt(nowUs) < cost) return false
    this.ready -= cost
    this.tokens -= cost
    this.drop(cost, drawn)
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

  /** When the leased tokens suffice for `cost`, without those that will have expired by then; `Infinity` if they never do. */
  heldUntil(cost: number): number {
    const { batches } = this
    for (let first = 0; first < batches.length; first++) {
      const fromUs = this.heldFrom(first, cost)
      if (fromUs === Number.POSITIVE_INFINITY || (batches[first] as Batch).untilUs > fromUs + RETRY_ROUNDING_US) return fromUs
    }
    return Number.POSITIVE_INFINITY
  }

  private heldFrom(first: number, cost: number): number {
    let missing = cost
    let fromUs = 0
    for (let i = first; i < this.batches.length; i++) {
      const batch = this.batches[i] as Batch
      const tokens = Math.min(missing, batch.left)
      if (tokens > 0) fromUs = Math.max(fromUs, batch.readyFrom(tokens))
      missing -= tokens
      if (missing === 0) return fromUs
    }
    return Number.POSITIVE_INFINITY
  }

  private count(nowUs: number): void {
    const { batches } = this
    let ready = 0
    let left = 0
    let untilUs = Number.POSITIVE_INFINITY
    for (let i = 0; i < batches.length; i++) {
      const batch = batches[i] as Batch
      ready += batch.readyAt(nowUs)
      this.note(batch)
      if (batch.left === 0) batches.splice(i--, 1)
      left += batch.left
      untilUs = Math.min(untilUs, batch.untilChangeUs)
    }
    this.ready = ready
    this.tokens = left
    this.recountUs = untilUs
  }

  private note(batch: Batch): void {
    const tokens = batch.takeEnded()
    if (tokens > 0) this.wasted(tokens / batch.granted)
    if (tokens > 0 && batch.unspentId !== undefined) this.unspent.push({ grantId: batch.unspentId, part: this.part, cost: tokens })
  }

  /** Spends from the lease that expires first on, and drops leases that are used up. */
  private drop(cost: number, drawn: Drawn | undefined): void {
    const { batches } = this
    let missing = cost
    for (let i = 0; missing > 0; i++) {
      const batch = batches[i] as Batch
      const tokens = Math.min(missing, batch.ready)
      batch.drop(tokens)
      if (drawn !== undefined && batch.id !== undefined && tokens > 0) drawn.push({ grantId: batch.id, part: this.part, cost: tokens })
      missing -= tokens
      if (batch.left === 0) batches.splice(i--, 1)
    }
  }

  private clear(): void {
    this.batches.length = 0
    this.recountUs = Number.NEGATIVE_INFINITY
  }
}
