import type { IncomingMessage, ServerResponse } from 'node:http'

/** Answers one kind of request. What it throws, or rejects with, becomes a problem response. */
export type Handler = (request: IncomingMessage, response: ServerResponse, query: string) => void | Promise<void>

/** The handlers of a path by method. */
export type Route = Readonly<Record<string, Handler>>

/** The part of a request before its body, except the target. */
export type RequestHead = Pick<IncomingMessage, 'headers' | 'headersDistinct' | 'rawHeaders'>

/** A response that is written at once: that of Node, or a {@link DirectResponse}. */
export interface WholeResponse {
  readonly req: RequestHead
  readonly headersSent: boolean
  readonly statusCode: number
  /** Names and values in turn. */
  writeHead(status: number, headers: string[]): unknown
  end(body?: string | Buffer): unknown
}

/** A {@link Handler} that needs no more than this, so that it can answer a request that Node has not parsed. */
export type HeadHandler = (request: RequestHead, response: WholeResponse, query: string) => void | Promise<void>
