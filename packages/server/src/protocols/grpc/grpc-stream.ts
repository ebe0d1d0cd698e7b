import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { hostOf } from '../host-of.js'
import { grpcTimeoutMs } from './grpc-timeout.js'
import { framed, MessageReader } from './message-reader.js'
import type { RequestHandler, ResponseStream, StreamingMethod, UnaryMethod } from './method.js'
import { Receipts } from './receipts.js'
import { GrpcError, STATUS, type StatusCode } from './status.js'

const CONTENT_TYPE = 'application/grpc'
const HEADERS: OutgoingHttpHeaders = { ':status': 200, 'content-type': CONTENT_TYPE }
const OK_TRAILERS: OutgoingHttpHeaders = { 'grpc-status': '0' }
const WITH_TRAILERS = { waitForTrailers: true }
const ENDED = { endStream: true }

/** What streams have in common: bounds, and what is done about errors that are no status. */
export interface StreamContext {
  readonly maxMessageBytes: number
  /** The status of an error that is no {@link GrpcError}. */
  statusOf(error: unknown): GrpcError
}

/** Answers the one request of `stream`. */
export function serveUnary(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, method: UnaryMethod, context: StreamContext): void {
  const reader = new MessageReader(context.maxMessageBytes)
  let request: Uint8Array | undefined
  let failed = false
  stream.on('data', (chunk: Uint8Array) => {
    if (failed) return
    try {
      reader.read(chunk, (message) => {
        if (request !== undefined) throw new GrpcError(STATUS.unimplemented, 'this method takes one message')
        request = message
      })
    } catch (error) {
      failed = true
      finishWith(stream, context.statusOf(error))
    }
  })
  stream.once('end', () => {
    if (failed || stream.destroyed) return
    if (request === undefined || reader.isInside) {
      finishWith(stream, new GrpcError(STATUS.invalidArgument, 'the request has no whole message'))
      return
    }
    try {
      const response = method.answer(request, { headers, timeoutMs: grpcTimeoutMs(headers['grpc-timeout']) })
      if (response instanceof Uint8Array) respond(stream, response)
      else {
        response.then(
          (later) => respond(stream, later),
          (error: unknown) => finishWith(stream, context.statusOf(error)),
        )
      }
    } catch (error) {
      finishWith(stream, context.statusOf(error))
    }
  })
}

/** Opens `method` on `stream` and keeps both sides running until one of them ends. */
export function serveStreaming(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  method: StreamingMethod,
  context: StreamContext,
): void {
  const reader = new MessageReader(method.maxMessageBytes ?? context.maxMessageBytes)
  const receipts = new Receipts(stream)
  let over = false
  let trailers = OK_TRAILERS
  const responses: ResponseStream = {
    get unsentBytes() {
      return stream.writableLength
    },
    host: hostOf(stream.session?.socket.remoteAddress ?? ''),
    send(response) {
      if (over || stream.destroyed) return
      stream.write(framed(response))
    },
    sendConfirmed(response, onReceived) {
      if (over || stream.destroyed) return
      stream.write(framed(response), (error) => {
        if (!error) receipts.ask(onReceived)
      })
    },
    finish(error) {
      if (over) return
      over = true
      if (error !== undefined) trailers = trailersOf(context.statusOf(error))
      if (!stream.destroyed) stream.end()
    },
  }
  stream.respond(HEADERS, WITH_TRAILERS)
  stream.once('wantTrailers', () => sendTrailers(stream, trailers))
  let requests: RequestHandler | undefined
  const attempt = (act: () => void): void => {
    if (over) return
    try {
      act()
    } catch (error) {
      responses.finish(error)
    }
  }
  attempt(() => {
    requests = method.open(responses, { headers, timeoutMs: grpcTimeoutMs(headers['grpc-timeout']) })
  })
  stream.on('data', (chunk: Uint8Array) => attempt(() => reader.read(chunk, (message) => attempt(() => requests?.message(message)))))
  stream.once('end', () =>
    attempt(() => {
      if (reader.isInside) throw new GrpcError(STATUS.invalidArgument, 'the last request has no whole message')
      requests?.end()
    }),
  )
  stream.once('close', () => {
    over = true
    requests?.closed()
  })
}

/** Ends a call that has no response yet. */
export function finishWith(stream: ServerHttp2Stream, { status, message }: GrpcError): void {
  if (stream.destroyed || stream.headersSent) return
  stream.respond({ ...HEADERS, ...trailersOf({ status, message }) }, ENDED)
  // What is still arriving of the request is thrown away.
  stream.resume()
}

function respond(stream: ServerHttp2Stream, response: Uint8Array): void {
  if (stream.destroyed || stream.headersSent) return
  stream.respond(HEADERS, WITH_TRAILERS)
  stream.once('wantTrailers', sendOkTrailers)
  stream.end(framed(response))
}

function sendOkTrailers(this: ServerHttp2Stream): void {
  sendTrailers(this, OK_TRAILERS)
}

function sendTrailers(stream: ServerHttp2Stream, trailers: OutgoingHttpHeaders): void {
  if (!stream.destroyed) stream.sendTrailers(trailers)
}

function trailersOf({ status, message }: { readonly status: StatusCode; readonly message: string }): OutgoingHttpHeaders {
  return { 'grpc-status': String(status), 'grpc-message': percentEncoded(message) }
}

/** For a header: bytes that are not printable ASCII, and the percent sign. */
function percentEncoded(text: string): string {
  return text.replace(/[^ -$&-~]+/g, (chars) =>
    Buffer.from(chars)
      .toString('hex')
      .replace(/../g, (byte) => `%${byte.toUpperCase()}`),
  )
}
