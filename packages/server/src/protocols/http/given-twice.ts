/**
 * Whether a header field stands more than once in `rawHeaders`, names and values in turn. Of most fields Node keeps the first, and a proxy
 * may have used the last.
 */
export function isGivenTwice(rawHeaders: readonly string[], lowerCaseName: string): boolean {
  let times = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) times++
  }
  return times > 1
}
