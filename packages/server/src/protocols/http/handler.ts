import type { IncomingMessage, ServerResponse } from 'node:http'

/** Answers one kind of request. What it throws, or rejects with, becomes a problem response. */
export type Handler = (request: IncomingMessage, response: ServerResponse, query: string) => void | Promise<void>

/** The handlers of a path by method. */
export type Route = Readonly<Record<string, Handler>>
