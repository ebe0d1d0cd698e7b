import { SeededRandom } from 'sluicegate-commands/load/seeded-random.js'

/** Choices of a seeded generator, so that every run can be repeated from one integer. */
export class Random extends SeededRandom {
  readonly seed: number

  constructor(seed: number) {
    super(seed)
    this.seed = seed
  }

  /** An integer from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return Math.min(high, low + Math.floor(this.fraction() * (high - low + 1)))
  }

  /** An integer from `low` (>= 1) to `high` whose *magnitude* is even: 1 to 9 is as likely as 1,000,000 to 9,999,999. */
  magnitude(low: number, high: number): number {
    const power = Math.log(low) + this.fraction() * (Math.log(high + 1) - Math.log(low))
    return Math.min(high, Math.max(low, Math.floor(Math.exp(power))))
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.integer(0, choices.length - 1)] as T
  }

  /** A gap between independent arrivals: exponential, with this mean. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.fraction())
  }
}

/**
 * Draws ranks 0 to `count - 1` with probability proportional to `1 / (rank + 1) ** exponent`, in constant time.
 *
 * Source: A. J. Walker's alias method, 1977, its table built as by M. D. Vose, 1991.
 */
export class Zipf {
  private readonly share: Float64Array
  private readonly alias: Uint32Array

  constructor(count: number, exponent: number) {
    const weights = Float64Array.from({ length: count }, (_, rank) => (rank + 1) ** -exponent)
    const mean = weights.reduce((sum, weight) => sum + weight, 0) / count
    this.share = weights.map((weight) => weight / mean)
    this.alias = Uint32Array.from({ length: count }, (_, rank) => rank)
    const [rich, poor] = [[] as number[], [] as number[]]
    for (const [rank, share] of this.share.entries()) (share < 1 ? poor : rich).push(rank)
    for (let from = rich.at(-1); from !== undefined && poor.length > 0; from = rich.at(-1)) {
      const to = poor.pop() as number
      this.alias[to] = from
      this.share[from] = (this.share[from] as number) - (1 - (this.share[to] as number))
      if ((this.share[from] as number) < 1) poor.push(rich.pop() as number)
    }
  }

  draw(random: Random): number {
    const rank = random.integer(0, this.share.length - 1)
    return random.fraction() < (this.share[rank] as number) ? rank : (this.alias[rank] as number)
  }
}
