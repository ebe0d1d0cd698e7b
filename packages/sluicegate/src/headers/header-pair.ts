/** A header's name and value. Headers are data: whoever has the response sets them. */
export type HeaderPair = readonly [name: string, value: string]

/** Where headers go: one call that replaces, one that adds a line. */
export interface HeaderTarget {
  set(name: string, value: string): unknown
  append(name: string, value: string): unknown
}

const COOKIE = 'set-cookie'

/** The later of two replaces the earlier, but for cookies, of which each is a line of its own. */
export function putHeaders(pairs: readonly HeaderPair[], target: HeaderTarget): void {
  for (const [name, value] of pairs) {
    if (name.length === COOKIE.length && name.toLowerCase() === COOKIE) target.append(name, value)
    else target.set(name, value)
  }
}
