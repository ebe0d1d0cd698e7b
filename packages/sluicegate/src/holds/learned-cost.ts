/** Each bucket ends at this multiple of the one before: an expectation is exact to 2.5 %. */
const STEP = 1.05
const BUCKETS = Math.ceil(Math.log(Number.MAX_SAFE_INTEGER) / Math.log(STEP)) + 1
/** At this many costs each counts for half: what was long ago fades. */
const MOST_COUNTED = 1024
/** Costs after which the expectation is found out anew. */
const MOST_AT_ONCE = 32
/** Fewer say nothing of a key, or of a policy. */
const ENOUGH_OF_KEY = 200
const ENOUGH = 10
/** Keys with a sketch of their own, the busiest of late. */
const MOST_KEYS = 256

/**
 * The share of works that cost no more than what is expected of each. What is held and not used costs nothing, as it is free for the next work when this
 * one closes; what is held of too few cuts those under way. Measured by `npm run bench:holds -- --sweep`.
 */
const LEARNED_QUANTILE = 0.99

/** Buckets beside those that costs fell into for which there is room, too. */
const MARGIN = 16

/** Costs of late in bounded memory: counts by size, each size a fixed ratio above the one before (DDSketch, Masson, Rim and Lee, VLDB 2019). */
class CostSketch {
  count = 0
  /** Turns that it stays. */
  chances = 0
  /** From this bucket on. */
  private from = 0
  private counts = new Float32Array(0)
  private known: number | undefined
  /** Costs since it was found out. */
  private news = 0

  add(cost: number): void {
    const bucket = bucketOf(cost)
    this.reach(bucket)
    const i = bucket - this.from
    this.counts[i] = (this.counts[i] as number) + 1
    if (++this.count >= MOST_COUNTED) this.fade()
    if (this.count < MOST_AT_ONCE || ++this.news >= MOST_AT_ONCE) {
      this.news = 0
      this.known = undefined
    }
  }

  /** The cost that {@link LEARNED_QUANTILE} of all costs are at most, as of a few costs ago. */
  expected(): number {
    if (this.known !== undefined) return this.known
    let left = LEARNED_QUANTILE * this.count
    let i = 0
    for (; i < this.counts.length - 1; i++) {
      left -= this.counts[i] as number
      if (left <= 0) break
    }
    this.known = Math.max(1, Math.round((2 * STEP ** (this.from + i)) / (STEP + 1)))
    return this.known
  }

  /** Costs of one kind of work fall into few of all buckets. */
  private reach(bucket: number): void {
    const { from, counts } = this
    const end = from + counts.length
    if (bucket >= from && bucket < end) return
    const first = counts.length === 0 || bucket < from ? Math.max(0, bucket - MARGIN) : from
    const last = bucket < end ? end : Math.min(BUCKETS, bucket + MARGIN + 1)
    this.counts = new Float32Array(last - first)
    this.counts.set(counts, counts.length === 0 ? 0 : from - first)
    this.from = first
  }

  private fade(): void {
    this.count = 0
    for (let i = 0; i < this.counts.length; i++) this.count += this.counts[i] = (this.counts[i] as number) / 2
  }
}

function bucketOf(cost: number): number {
  return cost <= 1 ? 0 : Math.min(BUCKETS - 1, Math.ceil(Math.log(cost) / Math.log(STEP)))
}

/** Of the burst, what is held for work of which nothing is known. */
const UNKNOWN_SHARE = 0.01

/** What is asked of work that is to begin. */
interface Expecting {
  readonly expect: number | 'learned'
  /** `Infinity`: no bound. */
  readonly most: number
}

/** What work is expected to cost, by what it cost of late: of the key where it is busy enough, else of all keys. */
export class LearnedCost {
  private readonly ofAll = new CostSketch()
  private readonly ofKeys = new Map<string, CostSketch>()

  add(key: string, cost: number): void {
    this.ofAll.add(cost)
    const known = this.ofKeys.get(key)
    if (known === undefined && this.ofKeys.size >= MOST_KEYS && !this.makeRoom()) return
    const own = known ?? new CostSketch()
    own.add(cost)
    own.chances = Math.floor(Math.log2(own.count + 1))
    if (known === undefined) this.ofKeys.set(key, own)
  }

  /** Looks at the next key in turn: one that closes often stays, for as many turns as its count has bits. */
  private makeRoom(): boolean {
    for (const [key, sketch] of this.ofKeys) {
      this.ofKeys.delete(key)
      if (--sketch.chances < 0) return true
      this.ofKeys.set(key, sketch)
      return false
    }
    return true
  }

  /** What is held for work of which this is asked. @param burst of the narrowest policy, which bounds what is learned. */
  expected({ expect, most }: Expecting, key: string, burst: number): number {
    if (expect !== 'learned') return Math.min(expect, most)
    const learned = this.of(key)
    if (learned !== undefined) return Math.min(learned, most, burst)
    // A bound at or above the burst says nothing of the cost, and would hold all there is.
    return most < burst ? most : Math.max(1, Math.floor(burst * UNKNOWN_SHARE))
  }

  /** Undefined while too little is known. */
  of(key: string): number | undefined {
    const own = this.ofKeys.get(key)
    if (own !== undefined && own.count >= ENOUGH_OF_KEY) return own.expected()
    return this.ofAll.count < ENOUGH ? undefined : this.ofAll.expected()
  }
}
