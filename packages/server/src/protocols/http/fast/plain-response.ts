import { STATUS_CODES } from 'node:http'
import type { WholeResponse } from '../handler.js'
import type { PlainRequest } from './plain-request.js'

/** Fields with other characters could end their line (RFC 9110, section 5.5). */
const UNSAFE = /[^\t\x20-\x7e]/
const MS_PER_S = 1_000

/** What sends the text of a {@link PlainResponse}. */
export interface ResponseSender {
  /** Whether the connection closes after this response. */
  send(text: string, encoding: 'latin1' | 'utf8', isLast: boolean): void
}

/** A response to a {@link PlainRequest}: the same bytes that Node would send, as one text. */
export class PlainResponse implements WholeResponse {
  /** As of Node's response: false makes it the last of its connection. */
  shouldKeepAlive = true
  statusCode = 200
  writableEnded = false
  writableFinished = false
  readonly req: PlainRequest
  readonly #sender: ResponseSender
  readonly #keepAlive: string
  #head = ''

  /** @param keepAlive the fields with which Node keeps a connection open. */
  constructor(req: PlainRequest, sender: ResponseSender, keepAlive: string) {
    this.req = req
    this.#sender = sender
    this.#keepAlive = keepAlive
  }

  get headersSent(): boolean {
    return this.#head !== ''
  }

  /** @throws {TypeError} for a value that could end its line. */
  writeHead(status: number, headers: readonly string[]): void {
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
    for (let i = 0; i < headers.length; i += 2) {
      const value = headers[i + 1] as string
      if (UNSAFE.test(value)) throw new TypeError(`the value of ${headers[i]} has characters that a header cannot have`)
      head += `${headers[i]}: ${value}\r\n`
    }
    this.statusCode = status
    this.#head = head
  }

  end(body: string | Buffer = ''): void {
    this.writableEnded = true
    const text = typeof body === 'string' ? body : body.toString()
    const connection = this.shouldKeepAlive ? this.#keepAlive : 'Connection: close\r\n'
    const isAscii = Buffer.byteLength(text) === text.length
    this.#sender.send(`${this.#head}Date: ${httpDate()}\r\n${connection}\r\n${text}`, isAscii ? 'latin1' : 'utf8', !this.shouldKeepAlive)
  }
}

let dateS = 0
let date = ''

/** Now, as in a Date header (RFC 9110, section 5.6.7). */
function httpDate(): string {
  const nowS = Math.floor(Date.now() / MS_PER_S)
  if (nowS !== dateS) {
    dateS = nowS
    date = new Date(nowS * MS_PER_S).toUTCString()
  }
  return date
}
