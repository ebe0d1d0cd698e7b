import type { RateSpec } from '../oracle/emission.js'
import type { Spent } from './sure-excess.js'

/**
 * By how many tokens the worst interval is surely over `burst + limit / window * length`, 0 when none is. As `surelyOver`, on histories of
 * any length: of each token only two times are known between which it was spent, and an interval counts those that lie within.
 */
export function worstSureExcess({ limit, windowMs, burst }: RateSpec, spent: readonly Spent[]): number {
  const perUs = limit / (windowMs * 1000)
  const starts = [...new Set(spent.map(({ fromUs }) => fromUs))].sort((a, b) => a - b)
  const indexOf = new Map(starts.map((fromUs, i) => [fromUs, i]))
  // For each start of an interval: tokens within it so far, plus what its start adds to the budget.
  const levels = new PrefixLevels(starts.map((fromUs) => perUs * (fromUs - (starts[0] ?? 0))))
  let worst = 0
  for (const { fromUs, toUs } of [...spent].sort((a, b) => a.toUs - b.toUs)) {
    // It lies in every interval that begins with it or before.
    levels.raise(indexOf.get(fromUs) as number)
    worst = Math.max(worst, levels.highest - perUs * (toUs - (starts[0] ?? 0)) - burst)
  }
  // Below it are roundings of doubles.
  return worst < 1e-6 ? 0 : worst
}

/** Numbers of which all up to some index are raised by one, and the highest of those that count; each in logarithmic time. */
class PrefixLevels {
  readonly #levels: readonly number[]
  readonly #size: number
  readonly #highest: Float64Array
  readonly #raised: Float64Array

  constructor(levels: readonly number[]) {
    this.#levels = levels
    this.#size = 2 ** Math.ceil(Math.log2(Math.max(1, levels.length)))
    this.#highest = new Float64Array(2 * this.#size).fill(Number.NEGATIVE_INFINITY)
    this.#raised = new Float64Array(2 * this.#size)
  }

  get highest(): number {
    return this.#highest[1] as number
  }

  /** Raises all up to `last`, which counts from now on. */
  raise(last: number): void {
    let node = this.#size + last
    this.#add(node)
    this.#highest[node] = (this.#levels[last] as number) + (this.#raised[node] as number)
    for (; node > 1; node >>= 1) {
      // Of two siblings the right one was raised in part: the left one lies before it.
      if (node % 2 === 1) this.#add(node - 1)
      this.#join(node >> 1)
    }
  }

  #add(node: number): void {
    this.#highest[node] = (this.#highest[node] as number) + 1
    this.#raised[node] = (this.#raised[node] as number) + 1
  }

  #join(node: number): void {
    this.#highest[node] =
      Math.max(this.#highest[2 * node] as number, this.#highest[2 * node + 1] as number) + (this.#raised[node] as number)
  }
}
