import { Places } from './burst-ledger.js'
import type { Holder } from './holder.js'
import { type BudgetNumbers, type BudgetOptions, QuotaBudget } from './quota-budget.js'
import type { FoundQuota, QuotaLimit } from './quota-rules.js'

const SHORTEST_PAUSE_MS = 50
const PAUSE_MS_OF_BUCKET = 10
const LONGEST_PAUSE_MS = 1_000
/** The same while a data plane waits for its first assignment: none where few have a part. */
const PAUSE_MS_OF_NEW = 0.25
const FEW_BUCKETS = 64

/** What the buckets of one key share: a budget, or the same blanket assignment. */
export class SharedQuota<Bucket> {
  readonly key: string
  readonly policy: string
  /** The client that made it, whose place it has. */
  readonly host: string
  readonly blanket: 'allow' | 'deny' | undefined
  readonly budget: QuotaBudget | undefined
  /** Buckets by what they hold; those whose stream broke included, until nothing of them is in force. */
  readonly byHolder = new Map<Holder, Bucket>()
  /** Places for buckets that hold a part: all of them are looked at together. */
  readonly places: Places
  readonly #byPlane = new Map<string, Set<Holder>>()
  /** Buckets of open streams. */
  readonly buckets = new Set<Bucket>()
  /** When its assignments were planned last. */
  plannedAtMs = Number.NEGATIVE_INFINITY
  /** Whether a data plane waits for its first assignment. */
  hasNewBucket = false
  /** Its part of the figures of the policy. */
  shown: { readonly quotas: number; readonly buckets: number; readonly assignedPerSecond: number } | undefined
  /** Whether another one has taken its place: it only waits for its assignments to end. */
  isRetired = false
  #found: FoundQuota
  #numbers: BudgetNumbers | undefined

  constructor(found: FoundQuota, limit: QuotaLimit, options: BudgetOptions, nowMs: number, host: string, maxBuckets: number) {
    this.places = new Places(maxBuckets)
    this.key = found.key
    this.policy = found.policy
    this.host = host
    this.#found = found
    if (typeof limit === 'string') this.blanket = limit
    else {
      this.#numbers = limit
      this.budget = new QuotaBudget(limit, options, nowMs)
    }
  }

  /** Whether nothing would be lost without it. */
  get isDispensable(): boolean {
    if (this.buckets.size > 0) return false
    return this.budget === undefined || (this.isRetired ? this.budget.size === 0 : this.budget.isFresh)
  }

  /** `bucket` holds what `holder` stands for; `place` names its data plane and the bucket there. */
  hold(holder: Holder, bucket: Bucket, place: string): void {
    this.byHolder.set(holder, bucket)
    const holders = this.#byPlane.get(place)
    if (holders === undefined) this.#byPlane.set(place, new Set([holder]))
    else holders.add(holder)
  }

  letGo(holder: Holder, place: string): void {
    this.byHolder.delete(holder)
    const holders = this.#byPlane.get(place)
    if (holders?.delete(holder) === true && holders.size === 0) this.#byPlane.delete(place)
  }

  /** What is held at `place`, those whose stream broke included. */
  heldAt(place: string): Iterable<Holder> {
    return this.#byPlane.get(place) ?? []
  }

  /** Whether it is worth to plan again: that costs a time for each bucket, and reports of many come in all the time. */
  isWorthPlanning(nowMs: number): boolean {
    const { size } = this.byHolder
    const usualMs = Math.max(SHORTEST_PAUSE_MS, PAUSE_MS_OF_BUCKET * size)
    const pauseMs = Math.min(LONGEST_PAUSE_MS, this.hasNewBucket ? PAUSE_MS_OF_NEW * Math.max(0, size - FEW_BUCKETS) : usualMs)
    return nowMs >= this.plannedAtMs + pauseMs
  }

  /** Found again, by a configuration that may be another one. */
  use(found: FoundQuota): void {
    this.#found = found
  }

  /** Takes over the numbers that are configured now. False where they are of another kind, or none. */
  follow(nowMs: number): boolean {
    const limit = this.#found.limit()
    if (limit === undefined) return false
    if (typeof limit === 'string' || this.budget === undefined) return limit === this.blanket
    if (limit.ratePerSecond !== this.#numbers?.ratePerSecond || limit.burst !== this.#numbers.burst) this.budget.resize(limit, nowMs)
    this.#numbers = limit
    return true
  }
}
