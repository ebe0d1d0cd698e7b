import type { Random } from '../random.js'

/** Ranks whose frequencies fall as a power of the rank, in constant time each: Vose's form of the alias method. */
export class Zipf {
  readonly #random: Random
  readonly #chance: Float64Array
  readonly #alias: Uint32Array

  constructor(size: number, exponent: number, random: Random) {
    this.#random = random
    this.#chance = new Float64Array(size)
    this.#alias = new Uint32Array(size)
    let sum = 0
    for (let rank = 0; rank < size; rank++) sum += this.#weight(rank, exponent)
    const low: number[] = []
    const high: number[] = []
    for (let rank = 0; rank < size; rank++) {
      this.#chance[rank] = (this.#weight(rank, exponent) * size) / sum
      if ((this.#chance[rank] as number) < 1) low.push(rank)
      else high.push(rank)
    }
    while (low.length > 0 && high.length > 0) {
      const less = low.pop() as number
      const more = high.at(-1) as number
      this.#alias[less] = more
      this.#chance[more] = (this.#chance[more] as number) - (1 - (this.#chance[less] as number))
      if ((this.#chance[more] as number) >= 1) continue
      high.pop()
      low.push(more)
    }
    for (const rank of [...low, ...high]) this.#chance[rank] = 1
  }

  /** The next rank, from 0. */
  next(): number {
    const at = this.#random.integer(0, this.#chance.length - 1)
    return this.#random.chance(this.#chance[at] as number) ? at : (this.#alias[at] as number)
  }

  #weight(rank: number, exponent: number): number {
    return (rank + 1) ** -exponent
  }
}
