/** A header's name and value. Headers are data: the code that has the response sets them. */
export type HeaderPair = readonly [name: string, value: string]

/** A response: one method that replaces a header, one that adds a line. */
export interface HeaderTarget {
  set(name: string, value: string): unknown
  append(name: string, value: string): unknown
}

const COOKIE = 'set-cookie'

/** Sets headers. Of two with one name the later replaces the earlier; cookies are added, each on a line of its own. */
export function putHeaders(pairs: readonly HeaderPair[], target: HeaderTarget): void {
  for (const [name, value] of pairs) {
    if (name.length === COOKIE.length && name.toLowerCase() === COOKIE) target.append(name, value)
    else target.set(name, value)
  }
}
