import { type HeaderPair, putHeaders } from '../headers/header-pair.js'
import type { RequestFacts } from '../keys/key-reader.js'
import { onceInProcess } from '../once-in-process.js'
import type { Answer } from './middleware.js'
import { type Settle, settleQuietly } from './settle.js'

/** What adapters use of a request of Node's, over HTTP/1 or HTTP/2. */
export interface NodeRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly socket?: NodeSocket | undefined
}

/** What they use of the connection that it came by. */
export interface NodeSocket {
  readonly remoteAddress?: string | undefined
  readonly destroyed?: boolean
  readonly bytesRead?: number | undefined
  on?(event: 'close', listener: () => void): unknown
}

/** What adapters use of a response of Node's. */
export interface NodeResponse {
  statusCode: number
  readonly headersSent: boolean
  readonly destroyed?: boolean
  /** Whether `end` was called. */
  readonly writableEnded?: boolean
  /** Null while it waits behind other responses. */
  readonly socket?: unknown
  setHeader(name: string, value: string): unknown
  appendHeader(name: string, value: string): unknown
  on(event: 'finish' | 'close', listener: () => void): unknown
  end(body: string): unknown
}

/**
 * The facts of a request of Node's; frameworks know its URL and route. All but the address is read when somebody asks for it: Express gives each
 * request a prototype of its own, after which V8 knows no property of it, and each that is read costs as much as a decision.
 */
export abstract class NodeFacts<Raw extends NodeRequest = NodeRequest> implements RequestFacts {
  readonly remoteAddress: string | undefined
  protected readonly raw: Raw
  private readonly response: NodeResponse

  /** @param socket read once, by whoever has asked it something already. */
  constructor(raw: Raw, response: NodeResponse, socket: NodeRequest['socket'] = raw.socket) {
    this.raw = raw
    this.response = response
    // Read now: Node forgets the address of a socket that is closed before anybody asked for it.
    this.remoteAddress = socket?.remoteAddress
  }

  /** As the client asked for it, with the query. */
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
    // Node's headers are an object like any other: it has a `constructor` that nobody sent.
    return Array.isArray(value) ? value.join(', ') : undefined
  }

  whenGone(tell: () => void): void {
    if (isGone(this.raw, this.response)) tell()
    else whenEnded(this.raw, this.response, tell)
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
  if (headers.length === 0) return
  const { setHeader } = response
  try {
    for (const pair of headers) setHeader.call(response, pair[0], pair[1])
  } catch (error) {
    // Asked only now: Node refuses the first of them if it is too late, and looks at nothing else to find out.
    if (!response.headersSent) throw error
  }
}

/** Answers in the place of the handler. */
export function sendAnswer(response: NodeResponse, { status, headers, body }: Answer): void {
  if (response.headersSent) return
  putHeaders(headers, {
    set: (name, value) => response.setHeader(name, value),
    append: (name, value) => response.appendHeader(name, value),
  })
  // Last: what goes wrong is answered by others, some of whom keep a status that they find.
  response.statusCode = status
  response.end(body)
}

/**
 * Follows an outcome that comes later, and goes on by `next` where `follow` says so. Whatever goes wrong on the way, `next` is told, once: a
 * rejection that nobody hears of ends the process.
 */
export function followLater<Found>(outcome: Promise<Found>, follow: (outcome: Found) => boolean, next: (error?: Error) => void): void {
  outcome.then(
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

/**
 * What was thrown, as frameworks take it for an error: nothing, or a word such as `route`, would let the request pass.
 */
export function faultOf(thrown: unknown): Error {
  if (typeof thrown === 'object' && thrown !== null) return thrown as Error
  return new Error(`a limit failed, by what is no error: ${String(thrown)}`, { cause: thrown })
}

/** Calls once the response has ended, or now if its client has gone, and keeps places until then. */
export function settleAtEnd(request: NodeRequest, response: NodeResponse, settle: Settle): void {
  if (isGone(request, response)) {
    settleQuietly(settle, undefined)
    return
  }
  settle.keep?.()
  whenEnded(request, response, settle)
}

/** Where a response says who is to be told of its end: for requests by the thousand a WeakMap costs more than all else here. */
const SETTLES: unique symbol = Symbol.for('sluicegate: end of a response')

interface WatchedResponse extends NodeResponse {
  [SETTLES]?: Settle[] | undefined
}

/** What is to be done when a connection is closed on which responses wait behind others. */
const queueOf = /* @__PURE__ */ onceInProcess('queued responses', () => new WeakMap<NodeSocket, Set<() => void>>())

/**
 * Settles once the response has ended. The listeners are shared by all that wait for one response, or for one connection: how many these are is
 * for clients to choose, and Node warns of more than ten.
 */
export function whenEnded(request: NodeRequest, response: WatchedResponse, settle: Settle): void {
  const known = response[SETTLES]
  if (known === undefined) watch(request, response, [settle])
  else known.push(settle)
}

function watch(request: NodeRequest, response: WatchedResponse, settles: Settle[]): void {
  const hangUp = (): void => end(undefined)
  const queue = queueBefore(request, response)
  const end = (status: number | undefined): void => {
    response[SETTLES] = undefined
    queue?.delete(hangUp)
    for (const settle of settles.splice(0)) settleQuietly(settle, status)
  }
  response[SETTLES] = settles
  queue?.add(hangUp)
  // Over HTTP/2 it is told of streams that were reset as well, with whatever status they had by then.
  response.on('finish', () => end(response.writableEnded === false ? undefined : response.statusCode))
  response.on('close', hangUp)
}

/** Of a response that waits behind others Node tells nothing when their connection is closed, and its request may be closed long before. */
function queueBefore({ socket }: NodeRequest, response: NodeResponse): Set<() => void> | undefined {
  if (response.socket !== null || socket?.on === undefined) return undefined
  const known = queueOf.get(socket)
  if (known !== undefined) return known
  const queue = new Set<() => void>()
  queueOf.set(socket, queue)
  socket.on('close', () => {
    for (const hangUp of queue) hangUp()
  })
  return queue
}

/** The pattern of a route as text: of several joined by commas, of a regular expression its source. Undefined where none matched. */
export function routePattern(path: unknown): string | undefined {
  if (typeof path === 'string') return path
  if (path instanceof RegExp) return path.source
  return Array.isArray(path) ? path.map(routePattern).join(',') : undefined
}
