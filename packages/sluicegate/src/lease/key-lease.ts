import type { Grant } from './authority.js'
import { Batch } from './batch.js'

/** Of what was handed out last, so much is left when more is fetched. */
const LOW_SHARE = 0.25
/** Demand is looked at over at least this long. */
const LEAST_SPAN_US = 1_000
/** Demand is met a little more than in full. */
const RESERVE = 1.25

/** The authority's last answer. */
interface Answer {
  readonly grant: Grant
  readonly atUs: number
}

/** What one process holds of one key, and knows of it: pure, told the time by whoever asks. */
export class KeyLease {
  /** The lease that is being fetched. */
  asking: Promise<boolean> | undefined
  /** Tokens that callers wait for. */
  waiting = 0
  /** Asking before makes no sense. */
  askUs = 0
  private readonly batches: Batch[] = []
  private last: Answer | undefined
  private isShort = false
  /** Tokens asked for here since the last lease was fetched, and since when. */
  private demand = 0
  private sinceUs: number
  /** Tokens of the last lease, and of them those that were spent. */
  private granted = 0
  private spent = 0
  private pace = 0

  constructor(nowUs: number) {
    this.sinceUs = nowUs
  }

  /** Notes what is asked for, once each. */
  ask(cost: number): void {
    this.demand += cost
  }

  /** Spends so many tokens, if they are here. */
  spend(nowUs: number, cost: number): boolean {
    if (this.readyAt(nowUs) < cost) return false
    let left = cost
    for (const batch of this.batches) {
      const tokens = Math.min(left, batch.readyAt(nowUs))
      if (tokens === 0) continue
      batch.drop(tokens)
      left -= tokens
      if (left === 0) break
    }
    this.spent += cost
    return true
  }

  /** When a cost that is not here would pass as far as is known; undefined when it is to be asked for. */
  deniedUntil(nowUs: number, cost: number): number | undefined {
    const held = this.heldUntil(cost)
    if (held !== undefined) return held
    if (this.last === undefined || !this.isShort) return undefined
    const { grant, atUs } = this.last
    const freeUs = grant.untilFreeFor(cost)
    const untilUs = freeUs === undefined ? atUs + grant.blockedUs : atUs + Math.max(grant.blockedUs, freeUs)
    return untilUs > nowUs ? untilUs : undefined
  }

  /** Whether it is time to fetch more, for those who will ask soon. */
  isLow(nowUs: number): boolean {
    return nowUs >= this.askUs && this.demand > 0 && this.left <= LOW_SHARE * this.granted
  }

  /** How many tokens to ask for, for the demand of a horizon: at most twice what was spent of the last lease, so that little is lost when it ends. */
  want(nowUs: number, horizonUs: number): number {
    const { waiting } = this
    this.waiting = 0
    const spanUs = Math.max(LEAST_SPAN_US, nowUs - this.sinceUs)
    this.pace = Math.max(this.demand / spanUs, this.pace / 2)
    const most = Math.max(waiting, 2 * this.spent, 1)
    this.demand = 0
    this.sinceUs = nowUs
    return Math.min(most, Math.max(waiting, Math.ceil(this.pace * horizonUs * RESERVE)))
  }

  /** Takes in what was asked for at `sentUs` and came at `arrivedUs`. */
  take(grant: Grant, want: number, sentUs: number, arrivedUs: number): void {
    this.granted = grant.ready + grant.later
    this.spent = 0
    if (this.granted > 0) this.batches.push(new Batch(grant, sentUs, arrivedUs))
    this.isShort = this.granted < want
    this.last = { grant, atUs: arrivedUs }
    this.askUs = this.isShort ? arrivedUs + grant.askAfterUs : arrivedUs
  }

  /** Whether anything is held. */
  holds(nowUs: number): boolean {
    return this.readyAt(nowUs) > 0 || this.left > 0
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
    return this.asking === undefined && this.readyAt(nowUs) === 0 && this.left === 0 && this.deniedUntil(nowUs, 1) === undefined
  }

  /** Forgets all: the state was changed by hand. */
  forget(): void {
    this.batches.length = 0
    this.last = undefined
    this.isShort = false
    this.askUs = 0
  }

  readyAt(nowUs: number): number {
    let ready = 0
    for (const batch of this.batches) ready += batch.readyAt(nowUs)
    while (this.batches.length > 0 && this.batches[0]?.left === 0) this.batches.shift()
    return ready
  }

  private get left(): number {
    let left = 0
    for (const batch of this.batches) left += batch.left
    return left
  }

  /** When what is held is enough for a cost. */
  private heldUntil(cost: number): number | undefined {
    let missing = cost
    for (const batch of this.batches) {
      if (batch.left >= missing) return batch.readyFrom(missing)
      missing -= batch.left
    }
    return undefined
  }
}
