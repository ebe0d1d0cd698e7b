import type { Grant } from './authority.js'
import { Batch } from './batch.js'
import { LeaseDemand } from './lease-demand.js'
import { CLOCK_DRIFT } from './leasing.js'

/** A denial that is known for longer is looked at again, as somebody may have changed the key by hand. */
const LONGEST_UNASKED_HORIZONS = 20

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
  private last: Answer | undefined
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
    if (this.isStillDenied(nowUs, cost) || this.readyAt(nowUs) < cost) return false
    this.deniedUs = Number.NEGATIVE_INFINITY
    let left = cost
    for (const batch of this.batches) {
      const tokens = Math.min(left, batch.readyAt(nowUs))
      if (tokens === 0) continue
      batch.drop(tokens)
      left -= tokens
      if (left === 0) break
    }
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
    const isInTime = withHeldUs !== undefined && (this.batches[0] as Batch).untilUs > withHeldUs
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
  standing(nowUs: number): { readonly remaining: number; readonly resetAfterMs: number } {
    const { last } = this
    if (last === undefined) return { remaining: 0, resetAfterMs: 0 }
    const sinceUs = nowUs - last.atUs
    const resetAfterMs = Math.max(0, Math.ceil((last.grant.untilNewUs - sinceUs) / 1000))
    return { remaining: last.grant.remaining + this.readyAt(nowUs), resetAfterMs }
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
    this.askUs = 0
  }

  /** The key was changed by hand: nothing that is held or on its way is to be spent. */
  forget(nowUs: number): void {
    this.forgetDenial(nowUs)
    this.forgottenUs = nowUs
    this.batches.length = 0
  }

  readyAt(nowUs: number): number {
    const { batches } = this
    let ready = 0
    for (let i = 0; i < batches.length; i++) ready += (batches[i] as Batch).readyAt(nowUs)
    while (batches[0]?.left === 0) batches.shift()
    return ready
  }

  private get left(): number {
    let left = 0
    for (const batch of this.batches) left += batch.left
    return left
  }

  /** When what is held is enough for a cost, without those that would be void by then; `Infinity` when it never is. */
  private heldUntil(cost: number): number {
    const { batches } = this
    for (let first = 0; first < batches.length; first++) {
      const fromUs = this.heldFrom(first, cost)
      if (fromUs === Number.POSITIVE_INFINITY || (batches[first] as Batch).untilUs > fromUs) return fromUs
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
