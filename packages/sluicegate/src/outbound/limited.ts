import { PolicyError } from '../errors.js'
import { type HeaderSource, headerOf } from '../headers/header.js'
import { copiedInit, isRepeatable } from './copied-arguments.js'
import {
  type AttemptOwner,
  type Dispatch,
  DispatchAttempt,
  type DispatchHandler,
  type DispatchOptions,
  LastingController,
} from './dispatch-attempt.js'
import { KeyQueues } from './key-queues.js'
import { OutboundCall } from './outbound-call.js'
import { controlsOf, type OutboundControls, type OutboundOptions, type OutboundSettings, outboundSettings } from './outbound-options.js'
import type { SentRequest } from './retry-rule.js'
import type { Turn } from './waiting-list.js'

/** An interceptor for `dispatcher.compose`, of undici 7 or later. */
export type OutboundInterceptor = (<Function extends (options: never, handler: never) => boolean>(dispatch: Function) => Function) &
  OutboundControls

/**
 * The same as {@link limitedFetch} for undici: each request of the dispatcher waits for its turn. Before `interceptors.redirect()` in
 * `compose` each redirect does, too.
 *
 * @throws {PolicyError} on options that are unknown or wrong.
 * @example
 * const agent = new Agent().compose(limited({ policy: gcra({ limit: 5, window: '1s' }) }))
 * const { statusCode, body } = await request('http://example.com/', { dispatcher: agent })
 */
export function limited(options: OutboundOptions = {}): OutboundInterceptor {
  const settings = outboundSettings(options)
  const queues = new KeyQueues(settings)
  const interceptor =
    (dispatch: Dispatch): Dispatch =>
    (opts, handler) => {
      // Undici 7 adapts handlers of the older interface, 8 and 6 do not: the request would never be answered.
      if (handler.onRequestStart === undefined && 'onConnect' in handler) {
        throw new PolicyError(
          'CLIENT_INVALID',
          'dispatcher',
          handler,
          'must be used with undici 7 or later, and be of undici 7 for the fetch of Node.js',
        )
      }
      new LimitedDispatch(dispatch, opts, handler, queues, settings).start()
      return true
    }
  return Object.assign(interceptor, controlsOf(queues)) as unknown as OutboundInterceptor
}

/** One request of a dispatcher with all its attempts, between undici and the caller. */
class LimitedDispatch implements AttemptOwner {
  readonly handler: DispatchHandler
  readonly controller: LastingController
  readonly context: object = {}
  call!: OutboundCall
  private readonly dispatch: Dispatch
  private readonly options: DispatchOptions
  private readonly queues: KeyQueues
  private readonly settings: OutboundSettings
  private readonly own = new AbortController()
  private hasFailed = false

  constructor(dispatch: Dispatch, options: DispatchOptions, handler: DispatchHandler, queues: KeyQueues, settings: OutboundSettings) {
    this.dispatch = dispatch
    // Undici reads the options during the call, and the caller may reuse the object for its next request.
    this.options = copiedInit(options) as DispatchOptions
    this.handler = handler
    this.queues = queues
    this.settings = settings
    this.controller = new LastingController(this.own)
  }

  get bodyTimeoutMs(): number {
    return this.settings.bodyTimeoutMs
  }

  start(): void {
    const { signal } = this.own
    try {
      // Before there is a connection, so that the caller can abort while the request waits: undici passes its signals to the controller.
      this.handler.onRequestStart?.(this.controller, this.context)
      if (signal.aborted) throw signal.reason
      this.call = new OutboundCall(this.queues, this.settings, dispatchRequest(this.options, signal, this.settings.given.priority))
      this.again()
    } catch (error) {
      this.fail(error)
    }
  }

  again(): void {
    void this.attempt()
  }

  background(ms: number, fn: () => void): () => void {
    return this.queues.background(ms, fn)
  }

  fail(error: unknown): void {
    if (this.hasFailed) return
    this.hasFailed = true
    this.handler.onResponseError?.(this.controller, error)
  }

  private async attempt(): Promise<void> {
    this.controller.target = undefined
    let turn: Turn | undefined
    try {
      turn = await this.call.turn()
      this.dispatch(this.options, new DispatchAttempt(turn, this))
    } catch (error) {
      turn?.end()
      this.fail(error)
    }
  }
}

/** The request in undici's options. @throws {TypeError} on an invalid URL. @throws {PolicyError} `CLIENT_INVALID` */
function dispatchRequest(
  { origin, path, method, headers, body }: DispatchOptions,
  signal: AbortSignal,
  priorityOf: OutboundOptions['priority'],
): SentRequest {
  const source = headerSource(headers)
  const request: SentRequest = {
    url: urlOf(origin, path, method),
    method: method.toUpperCase(),
    header: (name) => headerOf(source, name),
    isRepeatable: isRepeatable(body),
    signal,
    priority: 0,
  }
  return priorityOf === undefined ? request : { ...request, priority: priorityOf(request) }
}

function urlOf(origin: string | URL | undefined, path = '/', method = 'GET'): URL {
  // CONNECT has the authority for a path, such as `example.com:443`.
  if (method === 'CONNECT' && !path.startsWith('/')) return new URL(`https://${path}`)
  // A Client of one host does not pass its origin.
  if (origin === undefined) {
    throw new PolicyError(
      'CLIENT_INVALID',
      'origin',
      origin,
      'must be given with each request of a Client or Pool of undici 7; an Agent has it',
    )
  }
  // Joined as undici does it: a path that begins with two slashes does not name a host.
  return path.startsWith('/') ? new URL(new URL(origin).origin + path) : new URL(path, origin)
}

/** Headers in undici's forms: an object, pairs, or names and values in turn. */
function headerSource(headers: unknown): HeaderSource {
  if (headers === undefined || headers === null) return {}
  const pairs: [string, string][] = []
  if (Array.isArray(headers) && typeof headers[0] === 'string') {
    for (let i = 0; i + 1 < headers.length; i += 2) pairs.push([String(headers[i]).toLowerCase(), String(headers[i + 1])])
  } else {
    const entries = Symbol.iterator in Object(headers) ? (headers as Iterable<[string, string]>) : Object.entries(headers as object)
    for (const [name, value] of entries) pairs.push([String(name).toLowerCase(), String(value)])
  }
  return new Map(pairs)
}
