import { UsageError } from '../terminal/usage-error.js'
import { COMBINED, COMMON, LineFormat } from './log-format.js'
import { TimeReader, timeOf } from './log-time.js'
import { TextCache } from './text-cache.js'

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
  /** False for a line that cannot be read: of another form, or without a time. */
  read(bytes: Buffer, start: number, end: number): boolean
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
/** Names of one thing in JSON logs of nginx, Caddy, Envoy, Traefik, pino and cloud balancers. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  remote_addr: [
    'client_ip',
    'clientIp',
    'ClientHost',
    'remote_ip',
    'remoteAddress',
    'downstream_remote_address',
    'ip',
    'request.client_ip',
    'request.remote_ip',
    'req.remoteAddress',
    'httpRequest.remoteIp',
  ],
  request_method: ['method', 'RequestMethod', 'request.method', 'req.method', 'httpRequest.requestMethod'],
  request_uri: ['uri', 'url', 'path', 'RequestPath', 'request.uri', 'req.url', 'httpRequest.requestUrl'],
  status: ['status_code', 'response_code', 'DownstreamStatus', 'res.statusCode', 'httpRequest.status'],
}

/**
 * A reader for `format`: `common`, `combined`, `json`, or a format as the server's own configuration writes it. Only the variables of
 * `needed` are read.
 *
 * @throws {UsageError} when the format has no time, or lacks a variable that is needed.
 */
export function logReader(format: string, needed: readonly string[]): LogReader {
  if (format === 'json') return new JsonReader(needed)
  const known: Readonly<Record<string, string>> = { common: COMMON, combined: COMBINED }
  return new LineReader(new LineFormat(known[format] ?? format), needed)
}

/** The format of a log by one of its lines; undefined for a line that is neither JSON nor common. */
export function guessFormat(line: string): string | undefined {
  if (line.startsWith('{')) return 'json'
  // The common format is the beginning of the combined one.
  const common = logReader('common', [])
  const bytes = Buffer.from(line)
  if (!common.read(bytes, 0, bytes.length)) return undefined
  const combined = new LineFormat(COMBINED)
  return combined.parse(bytes, 0, bytes.length) ? 'combined' : 'common'
}

class LineReader implements LogReader, LogRecord {
  readonly record = this
  timeMs = 0
  readonly #format: LineFormat
  readonly #times = new TimeReader()
  readonly #texts = new TextCache()
  readonly #timeIndex: number
  /** Where a variable comes from: its place, and the part of a request line. */
  readonly #sources = new Map<string, { readonly index: number; readonly part: RequestPart | undefined }>()
  #bytes: Buffer = Buffer.alloc(0)

  constructor(format: LineFormat, needed: readonly string[]) {
    const time = TIMES.find((name) => format.indexOf(name) >= 0)
    if (time === undefined) throw new UsageError('--format: has no time: $time_local, $time_iso8601 or $msec')
    this.#format = format
    this.#timeIndex = format.indexOf(time)
    const used = [time]
    for (const name of needed) {
      const source = sourceOf(format, name)
      if (source === undefined)
        throw new UsageError(`the format has no $${name}; it has ${format.names.map((each) => `$${each}`).join(', ')}`)
      this.#sources.set(name, source)
      used.push(format.names[source.index] as string)
    }
    format.readOnly(used)
  }

  read(bytes: Buffer, start: number, end: number): boolean {
    if (!this.#format.parse(bytes, start, end)) return false
    const { spans } = this.#format
    const timeMs = this.#times.read(bytes, spans[2 * this.#timeIndex] as number, spans[2 * this.#timeIndex + 1] as number)
    if (Number.isNaN(timeMs)) return false
    this.timeMs = timeMs
    this.#bytes = bytes
    return true
  }

  value(name: string): string {
    const source = this.#sources.get(name)
    if (source === undefined) return ''
    const { spans } = this.#format
    const text = this.#texts.read(this.#bytes, spans[2 * source.index] as number, spans[2 * source.index + 1] as number)
    return source.part === undefined ? text : requestPart(text, source.part)
  }
}

class JsonReader implements LogReader, LogRecord {
  readonly record = this
  timeMs = 0
  readonly #paths: ReadonlyMap<string, readonly (readonly string[])[]>
  readonly #timePaths: readonly (readonly string[])[]
  /** The path at which the last time stood, tried first. */
  #timePath: readonly string[] | undefined
  #object: unknown

  constructor(needed: readonly string[]) {
    this.#timePaths = [...TIMES, 'request.timestamp', 'httpRequest.timestamp', 'StartUTC'].map(pathOf)
    this.#paths = new Map(needed.map((name) => [name, [name, ...(SYNONYMS[name] ?? [])].map(pathOf)]))
  }

  read(bytes: Buffer, start: number, end: number): boolean {
    try {
      this.#object = JSON.parse(bytes.toString('utf8', start, end))
    } catch {
      return false
    }
    if (typeof this.#object !== 'object' || this.#object === null) return false
    if (this.#timePath !== undefined && this.#readTime(this.#timePath)) return true
    this.#timePath = this.#timePaths.find((path) => this.#readTime(path))
    return this.#timePath !== undefined
  }

  value(name: string): string {
    for (const path of this.#paths.get(name) ?? []) {
      const text = scalarText(at(this.#object, path))
      if (text !== '') return text
    }
    const part = REQUEST_PARTS[name]
    if (part === undefined) return ''
    const line = scalarText(at(this.#object, REQUEST_PATH))
    if (line !== '') return requestPart(line, part)
    // $uri without a query, out of the address of the request.
    return name === 'uri' ? withoutQuery(this.#first('request_uri')) : ''
  }

  #first(name: string): string {
    for (const candidate of [name, ...(SYNONYMS[name] ?? [])]) {
      const text = scalarText(at(this.#object, pathOf(candidate)))
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

/** A number of seconds or of milliseconds, since 1973. */
function unixMs(time: number): number {
  if (time >= 1e11 && time < 1e14) return time
  return time >= 1e8 && time < 1e11 ? time * 1_000 : Number.NaN
}

function at(object: unknown, path: readonly string[]): unknown {
  let value = object
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

function pathOf(name: string): readonly string[] {
  return name.split('.')
}

function scalarText(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}

type RequestPart = 'method' | 'target' | 'path'

/** Variables that stand inside of `$request`, as in `GET /a?b=1 HTTP/1.1`. */
const REQUEST_PARTS: Readonly<Record<string, RequestPart>> = { request_method: 'method', request_uri: 'target', uri: 'path' }

function sourceOf(format: LineFormat, name: string): { index: number; part: RequestPart | undefined } | undefined {
  const index = format.indexOf(name)
  if (index >= 0) return { index, part: undefined }
  const part = REQUEST_PARTS[name]
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
  return part === 'target' ? target : withoutQuery(target)
}

function withoutQuery(target: string): string {
  const query = target.indexOf('?')
  return query < 0 ? target : target.slice(0, query)
}
