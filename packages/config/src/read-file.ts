import { isUtf8 } from 'node:buffer'
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileError, unreadable } from './fault.js'
import { readStep } from './read-steps.js'

/** Read at once, where the size is not known: files of the system say that they have 0 bytes. */
const CHUNK_BYTES = 65_536
const NEWLINE = 0x0a

/**
 * The bytes of a regular file. Nothing else is opened, and nothing waits: a pipe or a device may have no end, or no writer.
 *
 * @throws {Error} whose message says why, without the name of the file.
 */
export function readBytes(file: string, maxBytes: number): Buffer {
  refuseOthers(readStep(file, () => statSync(file)))
  // Another one may have taken its place since.
  const descriptor = readStep(file, () => openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)))
  try {
    const found = fstatSync(descriptor)
    refuseOthers(found)
    if (found.size > maxBytes) throw new Error(tooLarge(found.size, maxBytes))
    const chunks: Buffer[] = []
    let length = 0
    for (;;) {
      const chunk = Buffer.allocUnsafe(Math.max(CHUNK_BYTES, found.size - length + 1))
      const read = readStep(file, () => readSync(descriptor, chunk))
      if (read === 0) break
      length += read
      if (length > maxBytes) throw new Error(tooLarge(length, maxBytes))
      chunks.push(chunk.subarray(0, read))
    }
    return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * The text of a regular file in UTF-8, without a byte order mark.
 *
 * @throws {ConfigError} when it cannot be read, and at the first byte that is no UTF-8.
 */
export function readText(file: string, maxBytes: number): string {
  let bytes: Buffer
  try {
    bytes = readBytes(file, maxBytes)
  } catch (error) {
    throw unreadable(file, error)
  }
  return textOf(file, bytes)
}

/** @throws {ConfigError} at the first byte that is no UTF-8. */
function textOf(file: string, bytes: Buffer): string {
  if (isUtf8(bytes)) return new TextDecoder().decode(bytes)
  const at = firstOtherByte(bytes)
  const lineStart = at === 0 ? 0 : bytes.lastIndexOf(NEWLINE, at - 1) + 1
  let line = 1
  for (let next = bytes.indexOf(NEWLINE); next !== -1 && next < at; next = bytes.indexOf(NEWLINE, next + 1)) line++
  const column = bytes.toString('utf8', lineStart, at).length + 1
  throw fileError(file, `the byte 0x${bytes.toString('hex', at, at + 1)} is no UTF-8: save the file in UTF-8`, { line, column })
}

/** Why a new file cannot take the place of `path` by a rename; undefined when it can. A device would be renamed away. */
export function replaceFault(path: string): string | undefined {
  return placeFault(path, (found) => found.isFile())
}

/** Why nothing can be written to `path`, a file or a stream; undefined when it can. */
export function outputFault(path: string): string | undefined {
  return placeFault(path, (found) => !found.isDirectory())
}

function placeFault(path: string, fits: (found: Stats) => boolean): string | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found !== undefined) return fits(found) ? undefined : `is ${kindOf(found)}, and a file is needed`
    const folder = statSync(dirname(path), { throwIfNoEntry: false })
    if (folder === undefined) return 'is in a folder that does not exist'
    return folder.isDirectory() ? undefined : 'is in no folder'
  } catch (error) {
    // A link in a circle, a file in the place of a folder, a folder of others.
    return `cannot be reached: ${(error as Error).message}`
  }
}

function refuseOthers(found: Stats): void {
  if (!found.isFile()) throw new Error(`it is ${kindOf(found)}, and a file is needed`)
}

function kindOf(found: Stats): string {
  if (found.isDirectory()) return 'a folder'
  return found.isFIFO() ? 'a pipe' : found.isSocket() ? 'a socket' : 'a device'
}

function tooLarge(size: number, max: number): string {
  return `it has ${size} bytes, and ${max} are the most`
}

function firstOtherByte(bytes: Buffer): number {
  let good = 0
  for (let end = 0; end < bytes.length; good = end) {
    end = Math.min(good + CHUNK_BYTES, bytes.length)
    // Not in the middle of a character.
    while (end < bytes.length && end > good + 1 && ((bytes[end] as number) & 0xc0) === 0x80) end--
    if (!isUtf8(bytes.subarray(good, end))) break
  }
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let start = good
  for (let at = good; at < bytes.length; at++) {
    try {
      if (decoder.decode(bytes.subarray(at, at + 1), { stream: true }) !== '') start = at + 1
    } catch {
      break
    }
  }
  return start
}
