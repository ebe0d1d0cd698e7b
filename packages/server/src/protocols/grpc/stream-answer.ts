import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { type Guard, type Guarded, listen } from '../guard.js'
import { framed } from './message-reader.js'
import type { GrpcError } from './status.js'

const HEADERS: OutgoingHttpHeaders = { ':status': 200, 'content-type': 'application/grpc' }
const UNSUPPORTED: OutgoingHttpHeaders = { ':status': 415 }
const OK_TRAILERS: OutgoingHttpHeaders = { 'grpc-status': '0' }
const WITH_TRAILERS = { waitForTrailers: true }
const ENDED = { endStream: true }
/** Headers of one response have a bound in HTTP/2, and a message may quote what the client sent. */
const MAX_MESSAGE_LENGTH = 1_000

/**
 * Answers streams, or lets them be: nothing else writes to one. A client may end its stream, or its connection, at any moment, and Node.js throws for a
 * response to a stream that is over. It says so in several ways: of a connection that was dropped a stream emits `end` before it is destroyed.
 */
export class StreamAnswer {
  readonly #onTrailers: Guarded

  constructor(guard: Guard) {
    this.#onTrailers = guard.listener((stream: ServerHttp2Stream) => sendTrailers(stream, OK_TRAILERS))
  }

  /** The response of a call, and its status OK. */
  message(stream: ServerHttp2Stream, response: Uint8Array): void {
    if (!isUnanswered(stream)) return
    stream.respond(HEADERS, WITH_TRAILERS)
    listen(stream, 'wantTrailers', this.#onTrailers)
    stream.end(framed(response))
  }

  /** Ends a call that has no response yet. */
  status(stream: ServerHttp2Stream, status: GrpcError): void {
    if (!isUnanswered(stream)) return
    stream.respond({ ...HEADERS, ...trailersOf(status) }, ENDED)
    discardRest(stream)
  }

  /** Refuses what is no call. */
  unsupported(stream: ServerHttp2Stream): void {
    if (!isUnanswered(stream)) return
    stream.respond(UNSUPPORTED, ENDED)
    discardRest(stream)
  }

  /** Begins the responses of a stream. Returns whether the client can still receive them. */
  begin(stream: ServerHttp2Stream): boolean {
    if (!isUnanswered(stream)) return false
    stream.respond(HEADERS, WITH_TRAILERS)
    return true
  }

  /** One of several responses. */
  next(stream: ServerHttp2Stream, response: Uint8Array, onWritten?: (error?: Error | null) => void): void {
    if (isSendable(stream)) stream.write(framed(response), onWritten)
  }

  /** Ends the responses; `wantTrailers` comes next. */
  end(stream: ServerHttp2Stream): void {
    if (isSendable(stream)) stream.end()
  }

  /** The status of a stream: that of `error`, or OK. */
  trailers(stream: ServerHttp2Stream, error: GrpcError | undefined): void {
    sendTrailers(stream, error === undefined ? OK_TRAILERS : trailersOf(error))
  }
}

function isOver({ destroyed, closed, aborted }: ServerHttp2Stream): boolean {
  return destroyed || closed || aborted
}

function isUnanswered(stream: ServerHttp2Stream): boolean {
  return !stream.headersSent && !isOver(stream)
}

function isSendable(stream: ServerHttp2Stream): boolean {
  return stream.writable && !isOver(stream)
}

function sendTrailers(stream: ServerHttp2Stream, trailers: OutgoingHttpHeaders): void {
  if (!isOver(stream)) stream.sendTrailers(trailers)
}

/** What is still arriving of the request is thrown away. */
function discardRest(stream: ServerHttp2Stream): void {
  stream.resume()
}

function trailersOf({ status, message }: GrpcError): OutgoingHttpHeaders {
  return { 'grpc-status': String(status), 'grpc-message': percentEncoded(message.slice(0, MAX_MESSAGE_LENGTH)) }
}

/** For a header: bytes that are not printable ASCII, and the percent sign. */
function percentEncoded(text: string): string {
  return text.replace(/[^ -$&-~]+/g, (chars) =>
    Buffer.from(chars)
      .toString('hex')
      .replace(/../g, (byte) => `%${byte.toUpperCase()}`),
  )
}
