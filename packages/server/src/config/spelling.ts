/**
 * The word of `words` that `typed` was most likely meant to be: at most one edit away for each three characters, where a
 * swap of neighbours counts as one. Undefined when nothing is near.
 */
export function nearest(typed: string, words: Iterable<string>): string | undefined {
  const wanted = normal(typed)
  // Long enough for any option name; keeps the table small for a hostile name.
  if (wanted.length > 40) return undefined
  let best: string | undefined
  let bestEdits = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const word of words) {
    const edits = distance(wanted, normal(word))
    if (edits < bestEdits) [best, bestEdits] = [word, edits]
  }
  return best
}

/** `; did you mean "limit"?`, or nothing. */
export function didYouMean(typed: string, words: Iterable<string>): string {
  const word = nearest(typed, words)
  return word === undefined ? '' : `; did you mean "${word}"?`
}

/** maxKeys, max_keys and MAX-KEYS are all max-keys. */
function normal(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase()
}

/**
 * Optimal string alignment: insertions, deletions, replacements and swaps of neighbours.
 *
 * Source: L. Boytsov, "Indexing methods for approximate dictionary searching", ACM JEA 16, 2011, section 2.
 */
function distance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= a.length; i++) {
    rows[i] = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY
      ;(rows[i] as number[])[j] = Math.min(replaced, swapped, at(i - 1, j) + 1, at(i, j - 1) + 1)
    }
  }
  return at(a.length, b.length)
}
