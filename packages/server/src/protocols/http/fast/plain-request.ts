import type { WholeRequest } from '../handler.js'
import { isHost } from '../host.js'

/** The longest head that is read here. */
const MAX_HEAD_BYTES = 8_192
/** Of a body. The parser decides about what is longer, and about signs and other forms. */
const LENGTH = /^\d{1,7}$/
const NOTHING = Buffer.alloc(0)

const TAB = 0x09
const LINE_FEED = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const SLASH = 0x2f
const COLON = 0x3a
const LINE_END_BYTES = 2
/** Makes a letter a small one, and leaves digits and "-" as they are. */
const TO_LOWER = 0x20

const GET = Buffer.from('GET ')
const POST = Buffer.from('POST ')
const VERSION = Buffer.from(' HTTP/1.1\r\n')

/** What a byte may be part of. */
const IN_TARGET = 1
const IN_NAME = 2
const IN_VALUE = 4
const PARTS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const isPrintable = byte > SPACE && byte < 0x7f
  const isToken = /[\w!#$%&'*+.^`|~-]/.test(String.fromCharCode(byte))
  return (
    (isPrintable ? IN_TARGET : 0) | (isToken ? IN_NAME : 0) | (isPrintable || byte === SPACE || byte === TAB || byte > 0x7f ? IN_VALUE : 0)
  )
})

/** Fields that a handler reads, or that tell where the request ends. */
const READ = [
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'host',
  'sec-fetch-site',
  'x-forwarded-for',
  'x-real-ip',
  'x-sluicegate-cost',
  'x-sluicegate-key',
  'x-sluicegate-policy',
  'x-sluicegate-priority',
] as const
/** Fields that change what a request means, or how it is answered: the parser knows them. */
const OF_PARSER = ['expect', 'proxy-connection', 'transfer-encoding', 'upgrade'] as const

const LETTER_BITS = 5
const LETTER = 2 ** LETTER_BITS - 1
const SLOTS = 2 ** (2 * LETTER_BITS)

interface KnownField {
  readonly name: string
  readonly bytes: Buffer
  readonly isOfParser: boolean
}

/** By {@link slotOf}: no two of them have the same length and the same first letter. */
const KNOWN_FIELDS = new Array<KnownField | undefined>(SLOTS).fill(undefined)
for (const [names, isOfParser] of [
  [READ, false],
  [OF_PARSER, true],
] as const) {
  for (const name of names) {
    const bytes = Buffer.from(name)
    KNOWN_FIELDS[slotOf(bytes, 0, bytes.length)] = { name, bytes, isOfParser }
  }
}

/**
 * A GET or POST of HTTP/1.1 in its most common form: one Host, no field twice that is read, and no body but one of a Content-Length. What is not so, or
 * is not clear, is read by Node's parser.
 */
export interface PlainRequest extends WholeRequest {
  readonly method: 'GET' | 'POST'
  readonly target: string
  /** From its first byte to its last one, which may still be to come. */
  readonly byteLength: number
  /** For the time when it is answered. */
  readonly complete: true
}

type Fields = Record<string, string | undefined>

/** {@link PlainRequest.rawHeaders} tells what is given twice, and nothing is. */
const NO_REPETITIONS: string[] = []

/**
 * The request at the begin of `input`; undefined where Node's parser has to read it. What both read, they read alike: this grammar is the strict part of
 * theirs.
 *
 * Source: RFC 9112, sections 3 and 5 to 6.3; RFC 9110, section 5.5.
 *
 * @param keepsAll whether `headers` has all fields, instead of those that handlers read.
 */
export function readPlainRequest(input: Buffer, keepsAll: boolean): PlainRequest | undefined {
  const end = Math.min(input.length, MAX_HEAD_BYTES)
  const method = startsWith(input, 0, end, GET) ? 'GET' : startsWith(input, 0, end, POST) ? 'POST' : undefined
  if (method === undefined) return undefined
  const targetStart = method.length + 1
  if (input[targetStart] !== SLASH) return undefined
  const targetEnd = endOf(IN_TARGET, input, targetStart, end)
  if (!startsWith(input, targetEnd, end, VERSION)) return undefined
  const headers: Fields = {}
  const bodyStart = readFields(input, targetEnd + VERSION.length, end, headers, keepsAll)
  if (bodyStart === undefined) return undefined
  const { host, connection } = headers
  if (host === undefined || !isHost(host) || (connection !== undefined && connection.toLowerCase() !== 'keep-alive')) return undefined
  const bodyBytes = bodyLength(method, headers['content-length'])
  if (bodyBytes === undefined) return undefined
  const byteLength = bodyStart + bodyBytes
  const target = input.toString('latin1', targetStart, targetEnd)
  const body = bodyBytes === 0 ? NOTHING : input.subarray(bodyStart, byteLength)
  return { method, target, headers, rawHeaders: NO_REPETITIONS, body, complete: true, byteLength }
}

/**
 * Reads lines of `name: value` into `headers` until an empty one. Returns where that ends; undefined for the parser, also where a field that is kept is
 * given twice.
 */
function readFields(input: Buffer, start: number, end: number, headers: Fields, keepsAll: boolean): number | undefined {
  for (let at = start; ; ) {
    const nameEnd = endOf(IN_NAME, input, at, end)
    if (nameEnd === at) return endsLine(input, at, end) ? at + LINE_END_BYTES : undefined
    if (nameEnd === end || input[nameEnd] !== COLON) return undefined
    const valueEnd = endOf(IN_VALUE, input, nameEnd + 1, end)
    if (!endsLine(input, valueEnd, end)) return undefined
    const known = knownField(input, at, nameEnd)
    if (known !== undefined || keepsAll) {
      const name = known?.name ?? input.toString('latin1', at, nameEnd).toLowerCase()
      if (known?.isOfParser || headers[name] !== undefined) return undefined
      headers[name] = trimmed(input, nameEnd + 1, valueEnd)
    }
    at = valueEnd + LINE_END_BYTES
  }
}

/** Of a GET with a body, and of a POST without a length, the parser decides. */
function bodyLength(method: 'GET' | 'POST', length: string | undefined): number | undefined {
  if (method === 'GET') return length === undefined || length === '0' ? 0 : undefined
  return length !== undefined && LENGTH.test(length) ? Number(length) : undefined
}

function knownField(input: Buffer, start: number, end: number): KnownField | undefined {
  const known = KNOWN_FIELDS[slotOf(input, start, end)]
  if (known === undefined || known.bytes.length !== end - start) return undefined
  const { bytes } = known
  for (let i = 0; i < bytes.length; i++) if (((input[start + i] as number) | TO_LOWER) !== bytes[i]) return undefined
  return known
}

/** From the length of a name and its first letter. */
function slotOf(bytes: Buffer, start: number, end: number): number {
  return (((end - start) << LETTER_BITS) | ((bytes[start] as number) & LETTER)) & (SLOTS - 1)
}

/** The first byte from `start` on that cannot be part of `what`. */
function endOf(what: number, input: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && ((PARTS[input[at] as number] as number) & what) !== 0) at++
  return at
}

function endsLine(input: Buffer, at: number, end: number): boolean {
  return at + LINE_END_BYTES <= end && input[at] === RETURN && input[at + 1] === LINE_FEED
}

function startsWith(input: Buffer, at: number, end: number, text: Buffer): boolean {
  if (at + text.length > end) return false
  for (let i = 0; i < text.length; i++) if (input[at + i] !== text[i]) return false
  return true
}

/** Without the spaces and tabs around it. */
function trimmed(input: Buffer, start: number, end: number): string {
  let from = start
  let to = end
  while (from < to && isBlank(input[from] as number)) from++
  while (to > from && isBlank(input[to - 1] as number)) to--
  return input.toString('latin1', from, to)
}

function isBlank(byte: number): boolean {
  return byte === SPACE || byte === TAB
}
