const encoder = /* @__PURE__ */ new TextEncoder()

const SURROGATE = /[\uD800-\uDFFF]/
/** A surrogate without its other half, which UTF-8 has no bytes for. */
const LONE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

/** The bytes of any string, different ones for different strings: UTF-8, with a lone surrogate as three bytes that UTF-8 never has. */
export function storedKey(key: string): Uint8Array {
  if (!SURROGATE.test(key) || !LONE.test(key)) return encoder.encode(key)
  const bytes: number[] = []
  for (const character of key) {
    const code = character.codePointAt(0) as number
    if (code < 0xd800 || code > 0xdfff) bytes.push(...encoder.encode(character))
    else bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f))
  }
  return Uint8Array.from(bytes)
}
