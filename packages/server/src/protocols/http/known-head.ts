import type { IncomingMessage } from 'node:http'
import { hasGoodHost } from './host.js'

const BEGIN = 'GET '
const TARGET = /^\/[\x21-\x7e]*$/

/**
 * The bytes of a GET after its target: its version and its headers. Most clients send the same ones with each request of a connection. Then Node's parser,
 * which has read them once, would read the same again: only the target of the next request is new.
 */
export class KnownHead {
  /** Parsed by Node: the headers of all requests that end like it. */
  readonly request: IncomingMessage
  readonly #rest: string

  private constructor(request: IncomingMessage, rest: string) {
    this.request = request
    this.#rest = rest
  }

  /**
   * The head of a request without a body that Node has parsed from `bytes`, all of them and no others; undefined where another request with the same
   * headers needs more than an answer.
   */
  static of(bytes: Buffer, request: IncomingMessage): KnownHead | undefined {
    const { method, url, headers } = request
    if (method !== 'GET' || headers.expect !== undefined || headers.upgrade !== undefined || !hasGoodHost(request)) return undefined
    const text = bytes.toString('latin1')
    const rest = text.slice(BEGIN.length + (url ?? '').length)
    return text === `${BEGIN}${url}${rest}` && rest.startsWith(' HTTP/1.1\r\n') ? new KnownHead(request, rest) : undefined
  }

  /** The target of a GET in `bytes`, which end with its headers. Undefined unless all but the target is as it was. */
  targetIn(bytes: Buffer): string | undefined {
    const length = bytes.length - this.#rest.length
    if (length <= BEGIN.length) return undefined
    const text = bytes.toString('latin1')
    if (!text.endsWith(this.#rest) || !text.startsWith(BEGIN)) return undefined
    const target = text.slice(BEGIN.length, length)
    return TARGET.test(target) ? target : undefined
  }
}
