import { ProtocolFault } from './protocol-fault.js'

const SPACE = 0x20
const DOUBLE_QUOTE = 0x22
const SINGLE_QUOTE = 0x27
const BACKSLASH = 0x5c
const ESCAPES: Readonly<Record<string, number>> = { n: 0x0a, r: 0x0d, t: 0x09, b: 0x08, a: 0x07 }

/**
 * Splits a line of plain text into arguments as Redis does: at white space, with "double quotes" that know `\n`, `\x00` and the like, and
 * 'single quotes' that know only `\'`. Fills `starts` and `ends`, and returns the bytes that they refer to.
 *
 * @throws {ProtocolFault} for unbalanced quotes.
 */
export function splitInline(line: Buffer, starts: number[], ends: number[]): Buffer {
  starts.length = 0
  ends.length = 0
  const bytes = Buffer.allocUnsafe(line.length)
  let length = 0
  let at = 0
  for (;;) {
    while (at < line.length && isSpace(line[at] as number)) at++
    if (at >= line.length) return bytes
    starts.push(length)
    while (at < line.length && !isSpace(line[at] as number)) {
      const byte = line[at++] as number
      if (byte !== DOUBLE_QUOTE && byte !== SINGLE_QUOTE) {
        bytes[length++] = byte
        continue
      }
      for (;;) {
        if (at >= line.length) throw unbalanced()
        const quoted = line[at++] as number
        if (quoted === byte) break
        if (quoted !== BACKSLASH || at >= line.length) {
          bytes[length++] = quoted
        } else if (byte === SINGLE_QUOTE) {
          bytes[length++] = line[at] === SINGLE_QUOTE ? (line[at++] as number) : BACKSLASH
        } else {
          const hex = /^x([0-9a-f]{2})/i.exec(line.toString('latin1', at, at + 3))?.[1]
          const escaped = line[at] as number
          bytes[length++] = hex === undefined ? (ESCAPES[String.fromCharCode(escaped)] ?? escaped) : Number.parseInt(hex, 16)
          at += hex === undefined ? 1 : 3
        }
      }
      // A closing quote ends the argument.
      if (at < line.length && !isSpace(line[at] as number)) throw unbalanced()
    }
    ends.push(length)
  }
}

function isSpace(byte: number): boolean {
  return byte === SPACE || (byte >= 0x09 && byte <= 0x0d) || byte === 0
}

function unbalanced(): ProtocolFault {
  return new ProtocolFault('unbalanced quotes in request')
}
