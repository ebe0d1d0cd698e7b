import { UsageError } from '../../terminal/usage-error.js'
import { ErrorTexts, type LoadOutcome, type LoadTarget } from '../load-plan.js'
import { RequestPool } from './request-pool.js'
import { type AnswerReader, type SocketAddress, type SocketCodec, SocketConnection } from './socket-connection.js'

/** A key that no URL contains by itself. */
const MARK = 'sluicegate-load-key'

export interface HttpTargetOptions {
  /** `http://`, `https://` or `unix:/PATH`. A path with `{key}` is requested as it is; otherwise `/v1/take`. */
  readonly url: string
  readonly policy: string | undefined
  readonly cost: number
  readonly token: string | undefined
  readonly connections: number
}

/** Requests over HTTP/1.1, one at a time a connection: 2xx is allowed, 429 and 422 are denied. */
export function httpTarget({ url, policy, cost, token, connections }: HttpTargetOptions): LoadTarget {
  const isUnix = url.startsWith('unix:')
  const parsed = new URL((isUnix ? 'http://localhost' : url).replaceAll('{key}', MARK))
  const address: SocketAddress = isUnix ? { path: url.slice('unix:'.length) } : addressOf(parsed)
  const template = `${parsed.pathname}${parsed.search}`
  const path = template.includes(MARK) ? template : takePath(template, policy, cost)
  const authorization = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
  const rest = ` HTTP/1.1\r\nhost: ${parsed.host}\r\n${authorization}accept: */*\r\n\r\n`
  const codec: SocketCodec = {
    request: (key) => `GET ${path.replaceAll(MARK, encodeURIComponent(key))}${rest}`,
    reader: () => new HttpAnswerReader(),
  }
  const errors = new ErrorTexts()
  const pool = new RequestPool(
    Array.from({ length: connections }, () => new SocketConnection(address, codec, errors)),
    1,
  )
  return { take: (key) => pool.send(key), errors, close: async () => pool.close() }
}

function takePath(path: string, policy: string | undefined, cost: number): string {
  if (path !== '/')
    throw new UsageError(`a URL with a path needs {key} where the key goes, such as http://127.0.0.1:8080${path}?user={key}`)
  if (policy === undefined) throw new UsageError('say which policy: --policy NAME')
  return `/v1/take?policy=${encodeURIComponent(policy)}&key=${MARK}${cost === 1 ? '' : `&cost=${cost}`}`
}

function addressOf({ protocol, hostname, port }: URL): SocketAddress {
  const isTls = protocol === 'https:'
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) || (isTls ? 443 : 80), isTls }
}

const HEAD_END = Buffer.from('\r\n\r\n')
const MAX_HEAD_BYTES = 65_536
const EMPTY = Buffer.alloc(0)

/** Reads status and length of answers; bodies are passed over. */
class HttpAnswerReader implements AnswerReader {
  #held: Buffer = EMPTY
  /** Bytes of a body that are still to come; undefined before a head, `chunked` until an empty chunk. */
  #rest: number | 'chunked' | undefined
  #outcome: LoadOutcome = 'error'
  #error: string | undefined
  isLast = false

  read(bytes: Buffer, answered: (outcome: LoadOutcome, error?: string) => void): void {
    let rest = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
    this.#held = EMPTY
    for (;;) {
      if (this.#rest === undefined) {
        const end = rest.indexOf(HEAD_END)
        if (end < 0) {
          if (rest.length > MAX_HEAD_BYTES) throw new Error('the head of an answer is too long')
          this.#held = rest
          return
        }
        this.#readHead(rest.toString('latin1', 0, end))
        rest = rest.subarray(end + HEAD_END.length)
      }
      if (this.#rest === 'chunked') {
        const after = this.#chunksIn(rest)
        if (after === undefined) return
        rest = after
      } else if (typeof this.#rest === 'number') {
        if (rest.length < this.#rest) {
          this.#rest -= rest.length
          return
        }
        rest = rest.subarray(this.#rest)
      }
      const isInterim = this.#error === 'interim'
      this.#rest = undefined
      if (!isInterim) answered(this.#outcome, this.#error)
      if (rest.length === 0) return
    }
  }

  #readHead(head: string): void {
    const status = Number(/^HTTP\/1\.\d (\d{3})/.exec(head)?.[1])
    if (Number.isNaN(status)) throw new Error('the answer is not HTTP/1.1')
    if (status >= 100 && status < 200) {
      this.#error = 'interim'
      this.#rest = 0
      return
    }
    this.#outcome = status < 300 ? 'allowed' : status === 429 || status === 422 ? 'denied' : 'error'
    this.#error = this.#outcome === 'error' ? `status ${status}` : undefined
    this.isLast = /^connection: *close/im.test(head)
    const length = /^content-length: *(\d+)/im.exec(head)?.[1]
    if (length !== undefined) this.#rest = Number(length)
    else if (/^transfer-encoding: *chunked/im.test(head)) this.#rest = 'chunked'
    else if (status === 204 || status === 304) this.#rest = 0
    else throw new Error('an answer has no content-length')
  }

  /** What follows the last chunk; undefined when it has not arrived. */
  #chunksIn(bytes: Buffer): Buffer | undefined {
    let at = 0
    for (;;) {
      const lineEnd = bytes.indexOf('\r\n', at)
      const size = lineEnd < 0 ? Number.NaN : Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
      const next = lineEnd + 2 + size + 2
      if (lineEnd < 0 || next > bytes.length) {
        this.#held = bytes.subarray(at)
        return undefined
      }
      if (Number.isNaN(size)) throw new Error('a chunk has no size')
      at = next
      if (size === 0) return bytes.subarray(at)
    }
  }
}
