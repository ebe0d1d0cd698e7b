import { clientNetwork } from 'sluicegate/keys'
import { UsageError } from '../terminal/usage-error.js'
import { MAX_LINE_BYTES } from './line-splitter.js'
import { COMBINED, COMMON, HAPROXY, LineFormat } from './log-format.js'
import { TimeReader, timeOf, unixMs } from './log-time.js'

/** A variable of a line in a {@link LineTemplate}. */
interface TemplateVariable {
  readonly name: string
  /** Which element of a list, from the right; 1 is the last. Undefined: the whole value. */
  readonly hop: number | undefined
}

/** `$remote_addr`, `$httpRequest.clientIp`, `${request.headers.X-Forwarded-For}`, `$http_x_forwarded_for[-2]`. */
const VARIABLE = /\$(?:\{([^{}[\]]+)(?:\[-(\d{1,2})\])?\}|(@?\w+(?:\.@?\w+)*))(?:\[-(\d{1,2})\])?/g
const MOST_HOPS = 32

/** A text made from variables of a line. */
export class LineTemplate {
  readonly text: string
  readonly variables: readonly TemplateVariable[]
  /** The text before the first variable, and after each. */
  readonly literals: readonly string[]

  /** @throws {UsageError} for a text without a variable. */
  constructor(option: string, text: string, example: string) {
    const variables: TemplateVariable[] = []
    const literals: string[] = []
    let last = 0
    for (const match of text.matchAll(VARIABLE)) {
      const hop = match[2] ?? match[4]
      if (hop !== undefined && !(Number(hop) >= 1 && Number(hop) <= MOST_HOPS))
        throw new UsageError(`${option}: [-${hop}] must be the number of an element from the right, -1 to -${MOST_HOPS}`)
      literals.push(text.slice(last, match.index))
      variables.push({ name: (match[1] ?? match[3]) as string, hop: hop === undefined ? undefined : Number(hop) })
      last = match.index + match[0].length
    }
    if (variables.length === 0) throw new UsageError(`${option}: "${text}" names no variable, such as ${example}`)
    literals.push(text.slice(last))
    this.text = text
    this.variables = variables
    this.literals = literals
  }

  get names(): readonly string[] {
    return this.variables.map(({ name }) => name)
  }
}

/** One request of a log, as {@link LogReader} read it last. */
export interface LogRecord {
  /** Unix milliseconds. */
  readonly timeMs: number
  /** The value of a variable such as `remote_addr`; empty where the log has none. */
  value(name: string): string
}

/** Reads lines of one format. The record is the same object for every line. */
export interface LogReader {
  readonly record: LogRecord
  /** False for a line that cannot be read: of another form, or without a time. `part`: the line goes on in another one. */
  read(bytes: Buffer, start: number, end: number): boolean | 'part'
}

/** Variables that hold the time, the best first. */
const TIMES: readonly string[] = [
  'msec',
  'time_iso8601',
  'time_local',
  'time',
  'timestamp',
  '@timestamp',
  'ts',
  'start_time',
  'datetime',
  'date',
]
/** Columns of the time in W3C's extended log format. */
const DATE_AND_TIME = new LineTemplate('--time', '$date $time', '')
/** Names of one thing in JSON logs of nginx, Caddy, Envoy, Traefik, pino and cloud balancers. */
const SYNONYMS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    remote_addr: [
      'client_ip',
      'clientIp',
      'ClientHost',
      'remote_ip',
      'remoteAddress',
      'downstream_remote_address',
      'downstream_remote_address_without_port',
      'ip',
      'request.client_ip',
      'request.remote_ip',
      'request.remote_addr',
      'req.remoteAddress',
      'httpRequest.remoteIp',
      'httpRequest.clientIp',
      'client.ip',
      'client.address',
      'source.ip',
      'ClientIP',
      'ClientAddr',
      'properties.clientIp',
    ],
    request_method: [
      'method',
      'RequestMethod',
      'request.method',
      'req.method',
      'httpRequest.requestMethod',
      'httpRequest.httpMethod',
      'http.request.method',
      'ClientRequestMethod',
    ],
    request_uri: [
      'uri',
      'url',
      'path',
      'RequestPath',
      'request.uri',
      'req.url',
      'httpRequest.requestUrl',
      'httpRequest.uri',
      'url.path',
      'ClientRequestURI',
    ],
    status: ['status_code', 'response_code', 'DownstreamStatus', 'res.statusCode', 'httpRequest.status', 'EdgeResponseStatus'],
  }),
)

/** The formats that have a name; the common format is the beginning of the combined one. */
const KNOWN: ReadonlyMap<string, string> = new Map(Object.entries({ combined: COMBINED, common: COMMON, haproxy: HAPROXY }))
/** Syslog in the log of a container, and so on. */
const MOST_PREFIXES = 3

/**
 * A reader for `format`: `common`, `combined`, `haproxy`, `json`, or a format as the server's own configuration writes it, each after the names
 * of what stands before it: `syslog combined`, `envelope json`. Only the variables of `needed` are read.
 *
 * @param time what the time is made of; undefined: a variable that is known to be one.
 * @throws {UsageError} when the format has no time, or lacks a variable that is needed.
 */
export function logReader(format: string, needed: readonly string[], time?: LineTemplate): LogReader {
  const [, name = '', rest = ''] = /^(\w+) +(.+)$/.exec(format) ?? []
  if ((PREFIX_NAMES as readonly string[]).includes(name)) return new PrefixedReader(name as PrefixName, logReader(rest, needed, time))
  if (format === 'json') return new JsonReader(needed, time)
  return new LineReader(new LineFormat(KNOWN.get(format) ?? format), needed, time, format === 'haproxy')
}

/** What is known of a log before its first line. */
export interface KnownFormat {
  /** Undefined: JSON, or a format that has a name. */
  readonly format?: string | undefined
  readonly time?: LineTemplate | undefined
}

/**
 * The format of a log by one of its lines, with what stands before it; undefined for a line that no format reads. What a format finds in
 * the line has to make sense: an address without a space, and a time.
 */
export function guessFormat(line: Buffer, known: KnownFormat = {}, mostPrefixes = MOST_PREFIXES): string | undefined {
  const bases = known.format === undefined ? ['json', ...KNOWN.keys()] : [known.format]
  const plain = bases.find((format) => isReadBy(format, line, known.time))
  if (mostPrefixes === 0 || (plain !== undefined && plain !== 'json')) return plain
  // An envelope is JSON, too.
  for (const prefix of plain === 'json' ? (['envelope'] as const) : PREFIX_NAMES) {
    const inside = behindPrefix(prefix, line, 0, line.length)
    const format = inside && guessFormat(inside.bytes.subarray(inside.start, inside.end), known, prefix === 'vhost' ? 0 : mostPrefixes - 1)
    if (format !== undefined && (prefix !== 'vhost' || isOfClient(format, inside as LineInside, known.time))) return `${prefix} ${format}`
  }
  return plain
}

function isReadBy(format: string, line: Buffer, time: LineTemplate | undefined): boolean {
  const known = KNOWN.get(format)
  if ((format === 'json') !== (line[0] === 0x7b) && (format === 'json' || known !== undefined)) return false
  try {
    // Each variable of a known format is looked for: the common format reads a line of the combined one, too.
    const needed = known === undefined ? [] : new LineFormat(known).names
    return logReader(format, needed, time).read(line, 0, line.length) === true
  } catch (error) {
    if (error instanceof UsageError && known !== undefined) return false
    throw error
  }
}

/** Any word may be a virtual host: what stands behind it has to be a client's address, and not the second column of another log. */
function isOfClient(format: string, { bytes, start, end }: LineInside, time: LineTemplate | undefined): boolean {
  if (!KNOWN.has(format)) return true
  const reader = logReader(format, ['remote_addr'], time)
  return reader.read(bytes, start, end) === true && networkOf(reader.record.value('remote_addr')) !== undefined
}

const networkOf = clientNetwork()

class PrefixedReader implements LogReader {
  readonly record: LogRecord
  readonly #name: PrefixName
  readonly #inner: LogReader
  /** Of each stream what its line is so far, where it is in parts. */
  readonly #begun = new Map<string, Buffer>()

  constructor(name: PrefixName, inner: LogReader) {
    this.record = inner.record
    this.#name = name
    this.#inner = inner
  }

  read(bytes: Buffer, start: number, end: number): boolean | 'part' {
    const inside = behindPrefix(this.#name, bytes, start, end)
    if (inside === undefined) return false
    const { stream = '', isPart = false } = inside
    const begun = this.#begun.get(stream)
    if (begun === undefined && !isPart) return this.#inner.read(inside.bytes, inside.start, inside.end)
    const whole = Buffer.concat([begun ?? Buffer.alloc(0), inside.bytes.subarray(inside.start, inside.end)]).subarray(0, MAX_LINE_BYTES)
    if (isPart) this.#begun.set(stream, whole)
    else this.#begun.delete(stream)
    return isPart ? 'part' : this.#inner.read(whole, 0, whole.length)
  }
}

class LineReader implements LogReader, LogRecord {
  readonly record = this
  timeMs = 0
  readonly #format: LineFormat
  readonly #times = new TimeReader()
  /** -1 for a time of several variables. */
  readonly #timeIndex: number
  readonly #time: LineTemplate | undefined
  readonly #addressIndex: number
  readonly #hasPorts: boolean
  /** Where a variable comes from: its place, and the part of a request line. */
  readonly #sources = new Map<string, { readonly index: number; readonly part: RequestPart | undefined }>()
  #bytes: Buffer = Buffer.alloc(0)

  /** @param hasPorts whether each address is followed by a colon and a port, also IPv6 without brackets. */
  constructor(format: LineFormat, needed: readonly string[], given: LineTemplate | undefined, hasPorts: boolean) {
    const time = given ?? (DATE_AND_TIME.names.every((name) => format.indexOf(name) >= 0) ? DATE_AND_TIME : undefined)
    const times = time?.names ?? [TIMES.find((name) => format.indexOf(name) >= 0)]
    if (times[0] === undefined) throw new UsageError('--format: has no time: $time_local, $time_iso8601 or $msec; name another with --time')
    this.#format = format
    this.#time = time
    this.#hasPorts = hasPorts
    const used: string[] = []
    for (const name of [...(times as readonly string[]), ...needed]) {
      const source = sourceOf(format, name)
      if (source === undefined)
        throw new UsageError(`the format has no $${name}; it has ${format.names.map((each) => `$${each}`).join(', ')}`)
      this.#sources.set(name, source)
      used.push(format.names[source.index] as string)
    }
    this.#timeIndex = isOneVariable(time) ? format.indexOf(times[0]) : -1
    this.#addressIndex = used.includes('remote_addr') ? format.indexOf('remote_addr') : -1
    format.readOnly(used)
  }

  read(bytes: Buffer, start: number, end: number): boolean {
    if (!this.#format.parse(bytes, start, end)) return false
    const { spans } = this.#format
    this.#bytes = bytes
    const at = this.#timeIndex
    const timeMs = at >= 0 ? this.#times.read(bytes, spans[2 * at] as number, spans[2 * at + 1] as number) : this.#composedTime()
    if (Number.isNaN(timeMs)) return false
    const address = this.#addressIndex
    if (address >= 0 && hasBlank(bytes, spans[2 * address] as number, spans[2 * address + 1] as number)) return false
    this.timeMs = timeMs
    return true
  }

  value(name: string): string {
    const source = this.#sources.get(name)
    if (source === undefined) return ''
    const { spans } = this.#format
    texts ??= new TextCache()
    const text = texts.read(this.#bytes, spans[2 * source.index] as number, spans[2 * source.index + 1] as number)
    if (source.part !== undefined) return requestPart(text, source.part)
    return this.#hasPorts && name === 'remote_addr' ? text.slice(0, Math.max(0, text.lastIndexOf(':'))) || text : text
  }

  #composedTime(): number {
    return timeOf(composed(this.#time as LineTemplate, (name) => this.value(name)))
  }
}

function isOneVariable(time: LineTemplate | undefined): boolean {
  return time === undefined || (time.variables.length === 1 && time.literals.every((literal) => literal === ''))
}

function composed({ literals, names }: LineTemplate, read: (name: string) => string): string {
  return names.reduce((text, name, i) => text + read(name) + literals[i + 1], literals[0] as string)
}

/** No address and no host has a blank: what stands before it was read as a part of it. */
function hasBlank(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] === 0x20 || bytes[i] === 0x09) return true
  return false
}

class JsonReader implements LogReader, LogRecord {
  readonly record = this
  timeMs = 0
  readonly #paths: ReadonlyMap<string, readonly (readonly string[])[]>
  readonly #timePaths: readonly (readonly string[])[]
  /** Undefined for one member. */
  readonly #composedTime: LineTemplate | undefined
  /** The path at which the last time stood, tried first. */
  #timePath: readonly string[] | undefined
  #object: unknown

  constructor(needed: readonly string[], time: LineTemplate | undefined) {
    const times = time?.names ?? [...TIMES, 'request.timestamp', 'httpRequest.timestamp', 'requestTime', 'StartUTC', 'EdgeStartTimestamp']
    this.#timePaths = times.flatMap(pathsOf)
    this.#composedTime = isOneVariable(time) ? undefined : time
    const names = [...needed, ...(this.#composedTime?.names ?? [])]
    this.#paths = new Map(names.map((name) => [name, [name, ...(SYNONYMS.get(name) ?? [])].flatMap(pathsOf)]))
  }

  read(bytes: Buffer, start: number, end: number): boolean {
    try {
      this.#object = JSON.parse(bytes.toString('utf8', start, end))
    } catch {
      return false
    }
    if (typeof this.#object !== 'object' || this.#object === null) return false
    if (this.#composedTime !== undefined) {
      this.timeMs = timeOf(composed(this.#composedTime, (name) => this.value(name)))
      return !Number.isNaN(this.timeMs)
    }
    if (this.#timePath !== undefined && this.#readTime(this.#timePath)) return true
    this.#timePath = this.#timePaths.find((path) => this.#readTime(path))
    return this.#timePath !== undefined
  }

  value(name: string): string {
    for (const path of this.#paths.get(name) ?? []) {
      const text = scalarText(at(this.#object, path))
      if (text !== '') return text
    }
    const part = REQUEST_PARTS.get(name)
    if (part === undefined) return ''
    const line = scalarText(at(this.#object, REQUEST_PATH))
    if (line !== '') return requestPart(line, part)
    return name === 'uri' ? pathOf(this.#first('request_uri')) : ''
  }

  #first(name: string): string {
    for (const path of [name, ...(SYNONYMS.get(name) ?? [])].flatMap(pathsOf)) {
      const text = scalarText(at(this.#object, path))
      if (text !== '') return text
    }
    return ''
  }

  #readTime(path: readonly string[]): boolean {
    const time = at(this.#object, path)
    const timeMs = typeof time === 'string' ? timeOf(time) : typeof time === 'number' ? unixMs(time) : Number.NaN
    if (Number.isNaN(timeMs)) return false
    this.timeMs = timeMs
    return true
  }
}

const REQUEST_PATH = ['request']

function at(object: unknown, path: readonly string[]): unknown {
  let value = object
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

/** A member of that name, and the one that its dots lead to. */
function pathsOf(name: string): readonly (readonly string[])[] {
  return name.includes('.') ? [name.split('.'), [name]] : [[name]]
}

/** Lines of a header are a list, as in the header. */
function scalarText(value: unknown): string {
  if (Array.isArray(value)) return value.map((each) => (typeof each === 'string' ? each : '')).join(', ')
  return typeof value === 'string' ? value : typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}

type RequestPart = 'method' | 'target' | 'path'

/** Variables that stand inside of `$request`, as in `GET /a?b=1 HTTP/1.1`. */
const REQUEST_PARTS: ReadonlyMap<string, RequestPart> = new Map([
  ['request_method', 'method'],
  ['request_uri', 'target'],
  ['uri', 'path'],
])

function sourceOf(format: LineFormat, name: string): { index: number; part: RequestPart | undefined } | undefined {
  const index = format.indexOf(name)
  if (index >= 0) return { index, part: undefined }
  const part = REQUEST_PARTS.get(name)
  const target = format.indexOf('request_uri')
  if (part === 'path' && target >= 0) return { index: target, part: 'path' }
  const request = format.indexOf('request')
  return part !== undefined && request >= 0 ? { index: request, part } : undefined
}

function requestPart(request: string, part: RequestPart): string {
  const first = request.indexOf(' ')
  if (part === 'method') return first < 0 ? '' : request.slice(0, first)
  const last = request.lastIndexOf(' ')
  const target = first < 0 ? request : last > first ? request.slice(first + 1, last) : request.slice(first + 1)
  return part === 'target' ? target : pathOf(target)
}

/** Load balancers, and clients of a proxy, write the whole address. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/]*/i

/** Without the query, and without scheme and host. */
function pathOf(target: string): string {
  const query = target.indexOf('?')
  const path = query < 0 ? target : target.slice(0, query)
  return path.startsWith('/') || !ORIGIN.test(path) ? path : path.replace(ORIGIN, '') || '/'
}

const SLOTS = 1 << 16
const MAX_CACHED_BYTES = 64

/**
 * Short texts out of bytes. A log repeats its values, and a call into the runtime for each of them costs more than all the rest of a line:
 * a text that was made before is found by its bytes. Bytes are Latin-1, so that every value of a line has a text and no two share one.
 */
class TextCache {
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

/** Of all formats: a log may say its columns again at each line. */
let texts: TextCache | undefined

function isText(text: string, bytes: Buffer, start: number): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false
  return true
}

/** What stands before the line of a server: what forwards or stores logs puts it there. */
type PrefixName = keyof typeof PREFIXES

/** The line behind a prefix. */
interface LineInside {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  /** Whether another part follows, in the same stream of the container. */
  readonly isPart?: boolean
  readonly stream?: string | undefined
}

/** Longer prefixes are none: RFC 5424 has structured data in them. */
const LONGEST_PREFIX = 2_048

/** Program and process, and a colon: `nginx:`, `haproxy[123]:`. */
const TAG = String.raw`[^\s:[\]]+(?:\[[^\]\s]*\])?: ?`
const PRIORITY = String.raw`(?:<\d{1,3}>)?`
const ISO_TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?`

/** RFC 3164, section 4.1; the time as rsyslog writes it in RFC 3339, too. */
const BSD_SYSLOG = new RegExp(
  `^${PRIORITY}(?:[A-Z][a-z]{2} [ \\d]\\d (?:\\d{4} )?\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,9})?|${ISO_TIME}) (?:[^\\s:]\\S* )?${TAG}`,
)
/** RFC 5424, section 6; a count of bytes in front by RFC 6587. */
const SYSLOG = new RegExp(
  `^(?:\\d{1,6} )?${PRIORITY}1 (?:${ISO_TIME}|-) \\S+ \\S+ \\S+ \\S+ (?:-|(?:\\[(?:[^\\]"]|"(?:[^"\\\\]|\\\\.)*")*\\])+) (?:\\xef\\xbb\\xbf)?`,
)
/** Kubernetes' files of containers; `P` is a part of a line. */
const CRI = new RegExp(`^${ISO_TIME} (?<stream>stdout|stderr) (?<tag>[FP])(?::\\S+)? `)
/** `docker compose logs`, `kubectl logs --prefix`, and the times of `docker logs -t` and `kubectl logs --timestamps`. */
const CONTAINER = new RegExp(`^(?:[\\w.-]+ +\\| (?:${ISO_TIME} )?|\\[pod/[^\\]\\s]+\\] (?:${ISO_TIME} )?|${ISO_TIME} )`)
/** Apache's `%v:%p`. */
const VHOST = /^(?:\[[^\]\s]+\]|[\w.*-]+)(?::\d{1,5})? /

const PREFIXES = {
  syslog: (bytes: Buffer, start: number, end: number) => behind(BSD_SYSLOG, bytes, start, end) ?? behind(SYSLOG, bytes, start, end),
  cri: (bytes: Buffer, start: number, end: number) => behind(CRI, bytes, start, end),
  envelope: insideEnvelope,
  container: (bytes: Buffer, start: number, end: number) => behind(CONTAINER, bytes, start, end),
  vhost: (bytes: Buffer, start: number, end: number) => behind(VHOST, bytes, start, end),
} as const

/** In the order in which they are tried. */
const PREFIX_NAMES = Object.keys(PREFIXES) as readonly PrefixName[]

/** The line behind the prefix; undefined for a line without it. */
function behindPrefix(name: PrefixName, bytes: Buffer, start: number, end: number): LineInside | undefined {
  return PREFIXES[name](bytes, start, end)
}

function behind(prefix: RegExp, bytes: Buffer, start: number, end: number): LineInside | undefined {
  const found = prefix.exec(bytes.toString('latin1', start, Math.min(end, start + LONGEST_PREFIX)))
  if (found === null) return undefined
  const { stream, tag } = found.groups ?? {}
  return { bytes, start: start + found[0].length, end, stream, isPart: tag === 'P' }
}

/** Of Docker's driver `json-file`, of the journal (`journalctl -o json`), and of Logstash, Fluent Bit and others. */
const LINE_MEMBERS = ['log', 'MESSAGE', 'message', 'msg']

/** Docker's `json-file` writes a longer line as parts of this length; only the last one ends with a newline. */
const DOCKER_PART_BYTES = 16_384

/** A line as a text within JSON: `{"log":"...\n","stream":"stdout","time":"..."}`. */
function insideEnvelope(bytes: Buffer, start: number, end: number): LineInside | undefined {
  if (bytes[start] !== 0x7b) return undefined
  let envelope: Readonly<Record<string, unknown>>
  try {
    envelope = JSON.parse(bytes.toString('utf8', start, end))
  } catch {
    return undefined
  }
  const line = LINE_MEMBERS.map((name) => envelope[name]).find((value) => typeof value === 'string')
  if (typeof line !== 'string') return undefined
  const inside = Buffer.from(line.replace(/\r?\n$/, ''))
  const { log, stream } = envelope
  const isPart = line === log && isStream(stream) && inside.length >= DOCKER_PART_BYTES && !line.endsWith('\n')
  return { bytes: inside, start: 0, end: inside.length, stream: isStream(stream) ? stream : undefined, isPart }
}

function isStream(value: unknown): value is 'stdout' | 'stderr' {
  return value === 'stdout' || value === 'stderr'
}
