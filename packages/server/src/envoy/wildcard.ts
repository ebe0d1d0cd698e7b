/** Whether `value` matches a pattern; `parts` is what stands between its `*`, each of which matches any text, also an empty one. */
export function matchesParts(parts: readonly string[], value: string): boolean {
  const first = parts[0] as string
  const last = parts[parts.length - 1] as string
  if (parts.length === 1) return value === first
  if (value.length < first.length + last.length || !value.startsWith(first) || !value.endsWith(last)) return false
  // The leftmost place of each part leaves the most for the parts after it.
  const end = value.length - last.length
  let from = first.length
  for (let i = 1; i < parts.length - 1; i++) {
    const part = parts[i] as string
    const at = value.indexOf(part, from)
    if (at < 0 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}
