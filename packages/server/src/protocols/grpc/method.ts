import type { IncomingHttpHeaders } from 'node:http2'

/** What a method knows of its call. */
export interface Call {
  readonly headers: IncomingHttpHeaders
  /** Milliseconds that the client waits, by its header `grpc-timeout`; undefined where it waits for ever. */
  readonly timeoutMs: number | undefined
}

/** A method with one request and one response. */
export interface UnaryMethod {
  readonly kind: 'unary'
  /**
   * The response to the bytes of a request.
   *
   * @throws {GrpcError} to end the call with its status.
   */
  answer(request: Uint8Array, call: Call): Uint8Array | Promise<Uint8Array>
}

/** A method whose requests and responses are streams, each as long as the client wants. */
export interface StreamingMethod {
  readonly kind: 'streaming'
  /** Of one request; undefined: as of all methods. */
  readonly maxMessageBytes?: number
  /** Called once for each stream. */
  open(stream: ResponseStream, call: Call): RequestHandler
}

/** The client's side of a stream. */
export interface RequestHandler {
  /**
   * Returns the steps of what takes long, which are gone through in turn with other connections, before the next message.
   *
   * @throws {GrpcError} to end the stream with its status.
   */
  message(request: Uint8Array): Iterator<unknown> | undefined
  /** The client sends no more. The stream stays open until it is finished. */
  end(): void
  /** The stream is over, whichever side ended it; nothing can be sent any more. */
  closed(): void
}

/** The server's side of a stream. */
export interface ResponseStream {
  /** Bytes that the client has not taken yet. A sender stops, or finishes, where they grow. */
  readonly unsentBytes: number
  /** The client's host, by which its places are counted. */
  readonly host: string
  /** Its address, and that which it says it has behind proxies: the same when it comes back. */
  readonly peer: string
  /** Without effect on a stream that is over. */
  send(response: Uint8Array): void
  /** The same, and calls `onReceived` once the client's connection has received it. Never called where the stream ends before. */
  sendConfirmed(response: Uint8Array, onReceived: () => void): void
  /** Ends the stream: with OK, or with the status of `error`. */
  finish(error?: unknown): void
}

export type Method = UnaryMethod | StreamingMethod

/** Methods by their path, `/package.Service/Method`. */
export type Methods = ReadonlyMap<string, Method>
