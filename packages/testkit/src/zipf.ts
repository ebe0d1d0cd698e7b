import type { Random } from './random.js'

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
