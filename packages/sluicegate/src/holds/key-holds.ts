/** Slots a ttl, at least: the ends of holds are rounded up to one, so what a key keeps does not grow with the number of its holds. */
const SLOTS = 8

/** The latest reading of a limiter's clock: a slot that has ended stays so after a step back. */
export interface LatestTime {
  us: number
}

/** The width of the slots of holds with this time to live: a power of two, so that those of several times share their ends. */
export function slotUs(ttlUs: number): number {
  return 2 ** Math.floor(Math.log2(Math.max(SLOTS, ttlUs) / SLOTS))
}

/** The end of a hold that was renewed at `nowUs`. */
export function endOf(nowUs: number, ttlUs: number, widthUs: number): number {
  return Math.ceil((nowUs + ttlUs) / widthUs) * widthUs
}

/** The tokens that are held of one key, by the time at which their holds end. */
export class KeyHolds {
  /** In all slots that have not ended, as of the last {@link KeyHolds.at}. */
  total = 0
  /** Ascending. */
  private readonly ends: number[] = []
  private readonly sums: number[] = []

  /** What is held at a time: slots that have ended count no more. */
  at(us: number): number {
    while ((this.ends[0] as number) <= us) {
      this.total -= this.sums.shift() as number
      this.ends.shift()
    }
    return this.total
  }

  add(endUs: number, tokens: number): void {
    if (tokens === 0) return
    this.total += tokens
    let i = this.ends.length
    while (i > 0 && (this.ends[i - 1] as number) > endUs) i--
    if (this.ends[i - 1] === endUs) this.sums[i - 1] = (this.sums[i - 1] as number) + tokens
    else {
      this.ends.splice(i, 0, endUs)
      this.sums.splice(i, 0, tokens)
    }
  }

  /** Takes tokens from a slot that has not ended. */
  remove(endUs: number, tokens: number): void {
    if (tokens === 0) return
    const i = this.ends.lastIndexOf(endUs)
    if (i < 0) return
    this.total -= tokens
    const left = (this.sums[i] as number) - tokens
    if (left > 0) this.sums[i] = left
    else {
      this.ends.splice(i, 1)
      this.sums.splice(i, 1)
    }
  }

  /** When the last slot ends. */
  get lastUs(): number {
    return this.ends[this.ends.length - 1] ?? Number.NEGATIVE_INFINITY
  }

  /** What is still held from each time on, the present first: pairs of a time and the tokens. */
  *falls(nowUs: number): Generator<readonly [fromUs: number, held: number]> {
    let held = this.total
    yield [nowUs, held]
    for (let i = 0; i < this.ends.length; i++) {
      held -= this.sums[i] as number
      yield [this.ends[i] as number, held]
    }
  }
}
