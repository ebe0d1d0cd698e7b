import { type HeaderPair, putHeaders } from '../headers/header.js'
import type { RequestFacts } from '../keys/key-reader.js'
import { onceInProcess } from '../once-in-process.js'
import type { DenialResponse } from './denial-response.js'
import { type Settle, settleQuietly } from './settle.js'

// Requests and responses of Node.js, over HTTP/1 or HTTP/2, as far as adapters use them.

/** A request of Node.js. */
export interface NodeRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly socket?: NodeSocket | undefined
}

/** The connection of a request. */
export interface NodeSocket {
  readonly remoteAddress?: string | undefined
  readonly destroyed?: boolean
  readonly bytesRead?: number | undefined
  on?(event: 'close', listener: () => void): unknown
}

/** A response of Node.js. */
export interface NodeResponse {
  statusCode: number
  readonly headersSent: boolean
  readonly destroyed?: boolean
  /** Whether `end` was called. */
  readonly writableEnded?: boolean
  /** Null while it waits behind other responses of its connection. */
  readonly socket?: unknown
  setHeader(name: string, value: string): unknown
  appendHeader(name: string, value: string): unknown
  on(event: 'finish' | 'close', listener: () => void): unknown
  end(body: string): unknown
}

/**
 * The facts of a request of Node.js; adapters add its URL and route. All but the address are read on demand: Express gives each request a prototype
 * of its own, which makes every property access of it as slow as a decision.
 */
export abstract class NodeFacts<Raw extends NodeRequest = NodeRequest> implements RequestFacts {
  readonly remoteAddress: string | undefined
  protected readonly raw: Raw
  private readonly response: NodeResponse

  /** @param socket for callers that have read it already. */
  constructor(raw: Raw, response: NodeResponse, socket: NodeRequest['socket'] = raw.socket) {
    this.raw = raw
    this.response = response
    // Read now: Node.js drops the address of a socket that closes before it was read.
    this.remoteAddress = socket?.remoteAddress
  }

  /** As the client requested it, with the query. */
  protected abstract readonly url: string
  abstract readonly route: string | undefined

  get method(): string {
    return this.raw.method ?? 'GET'
  }

  get isReceived(): boolean {
    return (this.raw.socket?.bytesRead ?? 0) > 0
  }

  get path(): string {
    const { url } = this
    const end = url.indexOf('?')
    return end < 0 ? url : url.slice(0, end)
  }

  header(name: string): string | undefined {
    const value = this.raw.headers[name]
    if (typeof value === 'string') return value
    // The headers are an ordinary object, which inherits names such as `constructor`.
    return Array.isArray(value) ? value.join(', ') : undefined
  }

  whenGone(callback: () => void): void {
    if (isGone(this.raw, this.response)) callback()
    else whenEnded(this.raw, this.response, callback)
  }
}

/** The pattern of a route as text: patterns of an array are joined by commas, a regular expression gives its source. Undefined for none. */
export function routePattern(path: unknown): string | undefined {
  if (typeof path === 'string') return path
  if (path instanceof RegExp) return path.source
  return Array.isArray(path) ? path.map(routePattern).join(',') : undefined
}

/**
 * Whether the client has disconnected. Such a request is neither counted nor served: its socket has no address to count it for, and an error would
 * only fill logs.
 */
export function isGone(request: NodeRequest, response: NodeResponse): boolean {
  return response.destroyed === true || request.socket?.destroyed === true
}

/** Sets the headers of a request that passes; without effect if a response was sent already. */
export function setHeaders(response: NodeResponse, headers: readonly HeaderPair[]): void {
  if (headers.length === 0) return
  const { setHeader } = response
  try {
    for (const pair of headers) setHeader.call(response, pair[0], pair[1])
  } catch (error) {
    // Checked only now, to save time: Node.js throws at the first header if it is too late.
    if (!response.headersSent) throw error
  }
}

/** Sends the response of a denial in the place of the handler. */
export function sendDenial(response: NodeResponse, { status, headers, body }: DenialResponse): void {
  if (response.headersSent) return
  putHeaders(headers, {
    set: (name, value) => response.setHeader(name, value),
    append: (name, value) => response.appendHeader(name, value),
  })
  // Last: if a header is invalid an error handler responds, and some of these keep a status that was set.
  response.statusCode = status
  response.end(body)
}

/**
 * Follows a result that is a promise, and calls `next` if `follow` returns true. Any error on the way goes to `next`, once: an unhandled rejection
 * would end the process.
 */
export function followLater<Found>(result: Promise<Found>, follow: (result: Found) => boolean, next: (error?: Error) => void): void {
  result.then(
    (found) => {
      let goesOn: boolean
      try {
        goesOn = follow(found)
      } catch (error) {
        next(faultOf(error))
        return
      }
      if (goesOn) next()
    },
    (error) => next(faultOf(error)),
  )
}

/** A thrown value as an error for `next`, which would let a request pass for undefined or a word such as `route`. */
export function faultOf(thrown: unknown): Error {
  if (typeof thrown === 'object' && thrown !== null) return thrown as Error
  return new Error(`a limit failed with a value that is not an error: ${String(thrown)}`, { cause: thrown })
}

/** Settles once the response has ended, or now if its client has disconnected, and renews permits until then. */
export function settleAtEnd(request: NodeRequest, response: NodeResponse, settle: Settle): void {
  if (isGone(request, response)) {
    settleQuietly(settle, undefined)
    return
  }
  settle.keep?.()
  whenEnded(request, response, settle)
}

/** Where a response keeps what to settle at its end: with thousands of requests a WeakMap costs more than all else here. */
const SETTLES: unique symbol = Symbol.for('sluicegate: end of a response')

interface WatchedResponse extends NodeResponse {
  [SETTLES]?: Settle[] | undefined
}

/** For each connection with pipelined responses: what to do when it closes. */
const pipelinedOf = /* @__PURE__ */ onceInProcess('queued responses', () => new WeakMap<NodeSocket, Set<() => void>>())

/**
 * Settles once the response has ended. Listeners are shared by all callers for one response or one connection: clients choose how many requests a
 * connection has, and Node.js warns of more than ten listeners.
 */
function whenEnded(request: NodeRequest, response: WatchedResponse, settle: Settle): void {
  const known = response[SETTLES]
  if (known === undefined) watchEnd(request, response, [settle])
  else known.push(settle)
}

function watchEnd(request: NodeRequest, response: WatchedResponse, settles: Settle[]): void {
  const hangUp = (): void => end(undefined)
  const pipelined = pipelinedBehind(request, response)
  const end = (status: number | undefined): void => {
    response[SETTLES] = undefined
    pipelined?.delete(hangUp)
    for (const settle of settles.splice(0)) settleQuietly(settle, status)
  }
  response[SETTLES] = settles
  pipelined?.add(hangUp)
  // Over HTTP/2 `finish` is also emitted for streams that were reset, with the status that they had by then.
  response.on('finish', () => end(response.writableEnded === false ? undefined : response.statusCode))
  response.on('close', hangUp)
}

/** A response that waits behind others emits nothing when their connection closes: the close of the socket is watched instead. */
function pipelinedBehind({ socket }: NodeRequest, response: NodeResponse): Set<() => void> | undefined {
  if (response.socket !== null || socket?.on === undefined) return undefined
  const known = pipelinedOf.get(socket)
  if (known !== undefined) return known
  const pipelined = new Set<() => void>()
  pipelinedOf.set(socket, pipelined)
  socket.on('close', () => {
    for (const hangUp of pipelined) hangUp()
  })
  return pipelined
}
