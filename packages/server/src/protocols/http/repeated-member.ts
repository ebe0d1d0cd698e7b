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
  let string = ''
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]
    if (sign === '"') {
      const end = endOfString(text, at)
      string = text.slice(at, end)
      at = end - 1
    } else if (sign === '{' || sign === '[') depth++
    else if (sign === '}' || sign === ']') depth--
    else if (sign === ':' && depth === 1) {
      // Escapes are undone: "k\u0065y" is "key".
      const name = string.includes('\\') ? (JSON.parse(string) as string) : string.slice(1, -1)
      if (names.has(name)) return name
      names.add(name)
    }
  }
  return undefined
}

/** Behind the quote that ends the string which begins at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}
