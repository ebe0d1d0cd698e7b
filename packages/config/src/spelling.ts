/**
 * The nearest of `words` to `typed`: at most one edit away for each three characters, where a
 * swap of neighbours counts as one. Undefined when none is near.
 */
export function nearest(typed: string, words: Iterable<string>): string | undefined {
  const wanted = normal(typed)
  // Long enough for any option name; keeps the table small for a hostile name.
  if (wanted.length > 40) return undefined
  let best: string | undefined
  let bestEdits = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const word of words) {
    const edits = distance(wanted, normal(word), bestEdits)
    if (edits < bestEdits) [best, bestEdits] = [word, edits]
  }
  return best
}

/** `; did you mean "limit"?`, or nothing. */
export function didYouMean(typed: string, words: Iterable<string>): string {
  const word = nearest(typed, words)
  return word === undefined ? '' : `; did you mean "${word}"?`
}

/** Normalizes a spelling: maxKeys, max_keys and MAX-KEYS become max-keys. */
function normal(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase()
}

/**
 * Optimal string alignment: insertions, deletions, replacements and swaps of neighbours. Stops at `enough`, since a remote
 * caller may request a suggestion among a thousand long names.
 *
 * Source: L. Boytsov, "Indexing methods for approximate dictionary searching", ACM JEA 16, 2011, section 2.
 */
function distance(a: string, b: string, enough: number): number {
  if (Math.abs(a.length - b.length) >= enough) return enough
  let last: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const [beforeLast, above] = [last, row]
    row = [i]
    last = above
    for (let j = 1; j <= b.length; j++) {
      const replaced = (above[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (beforeLast[j - 2] as number) + 1 : enough
      row.push(Math.min(replaced, swapped, (above[j] as number) + 1, (row[j - 1] as number) + 1))
    }
    // Both of the last two rows, since a swap reaches back over one.
    if (Math.min(...row, ...above) >= enough) return enough
  }
  return row[b.length] as number
}
