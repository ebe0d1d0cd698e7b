/** Headers of a response: those of `fetch`, or an object by lower-case name, as Node.js and undici have it. */
export type HeaderSource =
  | { get(name: string): string | null | undefined }
  | Readonly<Record<string, string | number | readonly string[] | undefined>>

const MOST_NAMES = 1_000

/** A header's value by its lower-case name; several lines are joined. Undefined if there is none. */
export function headerOf(headers: HeaderSource, name: string): string | undefined {
  if (typeof headers.get === 'function') return textOf(headers.get(name))
  const own = headers as Readonly<Record<string, unknown>>
  return Object.hasOwn(own, name) ? textOf(own[name]) : undefined
}

/** The same headers with lower-case names, for an object with other names. */
export function lowerCased(headers: HeaderSource): HeaderSource {
  if (typeof headers.get === 'function') return headers
  const names = Object.keys(headers).slice(0, MOST_NAMES)
  if (names.every((name) => name === name.toLowerCase())) return headers
  const own = headers as Readonly<Record<string, string>>
  return new Map(names.map((name) => [name.toLowerCase(), own[name] as string]))
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  return Array.isArray(value) && value.every((line) => typeof line === 'string') ? value.join(', ') : undefined
}

/** A header's name and value. Headers are data: the code that has the response sets them. */
export type HeaderPair = readonly [name: string, value: string]

/** A response: one method that replaces a header, one that adds a line. */
interface HeaderTarget {
  set(name: string, value: string): unknown
  append(name: string, value: string): unknown
}

const COOKIE = 'set-cookie'

/** Sets headers. Of two with one name the later replaces the earlier; cookies are added, each on its own line. */
export function putHeaders(pairs: readonly HeaderPair[], target: HeaderTarget): void {
  for (const [name, value] of pairs) {
    if (name.length === COOKIE.length && name.toLowerCase() === COOKIE) target.append(name, value)
    else target.set(name, value)
  }
}
