import type { HeaderPair } from '../headers/header-pair.js'
import type { RequestFacts } from '../keys/request-facts.js'
import type { Answer } from './outcome.js'
import { putHeaders } from './put-headers.js'
import { type Settle, settleQuietly } from './settling.js'

/** What adapters use of a request of Node's, over HTTP/1 or HTTP/2. */
export interface NodeRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly socket?: { readonly remoteAddress?: string | undefined; readonly destroyed?: boolean } | undefined
}

/** What adapters use of a response of Node's. */
export interface NodeResponse {
  statusCode: number
  readonly headersSent: boolean
  readonly destroyed?: boolean
  setHeader(name: string, value: string): unknown
  appendHeader(name: string, value: string): unknown
  once(event: 'finish' | 'close', listener: () => void): unknown
  end(body: string): unknown
}

/** The facts of a request of Node's; frameworks know path and route better. */
export class NodeFacts implements RequestFacts {
  readonly method: string
  readonly remoteAddress: string | undefined
  private readonly headers: NodeRequest['headers']
  private readonly url: string
  readonly route: string | undefined

  constructor(request: NodeRequest, url: string, route: string | undefined) {
    this.method = request.method ?? 'GET'
    this.headers = request.headers
    this.url = url
    this.route = route
    // Read now: Node forgets the address of a socket that is closed before anybody asked for it.
    this.remoteAddress = request.socket?.remoteAddress
  }

  get path(): string {
    const end = this.url.indexOf('?')
    return end < 0 ? this.url : this.url.slice(0, end)
  }

  header(name: string): string | undefined {
    const value = this.headers[name]
    return value === undefined || typeof value === 'string' ? value : value.join(', ')
  }
}

/**
 * Whether nobody is there any more to be answered. Such a request is neither counted nor served: its socket has no address to
 * count it for, and an error would fill logs with what is none.
 */
export function isGone(request: NodeRequest, response: NodeResponse): boolean {
  return response.destroyed === true || request.socket?.destroyed === true
}

/** Headers of a request that goes on; without effect where an answer is on its way already. */
export function setHeaders(response: NodeResponse, headers: readonly HeaderPair[]): void {
  if (response.headersSent) return
  for (const [name, value] of headers) response.setHeader(name, value)
}

/** Answers in the place of the handler. */
export function sendAnswer(response: NodeResponse, { status, headers, body }: Answer): void {
  if (response.headersSent) return
  response.statusCode = status
  putHeaders(headers, {
    set: (name, value) => response.setHeader(name, value),
    append: (name, value) => response.appendHeader(name, value),
  })
  response.end(body)
}

/** Calls once the response has ended, or now if its client has gone. A second call changes nothing. */
export function settleAtEnd(request: NodeRequest, response: NodeResponse, settle: Settle): void {
  if (isGone(request, response)) {
    settleQuietly(settle, undefined)
    return
  }
  response.once('finish', () => settleQuietly(settle, response.statusCode))
  response.once('close', () => settleQuietly(settle, undefined))
}
