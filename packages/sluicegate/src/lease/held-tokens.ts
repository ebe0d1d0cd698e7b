import { Batch } from './batch.js'
import type { Grant } from './grant.js'

/** `retryAfterMs` is rounded up to whole milliseconds: a caller may return up to one later than was computed. */
export const RETRY_ROUNDING_US = 1000

/** Tokens of a grant that expired unspent. */
export interface Unspent {
  readonly id: number
  readonly tokens: number
}

/** The leased tokens of one key, from several grants; the oldest are spent first. */
export class HeldTokens {
  private readonly batches: Batch[] = []
  /** Tokens that may be spent now, and now or later; both are counted anew from `recountUs` on. */
  private ready = 0
  private tokens = 0
  private recountUs = Number.NEGATIVE_INFINITY
  private unspent: Unspent[] = []

  /** Tokens that may be spent now or later, as of the last time read. */
  get left(): number {
    return this.tokens
  }

  /** Before this no token begins or expires, unless tokens arrive or are spent. */
  get countedUntilUs(): number {
    return this.recountUs
  }

  /** When the oldest of them expire; `Infinity` when there are none. */
  get untilUs(): number {
    return this.batches[0]?.untilUs ?? Number.POSITIVE_INFINITY
  }

  add(grant: Grant, sentUs: number, arrivedUs: number): void {
    if (grant.availableNow + grant.availableLater > 0) this.batches.push(new Batch(grant, sentUs, arrivedUs))
    this.recountUs = Number.NEGATIVE_INFINITY
  }

  /** Tokens that may be spent at a time. */
  readyAt(nowUs: number): number {
    if (nowUs >= this.recountUs) this.count(nowUs)
    return this.ready
  }

  /** Spends `cost` tokens if as many may be spent now. */
  spend(nowUs: number, cost: number): boolean {
    if (this.readyAt(nowUs) < cost) return false
    this.ready -= cost
    this.tokens -= cost
    this.drop(cost)
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
  takeUnspent(): readonly Unspent[] {
    const { unspent } = this
    if (unspent.length > 0) this.unspent = []
    return unspent
  }

  /** When the first returnable tokens expire; `Infinity` when there are none. */
  get backUs(): number {
    let us = Number.POSITIVE_INFINITY
    for (const batch of this.batches) if (batch.id !== undefined) us = Math.min(us, batch.untilUs)
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
    if (tokens > 0 && batch.id !== undefined) this.unspent.push({ id: batch.id, tokens })
  }

  /** Spends from the oldest lease on, and drops leases that are used up. */
  private drop(cost: number): void {
    const { batches } = this
    let missing = cost
    for (let i = 0; missing > 0; i++) {
      const batch = batches[i] as Batch
      const tokens = Math.min(missing, batch.ready)
      batch.drop(tokens)
      missing -= tokens
      if (batch.left === 0) batches.splice(i--, 1)
    }
  }

  private clear(): void {
    this.batches.length = 0
    this.recountUs = Number.NEGATIVE_INFINITY
  }
}
