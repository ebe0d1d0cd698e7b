import { PolicyError } from './errors.js'

/** More letters than any option has: longer names are not compared. */
const LONGEST = 40
/** Letters that may be wrong in a name that was meant. */
const MOST_WRONG = 2

/** An option that does not exist. */
export interface UnknownOption {
  readonly option: string
  readonly value: unknown
  readonly known: readonly string[]
  /** What takes the options, such as `tokenBucket()`. */
  readonly of?: string | undefined
  /** What to do instead, where that is known. */
  readonly mend?: string | undefined
}

/** The error about it, with the option that may be meant. */
export function unknownOption({ option, value, known, of, mend }: UnknownOption): PolicyError {
  const meant = mend === undefined ? nearest(option.slice(option.lastIndexOf('.') + 1), known) : undefined
  const guess = mend ?? (meant === undefined ? undefined : `did you mean ${meant}?`)
  const list = `is not one of ${known.join(', ')}${of === undefined ? '' : `, which are the options of ${of}`}`
  return new PolicyError('OPTION_UNKNOWN', option, value, guess === undefined ? list : `${list}: ${guess}`)
}

/** Of some names the one that differs least, in at most two letters, but never in most of them; undefined where there is none. */
function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST) return undefined
  const own = name.toLowerCase()
  const ranked = known.map((each) => ({ each, wrong: distance(own, each.toLowerCase()) })).sort((a, b) => a.wrong - b.wrong)
  const [best] = ranked
  return best !== undefined && best.wrong <= Math.min(MOST_WRONG, name.length / 2) ? best.each : undefined
}

/** Letters added, dropped, changed, or swapped with their neighbour. */
function distance(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      const least = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, (last[j - 1] as number) + (same ? 0 : 1))
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(isSwap ? Math.min(least, (before[j - 2] as number) + 1) : least)
    }
    before = last
    last = row
  }
  return last[b.length] as number
}
