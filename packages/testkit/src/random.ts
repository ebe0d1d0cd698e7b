import { SeededRandom } from 'sluicegate-commands/load/seeded-random.js'

/** Choices of a seeded generator, so that every run can be repeated from one integer. */
export class Random extends SeededRandom {
  /** An integer from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1))
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
