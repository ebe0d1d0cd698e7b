import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import { clientKey } from '../../client-key.js'
import type { Guard } from '../guard.js'
import { grpcTimeoutMs } from './in-time.js'
import { peerAddress, ping } from './live-session.js'
import { MessageReader } from './message-reader.js'
import type { RequestHandler, ResponseStream, StreamingMethod } from './method.js'
import type { Turns } from './session-turns.js'
import { GrpcError, STATUS } from './status.js'
import type { CallContext } from './unary-calls.js'

/** Opens `method` on `stream` and keeps both sides running until one of them ends. */
export function serveStreaming(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  method: StreamingMethod,
  turns: Turns,
  { guard, answer, maxMessageBytes, statusOf, holds }: CallContext,
): void {
  const reader = new MessageReader(method.maxMessageBytes ?? maxMessageBytes)
  const receipts = new Receipts(stream, guard)
  let over = false
  let failure: GrpcError | undefined
  const address = peerAddress(stream.session)
  const responses: ResponseStream = {
    get unsentBytes() {
      return stream.writableLength
    },
    host: clientKey(address),
    peer: `${address} ${headers['x-forwarded-for'] ?? ''}`,
    send(response) {
      if (!over) answer.next(stream, response)
    },
    sendConfirmed(response, onReceived) {
      if (over) return
      answer.next(
        stream,
        response,
        guard.callback(stream, (error) => {
          if (!error) receipts.ask(onReceived)
        }),
      )
    },
    finish(error) {
      if (over) return
      over = true
      if (error !== undefined) failure = statusOf(error)
      answer.end(stream)
    },
  }
  if (!answer.begin(stream)) return
  guard.once(stream, 'wantTrailers', () => answer.trailers(stream, failure))
  let requests: RequestHandler | undefined
  const attempt = (act: () => unknown): boolean => {
    if (over) return false
    try {
      return act() === true
    } catch (error) {
      responses.finish(error)
      return false
    }
  }
  attempt(() => {
    requests = method.open(responses, { headers, timeoutMs: grpcTimeoutMs(headers['grpc-timeout']) })
  })
  const take = (message: Uint8Array): void => {
    let steps: Iterator<unknown> | undefined
    turns.do(() =>
      attempt(() => {
        if (steps !== undefined) return !steps.next().done
        steps = requests?.message(message)
        return steps !== undefined
      }),
    )
  }
  guard.on(stream, 'data', (chunk: Uint8Array) => {
    turns.arrived()
    const before = reader.heldBytes
    attempt(() => reader.read(chunk, take))
    if (reader.heldBytes !== before) holds(stream, reader.heldBytes)
  })
  guard.once(stream, 'end', () =>
    turns.do(() =>
      attempt(() => {
        if (reader.isInside) throw new GrpcError(STATUS.invalidArgument, 'the last request has no whole message')
        requests?.end()
      }),
    ),
  )
  guard.once(stream, 'close', () => {
    over = true
    requests?.closed()
  })
}

/**
 * Finds out when a client's connection has received what was written to a stream: it answers the frames of a connection in their order, and a PING that
 * is sent after the message comes after it. One PING of a stream is under way at a time, for all messages before it.
 */
class Receipts {
  readonly #session: ServerHttp2Session | undefined
  readonly #guard: Guard
  #waiting: (() => void)[] = []
  #isAsking = false

  constructor(stream: ServerHttp2Stream, guard: Guard) {
    // A stream that is over has none any more.
    this.#session = stream.session as ServerHttp2Session | undefined
    this.#guard = guard
  }

  /** Calls `onReceived` once all that is written until now has arrived; never where the connection ends before. */
  ask(onReceived: () => void): void {
    this.#waiting.push(onReceived)
    this.#ping()
  }

  #ping(): void {
    const session = this.#session
    if (this.#isAsking || this.#waiting.length === 0 || session === undefined) return
    const asked = this.#waiting
    this.#waiting = []
    this.#isAsking = ping(session, this.#guard, (error) => {
      this.#isAsking = false
      if (error === null) for (const onReceived of asked) onReceived()
      this.#ping()
    })
  }
}
