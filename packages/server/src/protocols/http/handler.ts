import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CallTracing } from '../call-tracing.js'

/** The part of a request before its body, except the target. */
export type RequestHead = Pick<IncomingMessage, 'headers' | 'rawHeaders'>

/** A request that the fast path has read whole, with its body. */
export interface WholeRequest extends RequestHead {
  readonly body: Buffer
}

/** A response that is written at once: that of Node, or that of the fast path. */
export interface WholeResponse {
  readonly req: RequestHead
  readonly headersSent: boolean
  readonly statusCode: number
  /** Names and values in turn. */
  writeHead(status: number, headers: string[]): unknown
  end(body?: string | Buffer): unknown
}

/** Answers one kind of request over time, or as Node's parser reads it. What it throws, or rejects with, becomes a problem response. */
export type Handler = (request: IncomingMessage, response: ServerResponse, query: string) => void | Promise<void>

/** A {@link Handler} that needs a whole request and answers at once, so that the fast path can call it. */
export type WholeHandler = (request: IncomingMessage | WholeRequest, response: WholeResponse, query: string) => void | Promise<void>

/** What a method of a path does. */
export type Endpoint = Handler | { readonly whole: WholeHandler }

/** The endpoints of a path by method. */
export type Route = Readonly<Record<string, Endpoint>>

/** The paths of a listener. */
export type Routes = ReadonlyMap<string, Route>

/** Wraps handlers of both kinds. */
export type HandlerWrap = <Request extends RequestHead, Response extends Pick<WholeResponse, 'headersSent' | 'statusCode'>>(
  handler: (request: Request, response: Response, query: string) => void | Promise<void>,
) => (request: Request, response: Response, query: string) => void | Promise<void>

/** `route` with each handler wrapped by what `wrapOf` returns for its method. */
export function wrapped(route: Route, wrapOf: (method: string) => HandlerWrap): Route {
  const endpoints = Object.entries(route).map(([method, endpoint]): [string, Endpoint] => {
    const wrap = wrapOf(method)
    return [method, 'whole' in endpoint ? { whole: wrap(endpoint.whole) } : wrap(endpoint)]
  })
  return Object.fromEntries(endpoints)
}

/** No call for a decision. */
const DOCUMENT = '/openapi.json'

/** `routes` whose requests are followed. */
export function traced(
  routes: readonly [path: string, route: Route][],
  tracing: CallTracing | undefined,
): readonly [path: string, route: Route][] {
  if (tracing === undefined) return routes
  return routes.map(([path, route]) => [path, path === DOCUMENT ? route : wrapped(route, (method) => following(method, path, tracing))])
}

function following(method: string, path: string, tracing: CallTracing): HandlerWrap {
  const name = `${method} ${path}`
  const attributes = { 'http.request.method': method, 'http.route': path }
  return (handler) => (request, response, query) => {
    // After an error the router answers, with a status that is not there yet.
    const endAttributes = () => (response.headersSent ? { 'http.response.status_code': response.statusCode } : {})
    return tracing.run({ name, attributes, headers: request.headers, endAttributes }, () => handler(request, response, query))
  }
}
