import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { UsageError } from '../../terminal/usage-error.js'
import type { TargetPlan } from '../load-plan.js'
import { ErrorTexts, type LoadOutcome, type LoadTarget } from '../load-plan.js'
import { type PooledConnection, RequestPool } from './request-pool.js'

/** Calls at once on one connection. */
const STREAMS = 64
const PREFIX_LENGTH = 5
const OVER_LIMIT = 2

/** A unary method: how a request is written, and what its answer means. */
interface Method {
  readonly path: string
  request(key: string): Uint8Array
  outcome(message: Uint8Array): LoadOutcome
}

/** `sluicegate.v1.Limiter/Take` of a policy, or Envoy's `ShouldRateLimit` of a descriptor. */
export function grpcTarget({ url, policy, cost, token, connections, envoy }: TargetPlan): LoadTarget {
  const method = envoy === undefined ? takeMethod(policy, cost) : shouldRateLimit(envoy, cost)
  const origin = url.replace(/^grpc/, 'http')
  const headers: OutgoingHttpHeaders = {
    ':method': 'POST',
    ':path': method.path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  }
  const errors = new ErrorTexts()
  const pool = new RequestPool(
    Array.from({ length: connections }, () => new GrpcConnection(origin, headers, method, errors)),
    STREAMS,
  )
  return { take: (key) => pool.send(key), errors, close: async () => pool.close() }
}

function takeMethod(policy: string | undefined, cost: number): Method {
  if (policy === undefined) throw new UsageError('say what to take: --policy NAME, or --domain and --descriptor')
  return {
    path: '/sluicegate.v1.Limiter/Take',
    request(key) {
      const writer = text(text(new BinaryWriter(), 1, policy), 2, key)
      return writer.tag(3, WireType.Varint).uint64(cost).finish()
    },
    outcome: (message) => (firstVarint(message, 1) === 1 ? 'allowed' : 'denied'),
  }
}

function shouldRateLimit({ domain, entries }: NonNullable<TargetPlan['envoy']>, cost: number): Method {
  return {
    path: '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
    request(key) {
      const writer = text(new BinaryWriter(), 1, domain).tag(2, WireType.LengthDelimited).fork()
      for (const [name, value] of entries)
        text(text(writer.tag(1, WireType.LengthDelimited).fork(), 1, name), 2, value.replaceAll('{key}', key)).join()
      return writer.join().tag(3, WireType.Varint).uint64(cost).finish()
    },
    outcome: (message) => (firstVarint(message, 1) === OVER_LIMIT ? 'denied' : 'allowed'),
  }
}

function text(writer: BinaryWriter, field: number, value: string): BinaryWriter {
  return writer.tag(field, WireType.LengthDelimited).string(value)
}

/** The value of a varint field, 0 where it is left out. */
function firstVarint(message: Uint8Array, wanted: number): number {
  const reader = new BinaryReader(message)
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag()
    if (field === wanted && type === WireType.Varint) return Number(reader.uint64())
    reader.skip(type, field)
  }
  return 0
}

/** One HTTP/2 connection; after it breaks the next call opens it again. */
class GrpcConnection implements PooledConnection {
  readonly #origin: string
  readonly #headers: OutgoingHttpHeaders
  readonly #method: Method
  readonly #errors: ErrorTexts
  #session: ClientHttp2Session | undefined
  outstanding = 0

  constructor(origin: string, headers: OutgoingHttpHeaders, method: Method, errors: ErrorTexts) {
    this.#origin = origin
    this.#headers = headers
    this.#method = method
    this.#errors = errors
  }

  send(key: string): Promise<LoadOutcome> {
    this.outstanding++
    return new Promise((resolve) => {
      const stream = this.#open().request(this.#headers)
      const parts: Buffer[] = []
      let status: unknown
      let cause = 'the call has no status'
      const readStatus = (headers: Readonly<Record<string, unknown>>): void => {
        status = headers['grpc-status'] ?? status
        if (status !== undefined && status !== '0')
          cause = `gRPC status ${status}: ${decodeURIComponent(String(headers['grpc-message'] ?? ''))}`
      }
      stream.on('response', readStatus)
      stream.on('trailers', readStatus)
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('error', (error: NodeJS.ErrnoException) => {
        cause = error.code ?? error.message
      })
      stream.once('close', () => {
        this.outstanding--
        const message = Buffer.concat(parts).subarray(PREFIX_LENGTH)
        resolve(status === '0' ? this.#method.outcome(message) : this.#errors.add(cause))
      })
      const message = this.#method.request(key)
      const frame = Buffer.alloc(PREFIX_LENGTH + message.length)
      frame.writeUInt32BE(message.length, 1)
      frame.set(message, PREFIX_LENGTH)
      stream.end(frame)
    })
  }

  close(): void {
    this.#session?.destroy()
  }

  #open(): ClientHttp2Session {
    const open = this.#session
    if (open !== undefined && !open.closed && !open.destroyed) return open
    const session = connect(this.#origin)
    session.setMaxListeners(0)
    // Its calls report it.
    session.on('error', () => undefined)
    this.#session = session
    return session
  }
}
