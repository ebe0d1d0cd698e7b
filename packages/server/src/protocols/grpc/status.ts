/** Status codes of gRPC that the service returns. */
export const STATUS = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  resourceExhausted: 8,
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
