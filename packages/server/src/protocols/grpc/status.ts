import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf'

/** Status codes of gRPC that the service returns. */
export const STATUS = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  resourceExhausted: 8,
  failedPrecondition: 9,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const

export type StatusCode = (typeof STATUS)[keyof typeof STATUS]

/** Ends a call with a status other than OK. */
export class GrpcError extends Error {
  override readonly name = 'GrpcError'
  readonly status: StatusCode

  constructor(status: StatusCode, message: string) {
    super(message)
    this.status = status
  }
}

/**
 * The message in the bytes of a request.
 *
 * @throws {GrpcError} INVALID_ARGUMENT for bytes that are no such message. The codec's own error would be a fault of the service.
 */
export function decoded<Schema extends DescMessage>(schema: Schema, bytes: Uint8Array): MessageShape<Schema> {
  try {
    return fromBinary(schema, bytes)
  } catch (error) {
    throw new GrpcError(STATUS.invalidArgument, `the request is no ${schema.typeName}: ${(error as Error).message}`)
  }
}

/** Bounds on what gRPC clients may use. */
export interface GrpcBounds {
  readonly maxConnections: number
  /** Connections of one IPv4 address, or of one /56 of IPv6. */
  readonly maxConnectionsPerAddress: number
  /** How long a new connection may take until it speaks HTTP/2. */
  readonly headersMs: number
  /** How long a call with one request may take in all, its response read. */
  readonly requestMs: number
  /** How long a connection may be silent before it is asked whether it is still there, and how long it has to answer. */
  readonly silentMs: number
  readonly answerMs: number
  /** Calls at once of one connection; further ones wait at the client. */
  readonly maxCalls: number
  /** Calls at once of all connections; beyond it a call ends with RESOURCE_EXHAUSTED. */
  readonly maxCallsInAll: number
  /** Calls of streaming methods at once of one connection. */
  readonly maxStreamingCalls: number
  readonly maxMessageBytes: number
  /** Memory of the incomplete messages of all connections; one that adds more is cut off. */
  readonly maxHeldBytes: number
}

export const DEFAULT_GRPC_BOUNDS: GrpcBounds = {
  maxConnections: 10_000,
  maxConnectionsPerAddress: 5_000,
  headersMs: 10_000,
  requestMs: 15_000,
  silentMs: 60_000,
  answerMs: 20_000,
  maxCalls: 100,
  maxCallsInAll: 20_000,
  maxStreamingCalls: 16,
  maxMessageBytes: 65_536,
  maxHeldBytes: 67_108_864,
}
