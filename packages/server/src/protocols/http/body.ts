import { isAscii } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { type Awaitable, whenDone } from '../../engine/engine.js'
import { type Guard, listen, rejecting } from '../guard.js'
import type { WholeRequest } from './handler.js'
import { isGivenTwice, Problem } from './problem.js'
import { quoted } from './query.js'

/** Holds the longest key, each of its 1,024 units escaped as six bytes, with room to spare. */
const MAX_BODY_BYTES = 16_384

const MAX_DISCARDED_BYTES = 4_194_304
const NOTHING = Buffer.alloc(0)
/** Of a body that is larger than usual: commas, colons and brackets outside of strings, which cost far more time than letters, and brackets in brackets. */
const MAX_SIGNS = 8_192
const MAX_DEPTH = 16
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
/** This bit apart, brackets and braces are the same. */
const BRACE_BIT = 0x20
const OPENING = 0x7b
const CLOSING = 0x7d

const JSON_CONTENT = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * The members of the JSON object in a request's body.
 *
 * @param maxBytes the most bytes it may have; default 16,384.
 * @param types `any`: whatever the header Content-Type says.
 * @throws {Problem} when it is of another type, too large, no JSON object, or has a member twice. What was not read then is left unread.
 */
export function readJsonBody(
  request: IncomingMessage | WholeRequest,
  maxBytes = MAX_BODY_BYTES,
  types: 'json' | 'any' = 'json',
): Awaitable<Map<string, unknown>> {
  if (types === 'json' && !JSON_CONTENT.test(request.headers['content-type'] ?? '')) {
    throw new Problem(415, 'CONTENT_TYPE', 'the body must be JSON in UTF-8: send Content-Type: application/json', [
      ['Accept-Post', 'application/json'],
    ])
  }
  if (isGivenTwice(request.rawHeaders, 'content-type')) {
    throw new Problem(400, 'REQUEST_INVALID', 'Content-Type is given more than once: give it once')
  }
  if (Number(request.headers['content-length']) > maxBytes) throw tooLarge(maxBytes)
  return whenDone('body' in request ? request.body : readAll(request, maxBytes), membersOf)
}

function membersOf(bytes: Buffer): Map<string, unknown> {
  if (bytes.length > MAX_BODY_BYTES && isIntricate(bytes))
    throw new Problem(400, 'BODY_INVALID', `the body has more than ${MAX_SIGNS} members and values, or more than ${MAX_DEPTH} levels`)
  let text: string
  let value: unknown
  try {
    text = isAscii(bytes) ? bytes.toString('latin1') : utf8.decode(bytes)
    value = JSON.parse(text)
  } catch {
    throw new Problem(400, 'BODY_INVALID', 'the body is not JSON in UTF-8')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Problem(400, 'BODY_INVALID', 'the body must be an object such as {"policy":"per-user","key":"alice","cost":1}')
  }
  const repeated = repeatedMember(text)
  if (repeated !== undefined) throw new Problem(400, 'PARAMETER_REPEATED', `${quoted(repeated)} is given more than once: give it once`)
  // A map has no prototype whose members could pass for the client's.
  return new Map(Object.entries(value))
}

/** Whether JSON would take long to read for its length. */
export function isIntricate(bytes: Uint8Array): boolean {
  let signs = 0
  let depth = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === QUOTE) {
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++
    } else if (byte === COMMA || byte === COLON) signs++
    else if ((byte | BRACE_BIT) === OPENING) {
      signs++
      if (++depth > MAX_DEPTH) return true
    } else if ((byte | BRACE_BIT) === CLOSING) depth--
    if (signs > MAX_SIGNS) return true
  }
  return false
}

/** Reads and discards the rest, so that the client can read its answer; disconnects a client that does not stop sending. */
export function discardRest(request: IncomingMessage, guard: Guard): void {
  let bytes = 0
  guard.on(request, 'data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > MAX_DISCARDED_BYTES) request.destroy()
  })
  guard.on(request, 'error', () => {})
}

/** Memory of larger bodies that are still arriving, and the most of all clients together. */
let heldBytes = 0
const MAX_HELD_BYTES = 67_108_864

/** Copies into one buffer: a client may send each byte in its own chunk, and each chunk that was kept would take a hundred bytes and more. */
function readAll(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let body: Buffer = NOTHING
    let bytes = 0
    let held = 0
    let refusal: Problem | undefined
    const hold = (more: number): void => {
      held += more
      heldBytes += more
    }
    const keep = (chunk: Buffer): void => {
      if (bytes + chunk.length > maxBytes) refusal ??= tooLarge(maxBytes)
      if (refusal !== undefined) throw refusal
      if (bytes === 0) body = chunk
      else body = appended(body, bytes, chunk, maxBytes)
      bytes += chunk.length
      if (body.length > MAX_BODY_BYTES) hold(body.length - held)
      if (heldBytes <= MAX_HELD_BYTES) return
      refusal = new Problem(503, 'BUSY', 'too many large bodies are arriving: come back later', [['Retry-After', '1']])
      throw refusal
    }
    const failed = (error: unknown): void => {
      hold(-held)
      body = NOTHING
      reject(error)
    }
    listen(request, 'data', rejecting(failed, keep))
    const end = (): void => {
      hold(-held)
      resolve(body.subarray(0, bytes))
    }
    listen(request, 'end', rejecting(failed, end))
    const fail = (): void => failed(new Problem(400, 'REQUEST_INVALID', 'the body ended early'))
    listen(request, 'error', rejecting(failed, fail))
    listen(
      request,
      'close',
      rejecting(reject, () => hold(-held)),
    )
  })
}

/** `chunk` behind the first `bytes` of `body`, in `body` itself where it has room. */
function appended(body: Buffer, bytes: number, chunk: Buffer, maxBytes: number): Buffer {
  const neededBytes = bytes + chunk.length
  let roomy = body
  if (neededBytes > body.length) {
    roomy = Buffer.allocUnsafeSlow(Math.min(maxBytes, 2 * neededBytes))
    body.copy(roomy, 0, 0, bytes)
  }
  chunk.copy(roomy, bytes)
  return roomy
}

function tooLarge(maxBytes: number): Problem {
  return new Problem(413, 'BODY_TOO_LARGE', `the body must be at most ${maxBytes} bytes`)
}

/**
 * The first name that an object in `text` has twice; undefined where each is there once. `JSON.parse` takes the last of them and a gateway may have looked
 * at the first (RFC 8259, section 4).
 *
 * @param text what `JSON.parse` takes for an object: then a string before a colon is a name. A parser that reports such names would have to read
 * the text a second time as well; this function reads nothing but names.
 */
export function repeatedMember(text: string): string | undefined {
  let names = new Set<string>()
  /** Of the objects and lists around. */
  const outer: Set<string>[] = []
  let string = ''
  for (let at = 0; at < text.length; at++) {
    const sign = text.charCodeAt(at)
    if (sign === QUOTE) {
      const end = endOfString(text, at)
      string = text.slice(at, end)
      at = end - 1
    } else if ((sign | BRACE_BIT) === OPENING) {
      outer.push(names)
      names = new Set()
    } else if ((sign | BRACE_BIT) === CLOSING) names = outer.pop() as Set<string>
    else if (sign === COLON) {
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
  for (let sign = text.charCodeAt(at); sign !== QUOTE; sign = text.charCodeAt(at)) at += sign === BACKSLASH ? 2 : 1
  return at + 1
}
