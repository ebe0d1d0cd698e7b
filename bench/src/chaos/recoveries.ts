/** Least, median and most. */
export function recoveriesOf({ recoveryMs }: { readonly recoveryMs: readonly number[] }): {
  readonly least: number
  readonly median: number
  readonly most: number
} {
  const sorted = [...recoveryMs].sort((a, b) => a - b)
  const at = (index: number): number => sorted[index] as number
  return { least: at(0), median: at(Math.floor(sorted.length / 2)), most: at(sorted.length - 1) }
}
