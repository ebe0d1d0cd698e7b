const SLOTS = 1 << 16
const MAX_CACHED_BYTES = 64

/**
 * Short texts out of bytes. A log repeats its values, and a call into the runtime for each of them costs more than all the rest of a line:
 * a text that was made before is found by its bytes. Bytes are Latin-1, so that every value of a line has a text and no two share one.
 */
export class TextCache {
  readonly #texts: string[] = new Array(SLOTS).fill('')

  read(bytes: Buffer, start: number, end: number): string {
    const length = end - start
    if (length > MAX_CACHED_BYTES) return bytes.toString('latin1', start, end)
    let hash = length
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193)
    const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1)
    const cached = this.#texts[slot] as string
    if (cached.length === length && isText(cached, bytes, start)) return cached
    const text = bytes.toString('latin1', start, end)
    this.#texts[slot] = text
    return text
  }
}

function isText(text: string, bytes: Buffer, start: number): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false
  return true
}
