import type { Entry } from '../envoy/find-rule.js'

const MAX_ENTRIES = 16
const MAX_LENGTH = 1_024

/** What identifies a bucket: entries in the order of their keys, each key once. */
export interface BucketId {
  readonly entries: readonly Entry[]
  /** The same for the same entries, and for no others. */
  readonly text: string
}

/** The id of these entries; undefined for one that has none or an empty one, the same key twice, or too much text. */
export function bucketIdOf(entries: readonly Entry[]): BucketId | undefined {
  if (entries.length === 0 || entries.length > MAX_ENTRIES) return undefined
  const sorted = [...entries].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  let length = 0
  for (const [i, { key, value }] of sorted.entries()) {
    if (key === '' || value === '' || key === sorted[i - 1]?.key) return undefined
    length += key.length + value.length
  }
  if (length > MAX_LENGTH) return undefined
  return { entries: sorted, text: JSON.stringify(sorted.flatMap(({ key, value }) => [key, value])) }
}
