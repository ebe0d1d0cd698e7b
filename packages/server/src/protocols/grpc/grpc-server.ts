import {
  createSecureServer,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2'
import type { Server, Socket } from 'node:net'
import type { ListenAddress } from 'sluicegate-config/listen-address.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import { clientKey } from '../../access.js'
import { type Guard, type Guarded, listen, listenFirst } from '../guard.js'
import { tlsOptions } from '../handshakes.js'
import { Port, type PortOptions } from '../port.js'
import type { ProtocolServer } from '../protocol-server.js'
import { grpcTimeoutMs } from './in-time.js'
import { peerAddress, ping } from './live-session.js'
import { MessageReader } from './message-reader.js'
import type { Methods, RequestHandler, ResponseStream, StreamingMethod } from './method.js'
import type { Turns } from './session-turns.js'
import { Sessions } from './sessions.js'
import { DEFAULT_GRPC_BOUNDS, type GrpcBounds, GrpcError, STATUS } from './status.js'
import { StreamAnswer } from './stream-answer.js'
import { type CallContext, UnaryCalls } from './unary-calls.js'

/** Connections beyond the bound that may be in their handshake. */
const MAX_HANDSHAKES = 1_000
/** Memory of HTTP/2 for one connection, in megabytes: frames that its client does not read are in it. */
const SESSION_MEMORY_MB = 4

/**
 * Streams that a client may open and reset. Runtimes that do not have the options, Node.js 20 among them, close the connection of a client that
 * resets more than 1,000 streams, and more than 33 a second after that.
 */
const RESETS = { streamResetBurst: 10_000, streamResetRate: 1_000 }

/** Options of {@link GrpcServer}. */
export interface GrpcServerOptions extends PortOptions {
  readonly bounds?: Partial<GrpcBounds>
  /** Ends a call that may not be made, by throwing {@link GrpcError}. */
  readonly admit?: (path: string, headers: IncomingHttpHeaders) => void
  /** The status of errors that methods throw; undefined for those that are faults. */
  readonly statusOf?: (error: unknown) => GrpcError | undefined
}

/** gRPC over HTTP/2: calls of methods, with bounds on everything that a client can hold. */
export class GrpcServer implements ProtocolServer {
  readonly sessions: Sessions
  readonly #methods: Methods
  readonly #port: Port<Server>
  readonly #options: GrpcServerOptions
  readonly #answer: StreamAnswer
  readonly #context: CallContext
  readonly #unary: UnaryCalls
  readonly #onStreamError: Guarded

  constructor(methods: Methods, options: GrpcServerOptions) {
    const { guard } = options
    const bounds: GrpcBounds = { ...DEFAULT_GRPC_BOUNDS, ...options.bounds }
    this.#methods = methods
    this.#options = options
    this.sessions = new Sessions(bounds, guard)
    this.#answer = new StreamAnswer(guard)
    const { maxMessageBytes } = bounds
    this.#context = {
      guard,
      answer: this.#answer,
      maxMessageBytes,
      statusOf: (error) => this.#statusOf(error),
      holds: (stream, bytes) => this.sessions.holds(stream, bytes),
    }
    this.#unary = new UnaryCalls(this.#context)
    // Errors of a stream are of its client: it has gone, or has broken the protocol.
    this.#onStreamError = guard.listener(() => {})
    const http2: ServerOptions = {
      maxSessionMemory: SESSION_MEMORY_MB,
      // One for each stream that asks for receipts, that of a silent connection, and probes.
      maxOutstandingPings: bounds.maxStreamingCalls + 4,
      settings: { maxConcurrentStreams: bounds.maxCalls, enablePush: false },
      ...RESETS,
    }
    const server = options.tls ? createSecureServer({ ...http2, ...tlsOptions(options.tls, bounds.headersMs) }) : createServer(http2)
    let beneath: Socket
    // Before HTTP/2 takes the socket over, which it hides from then on.
    listenFirst(
      server,
      options.tls ? 'secureConnection' : 'connection',
      guard.listener((_, socket: Socket) => {
        beneath = socket
      }),
    )
    guard.on(server, 'session', (session: ServerHttp2Session) => this.sessions.add(session, beneath))
    guard.on(server, 'stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => this.#serve(stream, headers))
    guard.on(server, 'sessionError', () => {})
    // Connections that are no sessions yet, because of a handshake that does not end, have no place among the others.
    server.maxConnections = bounds.maxConnections + MAX_HANDSHAKES
    this.#port = new Port(server, 'grpc', options, bounds.maxConnections, 'h2')
  }

  listen(at: ListenAddress): Promise<string> {
    return this.#port.listen(at)
  }

  certify(tls: Certificates): void {
    this.#port.certify(tls)
  }

  drain(): void {
    this.sessions.leave()
  }

  async stop(finishMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#port.server.close(() => resolve())
    })
    await this.sessions.close(finishMs)
    this.#port.closeHandshakes()
    await closed
  }

  #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    listen(stream, 'error', this.#onStreamError)
    const turns = this.sessions.turnsOf(stream)
    turns?.arrived()
    const type = headers['content-type']
    if (headers[':method'] !== 'POST' || typeof type !== 'string' || !type.startsWith('application/grpc')) {
      this.#answer.unsupported(stream)
      return
    }
    const path = headers[':path'] ?? ''
    const method = this.#methods.get(path)
    if (method === undefined) {
      this.#answer.status(stream, new GrpcError(STATUS.unimplemented, `there is no method ${path}`))
      return
    }
    if (turns === undefined || !this.sessions.begin(stream, method.kind === 'streaming')) {
      this.#answer.status(stream, new GrpcError(STATUS.resourceExhausted, 'too many calls at once'))
      return
    }
    try {
      this.#options.admit?.(path, headers)
    } catch (error) {
      this.#answer.status(stream, this.#statusOf(error))
      return
    }
    if (method.kind === 'unary') this.#unary.serve(stream, headers, method, turns)
    else serveStreaming(stream, headers, method, turns, this.#context)
  }

  #statusOf(error: unknown): GrpcError {
    if (error instanceof GrpcError) return error
    const status = this.#options.statusOf?.(error)
    if (status !== undefined) return status
    // The call gets an answer.
    this.#options.guard.caught(error)
    return new GrpcError(STATUS.internal, 'a fault of the service')
  }
}

/** Opens `method` on `stream` and keeps both sides running until one of them ends. */
function serveStreaming(
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
