import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { type Guard, type Guarded, listen } from '../guard.js'
import { grpcTimeoutMs } from './in-time.js'
import { MessageReader } from './message-reader.js'
import type { Call, UnaryMethod } from './method.js'
import type { Turns } from './session-turns.js'
import { GrpcError, STATUS } from './status.js'
import type { StreamAnswer } from './stream-answer.js'

/** What calls have in common: the door of their events, how they are answered, a bound, and what is done about errors that are no status. */
export interface CallContext {
  readonly guard: Guard
  readonly answer: StreamAnswer
  readonly maxMessageBytes: number
  /** The bytes that the incomplete message of `stream` takes. */
  holds(stream: ServerHttp2Stream, bytes: number): void
  /** The status of an error that is no {@link GrpcError}. */
  statusOf(error: unknown): GrpcError
}

const CALL = Symbol('call')

/** A stream knows its call, so that one listener serves all streams. */
type CallStream = ServerHttp2Stream & { [CALL]?: UnaryCall }

/** One call with one request. */
interface UnaryCall {
  readonly method: UnaryMethod
  readonly headers: IncomingHttpHeaders
  readonly reader: MessageReader
  readonly turns: Turns
  heldBytes: number
  request: Uint8Array | undefined
  hasFailed: boolean
}

/** Calls with one request and one response. */
export class UnaryCalls {
  readonly #context: CallContext
  readonly #onData: Guarded
  readonly #onEnd: Guarded

  constructor(context: CallContext) {
    this.#context = context
    this.#onData = context.guard.listener((stream: CallStream, chunk: Uint8Array) => this.#read(stream, stream[CALL] as UnaryCall, chunk))
    this.#onEnd = context.guard.listener((stream: CallStream) => this.#end(stream, stream[CALL] as UnaryCall))
  }

  /** Answers the one request of `stream`. */
  serve(stream: CallStream, headers: IncomingHttpHeaders, method: UnaryMethod, turns: Turns): void {
    const reader = new MessageReader(this.#context.maxMessageBytes)
    stream[CALL] = { method, headers, reader, turns, heldBytes: 0, request: undefined, hasFailed: false }
    listen(stream, 'data', this.#onData)
    listen(stream, 'end', this.#onEnd)
  }

  #read(stream: ServerHttp2Stream, call: UnaryCall, chunk: Uint8Array): void {
    call.turns.arrived()
    if (call.hasFailed) return
    try {
      call.reader.read(chunk, (message) => {
        if (call.request !== undefined) throw new GrpcError(STATUS.unimplemented, 'this method takes one message')
        call.request = message
      })
    } catch (error) {
      call.hasFailed = true
      this.#fail(stream, error)
    }
    const { heldBytes } = call.reader
    if (heldBytes !== call.heldBytes) this.#context.holds(stream, heldBytes)
    call.heldBytes = heldBytes
  }

  #end(stream: ServerHttp2Stream, { method, headers, reader, turns, request, hasFailed }: UnaryCall): void {
    if (hasFailed) return
    if (request === undefined || reader.isInside) {
      this.#fail(stream, new GrpcError(STATUS.invalidArgument, 'the request has no whole message'))
      return
    }
    const timeoutMs = grpcTimeoutMs(headers['grpc-timeout'])
    const endMs = timeoutMs === undefined ? undefined : performance.now() + timeoutMs
    turns.do(() => {
      // A call that nobody waits for any more takes nothing.
      if (stream.closed || stream.destroyed) return false
      const leftMs = endMs === undefined ? undefined : endMs - performance.now()
      if (leftMs === undefined || leftMs > 0) this.#answer(stream, method, request, { headers, timeoutMs: leftMs })
      else this.#fail(stream, new GrpcError(STATUS.deadlineExceeded, 'the call came too late to its turn'))
      return false
    })
  }

  #answer(stream: ServerHttp2Stream, method: UnaryMethod, request: Uint8Array, call: Call): void {
    const { answer } = this.#context
    try {
      const response = method.answer(request, call)
      if (response instanceof Uint8Array) answer.message(stream, response)
      else this.#later(stream, response)
    } catch (error) {
      this.#fail(stream, error)
    }
  }

  #later(stream: ServerHttp2Stream, response: Promise<Uint8Array>): void {
    const { answer, guard } = this.#context
    response
      .then(
        (later) => answer.message(stream, later),
        (error: unknown) => this.#fail(stream, error),
      )
      .catch((error: unknown) => guard.caught(error, stream))
  }

  #fail(stream: ServerHttp2Stream, error: unknown): void {
    this.#context.answer.status(stream, this.#context.statusOf(error))
  }
}
