import { PolicyError } from '../errors.js'
import { type HeaderSource, headerOf } from '../headers/header-source.js'
import {
  type Dispatch,
  type DispatchController,
  type DispatchHandler,
  type DispatchOptions,
  LastingController,
} from './dispatch-handler.js'
import { Lines } from './lines.js'
import { OutboundCall } from './outbound-call.js'
import type { OutboundOptions } from './outbound-options.js'
import type { SentRequest } from './outbound-request.js'
import { outboundSettings } from './outbound-settings.js'
import type { OutboundControls } from './outbound-stats.js'
import type { Turn } from './turn.js'

/** So much of a response that nobody gets is read, to keep the connection; of one that is longer it is closed. */
const MOST_DROPPED_BYTES = 65_536

/** An interceptor for `dispatcher.compose`, of undici 7 or later. */
export type OutboundInterceptor = (<Function extends (options: never, handler: never) => boolean>(dispatch: Function) => Function) &
  OutboundControls

/**
 * The same as {@link limitedFetch} for undici: each request of the dispatcher waits for its turn, that of every redirect included, when it stands
 * before `interceptors.redirect()`.
 *
 * @throws {PolicyError} on options that cannot be.
 * @example
 * const agent = new Agent().compose(limited({ policy: gcra({ limit: 5, window: '1s' }) }))
 * const { statusCode, body } = await request('http://example.com/', { dispatcher: agent })
 */
export function limited(options: OutboundOptions = {}): OutboundInterceptor {
  const settings = outboundSettings(options)
  const lines = new Lines(settings)
  let retried = 0
  const begin = (request: SentRequest): OutboundCall => new OutboundCall(lines, settings, request, () => retried++)
  const interceptor =
    (dispatch: Dispatch): Dispatch =>
    (opts, handler) => {
      // Undici 7 translates for callers of older forms, 8 and 6 do not: whoever waits for other calls would wait for ever.
      if (handler.onRequestStart === undefined && 'onConnect' in handler) {
        throw new PolicyError(
          'CLIENT_INVALID',
          'dispatcher',
          handler,
          'must be called by undici 7 or later, or be of undici 7 where Node calls it',
        )
      }
      new LimitedDispatch(dispatch, opts, handler, begin, options.priority).start()
      return true
    }
  const controls: OutboundControls = {
    stats: () => ({ ...lines.stats(), retried }),
    statsOf: (key) => lines.statsOf(key),
    close: () => lines.close(),
  }
  return Object.assign(interceptor, controls) as unknown as OutboundInterceptor
}

/** One request, with all its attempts: between undici and whoever called it. */
class LimitedDispatch implements DispatchHandler {
  private readonly dispatch: Dispatch
  private readonly options: DispatchOptions
  private readonly handler: DispatchHandler
  private readonly begin: (request: SentRequest) => OutboundCall
  private readonly priorityOf: OutboundOptions['priority']
  private readonly own = new AbortController()
  private readonly controller = new LastingController(this.own)
  private call!: OutboundCall
  private turn: Turn | undefined
  private hasStarted = false
  /** Bytes of a response that is dropped. */
  private dropped: number | undefined

  constructor(
    dispatch: Dispatch,
    options: DispatchOptions,
    handler: DispatchHandler,
    begin: (request: SentRequest) => OutboundCall,
    priorityOf: OutboundOptions['priority'],
  ) {
    this.dispatch = dispatch
    this.options = options
    this.handler = handler
    this.begin = begin
    this.priorityOf = priorityOf
  }

  start(): void {
    // Before there is a connection, so that whoever called can abort while it waits: undici hands its signals on to the controller.
    this.handler.onRequestStart?.(this.controller, {})
    try {
      if (this.own.signal.aborted) throw this.own.signal.reason
      this.call = this.begin(this.request())
      void this.attempt()
    } catch (error) {
      this.fail(error)
    }
  }

  onRequestStart(controller: DispatchController, _context: unknown): void {
    this.controller.target = controller
  }

  onRequestUpgrade(_controller: DispatchController, status: number, headers: HeaderSource, socket: unknown): void {
    this.call.answered(this.turn as Turn, status, headers, undefined)
    this.turn?.end()
    this.handler.onRequestUpgrade?.(this.controller, status, headers, socket)
  }

  onResponseStart(controller: DispatchController, status: number, headers: HeaderSource, text?: string): void {
    // Others are on the way.
    const isFinal = status >= 200
    try {
      if (isFinal && this.call.answered(this.turn as Turn, status, headers, undefined)) {
        this.dropped = 0
        return
      }
    } catch (error) {
      // A hook's.
      controller.abort(error)
      return
    }
    this.hasStarted = isFinal
    this.handler.onResponseStart?.(this.controller, status, headers, text)
  }

  onResponseData(controller: DispatchController, chunk: { readonly length: number }): void {
    if (this.dropped === undefined) {
      this.handler.onResponseData?.(this.controller, chunk)
    } else {
      this.dropped += chunk.length
      if (this.dropped > MOST_DROPPED_BYTES) controller.abort(new Error('not read'))
    }
  }

  onResponseEnd(_controller: DispatchController, trailers: unknown): void {
    this.turn?.end()
    if (this.dropped === undefined) this.handler.onResponseEnd?.(this.controller, trailers)
    else void this.attempt()
  }

  onResponseError(_controller: DispatchController, error: unknown): void {
    const { turn } = this
    const isOpen = turn !== undefined && !this.hasStarted && !this.own.signal.aborted
    try {
      if (isOpen && (this.dropped !== undefined || this.call.failed(turn, error))) void this.attempt()
      else this.fail(error)
    } catch (thrown) {
      this.fail(thrown)
    }
    turn?.failed()
  }

  private async attempt(): Promise<void> {
    this.controller.target = undefined
    this.dropped = undefined
    let turn: Turn | undefined
    try {
      turn = await this.call.turn()
      this.turn = turn
      this.dispatch(this.options, this)
    } catch (error) {
      turn?.failed()
      this.fail(error)
    }
  }

  private fail(error: unknown): void {
    this.handler.onResponseError?.(this.controller, error)
  }

  private request(): SentRequest {
    const { origin, path, method, headers, body } = this.options
    const source = headerSource(headers)
    const request: SentRequest = {
      url: urlOf(origin, path),
      method: method.toUpperCase(),
      header: (name) => headerOf(source, name),
      isRepeatable: body === undefined || body === null || typeof body === 'string' || ArrayBuffer.isView(body),
      signal: this.own.signal,
      priority: 0,
    }
    return this.priorityOf === undefined ? request : { ...request, priority: this.priorityOf(request) }
  }
}

/** A client that knows no other host does not tell which one it is. */
function urlOf(origin: string | URL = 'http://client.invalid', path = '/'): URL {
  // Put together as undici does it: a path that begins with two slashes is no host.
  return path.startsWith('/') ? new URL(new URL(origin).origin + path) : new URL(path, origin)
}

/** Headers as undici takes them: an object, pairs, or names and values in turn. */
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
