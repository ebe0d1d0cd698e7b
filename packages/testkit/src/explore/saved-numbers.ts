import type { ExploredPolicy } from './explored-policy.js'

const VERSION_AND_FORM = 9
const HALF = 2 ** 32
/** Places of the numbers of a saved bucket, see assembly/algorithms/saved-rate.ts. */
const TIME = 5
const DEBT = 6

/** The numbers of one key, as the core's host keeps them. */
export class SavedNumbers {
  private numbers: number[] = []
  private given: readonly number[] = []
  private at = 0

  begin(): void {
    this.numbers.length = 0
    this.at = 0
  }

  put(number: number): void {
    this.numbers.push(number)
  }

  next(): number {
    return this.given[this.at++] ?? Number.NaN
  }

  /** A bucket that owes `debt` units at `nowUs`. */
  give({ unitsPerUs, unitsPerToken, burst }: ExploredPolicy, nowUs: number, debt: number): void {
    this.given = [VERSION_AND_FORM, 0, unitsPerUs, unitsPerToken, burst * unitsPerToken, 2 * nowUs, 2 * debt, 0]
  }

  /** What the bucket that was saved owes at `nowUs`, in units of the policy that it was saved under. */
  debtAt(nowUs: number): number {
    const [, , unitsPerUs = 1] = this.numbers
    const folded = (this.numbers[DEBT] as number) + (this.numbers[DEBT + 1] as number) * HALF
    return Math.max(0, unfolded(folded) - (nowUs - unfolded(this.numbers[TIME] as number)) * unitsPerUs)
  }
}

function unfolded(folded: number): number {
  return folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2
}
