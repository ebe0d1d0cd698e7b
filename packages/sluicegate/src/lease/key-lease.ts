import type { Grant } from './authority.js'
import { Batch } from './batch.js'
import { LeaseDemand } from './lease-demand.js'
import { CLOCK_DRIFT } from './leasing.js'

/** A denial that is known for longer is looked at again, as somebody may have changed the key by hand. */
const LONGEST_UNASKED_HORIZONS = 20

/** A wait is told in whole milliseconds: who comes back does so up to one later than was foreseen. */
const TOLD_US = 1000

/** Whether the authority answered, and in time for what it gave to be spent. */
export type Asking = 'in time' | 'late' | 'out'

/** What is asked of the authority, and when. */
export interface Asked {
  readonly want: number
  readonly least: number
  readonly sentUs: number
}

/** The authority's last answer. */
interface Answer {
  readonly grant: Grant
  readonly atUs: number
  /** It was less than was wanted. */
  readonly isShort: boolean
}

/** What one process holds of one key, and knows of it: pure, told the time by whoever asks. */
export class KeyLease {
  /** The lease that is being fetched. */
  asking: Promise<Asking> | undefined
  readonly demand: LeaseDemand
  private readonly horizonUs: number
  private readonly batches: Batch[] = []
  /** Tokens that may be spent, and those that may be now or later, before a time from which they are to be counted anew. */
  private ready = 0
  private left = 0
  private countedUntilUs = Number.NEGATIVE_INFINITY
  private last: Answer | undefined
  /** What the authority had left when it answered last, and when the key is as good as new there. */
  private remainingThere = 0
  private newAtUs = 0
  /** Asking before makes no sense. */
  private askUs = 0
  /** What was asked for until then is not to be spent any more; what was refused, not to be relied on. */
  private forgottenUs = Number.NEGATIVE_INFINITY
  private reopenedUs = Number.NEGATIVE_INFINITY
  /** A cost that the authority refused by itself, and until when. */
  private refusedCost = 0
  private refusedUs = 0
  /** The cost that was denied last, and until when that stays so: as long as nothing is spent, comes or is forgotten. */
  private deniedCost = 0
  private deniedUs = Number.NEGATIVE_INFINITY
  constructor(nowUs: number, horizonUs: number) {
    this.demand = new LeaseDemand(nowUs, horizonUs)
    this.horizonUs = horizonUs
  }

  /** Spends so many tokens, if they are here. */
  spend(nowUs: number, cost: number): boolean {
    if (this.readyAt(nowUs) < cost) return false
    this.deniedUs = Number.NEGATIVE_INFINITY
    this.ready -= cost
    this.left -= cost
    this.drop(cost)
    this.demand.spent(cost)
    return true
  }

  /** When a cost that is not here would pass as far as is known; undefined when it is to be asked for. */
  deniedUntil(nowUs: number, cost: number): number | undefined {
    if (this.isStillDenied(nowUs, cost)) return this.deniedUs
    const untilUs = this.foreseenUntil(nowUs, cost)
    this.deniedCost = cost
    this.deniedUs = untilUs ?? Number.NEGATIVE_INFINITY
    return untilUs
  }

  private isStillDenied(nowUs: number, cost: number): boolean {
    return nowUs < this.deniedUs && cost === this.deniedCost
  }

  private foreseenUntil(nowUs: number, cost: number): number | undefined {
    if (this.last === undefined) return undefined
    const heldUs = this.heldUntil(cost)
    if (heldUs > nowUs && heldUs < Number.POSITIVE_INFINITY) return heldUs
    if (!this.last.isShort) return undefined
    const { left } = this
    const withHeldUs = left > 0 && left < cost ? this.knownUntil(this.last, cost - left) : undefined
    const isInTime = withHeldUs !== undefined && (this.batches[0] as Batch).untilUs > withHeldUs + TOLD_US
    const untilUs = (isInTime ? withHeldUs : this.knownUntil(this.last, cost)) ?? (cost === this.refusedCost ? this.refusedUs : 0)
    return untilUs > nowUs ? untilUs : undefined
  }

  /** Notes what the authority said of a cost that was asked for apart. */
  refuse(cost: number, untilUs: number): void {
    this.refusedCost = cost
    this.refusedUs = untilUs
  }

  /** Whether it is time to fetch more, for those who will ask soon. */
  isLow(nowUs: number): boolean {
    return nowUs >= this.askUs && this.demand.isLow(this.left)
  }

  /** What to ask for now. */
  want(nowUs: number): Asked {
    return { ...this.demand.wanted(nowUs, this.readyAt(nowUs)), sentUs: nowUs }
  }

  /** Takes in what was asked for. */
  take(grant: Grant, { want, sentUs }: Asked, arrivedUs: number): void {
    if (sentUs <= this.forgottenUs) return
    this.deniedUs = Number.NEGATIVE_INFINITY
    const granted = grant.ready + grant.later
    this.demand.given(granted)
    if (grant.blockedUs > 0) this.batches.length = 0
    if (granted > 0) this.batches.push(new Batch(grant, sentUs, arrivedUs))
    this.countedUntilUs = Number.NEGATIVE_INFINITY
    this.remainingThere = grant.remaining
    this.newAtUs = arrivedUs + grant.untilNewUs
    const isShort = granted < want && sentUs > this.reopenedUs
    this.last = { grant, atUs: arrivedUs, isShort }
    const afterUs = Math.min(Math.max(grant.askAfterUs, grant.blockedUs), LONGEST_UNASKED_HORIZONS * this.horizonUs)
    this.askUs = isShort ? arrivedUs + afterUs : arrivedUs
  }

  /** The authority could not be asked: nobody is sent ahead of need for a while. */
  failed(nowUs: number): void {
    this.askUs = nowUs + this.horizonUs
  }

  /** What is left of the key, here and where the lease came from, as far as is known. */
  remainingAt(nowUs: number): number {
    return this.remainingThere + this.readyAt(nowUs)
  }

  /** Milliseconds until the key is as good as new, as far as is known. */
  resetAfterMs(nowUs: number): number {
    return nowUs < this.newAtUs ? Math.ceil((this.newAtUs - nowUs) / 1000) : 0
  }

  /** Whether it may be forgotten: nothing is held, and nothing known. */
  isIdle(nowUs: number): boolean {
    if (this.asking !== undefined || this.demand.isWaitedFor || this.readyAt(nowUs) > 0 || this.left > 0) return false
    const { last } = this
    return last === undefined || !last.isShort || last.atUs + Math.max(last.grant.blockedUs, last.grant.untilFreeUs) <= nowUs
  }

  /** The key was given something back: what is known of it is not true any more, what is held is. */
  forgetDenial(nowUs: number): void {
    this.reopenedUs = nowUs
    this.deniedUs = Number.NEGATIVE_INFINITY
    this.refusedCost = 0
    this.last = undefined
    this.remainingThere = 0
    this.newAtUs = 0
    this.askUs = 0
  }

  /** The key was changed by hand: nothing that is held or on its way is to be spent. */
  forget(nowUs: number): void {
    this.forgetDenial(nowUs)
    this.forgottenUs = nowUs
    this.batches.length = 0
    this.countedUntilUs = Number.NEGATIVE_INFINITY
  }

  /** Tokens that may be spent at a time. */
  readyAt(nowUs: number): number {
    if (nowUs >= this.countedUntilUs) this.count(nowUs)
    return this.ready
  }

  private count(nowUs: number): void {
    const { batches } = this
    let ready = 0
    let left = 0
    let untilUs = Number.POSITIVE_INFINITY
    for (let i = 0; i < batches.length; i++) {
      const batch = batches[i] as Batch
      ready += batch.readyAt(nowUs)
      if (batch.left === 0) batches.splice(i--, 1)
      left += batch.left
      untilUs = Math.min(untilUs, batch.untilChangeUs)
    }
    this.ready = ready
    this.left = left
    this.countedUntilUs = untilUs
  }

  /** From the oldest lease on; those that are used up are not kept. */
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

  /** When what is held is enough for a cost, without those that would be void by then; `Infinity` when it never is. */
  private heldUntil(cost: number): number {
    const { batches } = this
    for (let first = 0; first < batches.length; first++) {
      const fromUs = this.heldFrom(first, cost)
      if (fromUs === Number.POSITIVE_INFINITY || (batches[first] as Batch).untilUs > fromUs + TOLD_US) return fromUs
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

  /**
   * When so many tokens would pass at the authority. A token that is leased ahead of that time begins a little later by this clock, which
   * may be too fast: who comes back finds it ready.
   */
  private knownUntil({ grant, atUs }: Answer, tokens: number): number | undefined {
    const freeUs = grant.untilFreeFor(tokens)
    if (freeUs === undefined) return grant.blockedUs > 0 ? atUs + grant.blockedUs : undefined
    return atUs + Math.max(grant.blockedUs, freeUs + Math.ceil(Math.min(freeUs, this.horizonUs) / CLOCK_DRIFT))
  }
}
