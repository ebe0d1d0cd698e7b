/** Strings and the signs that determine their depth. The rest of JSON (numbers, literals, space) is irrelevant to names. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]/g

/**
 * The first name that the object in `text` has twice; undefined where each is there once. `JSON.parse` takes the last of them and a gateway may have looked
 * at the first (RFC 8259, section 4). Only the outermost object counts, since no parameter is an object.
 *
 * @param text what `JSON.parse` takes for an object: then a string before a colon at depth 1 is a name. A parser that reports
 * such names would have to read the text a second time as well; this function reads nothing but names.
 */
export function repeatedMember(text: string): string | undefined {
  const names = new Set<string>()
  let depth = 0
  let before = ''
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    else if (token === ':' && depth === 1) {
      // Escapes are undone: "k\u0065y" is "key".
      const name = JSON.parse(before) as string
      if (names.has(name)) return name
      names.add(name)
    }
    before = token
  }
  return undefined
}
