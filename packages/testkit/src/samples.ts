/** Several measurements of one thing. */
export type Summary = ReturnType<typeof summaryOf>

/** Median, quartiles (linear between neighbours) and range. */
export function summaryOf(samples: readonly number[]) {
  if (samples.length === 0) throw new RangeError('no samples')
  const sorted = [...samples].sort((a, b) => a - b)
  return {
    median: quantile(sorted, 0.5),
    lowerQuartile: quantile(sorted, 0.25),
    upperQuartile: quantile(sorted, 0.75),
    min: sorted[0] as number,
    max: sorted.at(-1) as number,
  }
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

/** Each sample over the one measured beside it, in the same round. */
export function ratios(over: readonly number[], under: readonly number[]): number[] {
  return over.map((value, round) => value / (under[round] as number))
}

/** The same of all rounds together. */
export function ratioOf(over: readonly number[], under: readonly number[]): Summary {
  return summaryOf(ratios(over, under))
}

/** Of sorted values, linear between neighbours; NaN of none. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  const at = (sorted.length - 1) * share
  const [below, above] = [sorted[Math.floor(at)] ?? Number.NaN, sorted[Math.ceil(at)] ?? Number.NaN]
  // Both may be infinite.
  return below === above ? below : below + (above - below) * (at - Math.floor(at))
}
