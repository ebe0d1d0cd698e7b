import { create, toBinary } from '@bufbuild/protobuf'
import type { Duration } from '@bufbuild/protobuf/wkt'
import type { Access } from '../../access.js'
import { type AskedPriority, MAX_RESERVATION_MS, whenDone } from '../../engine/engine.js'
import type { LimitRequest } from '../../envoy/limit-request.js'
import type { RateLimits } from '../../envoy/rate-limits.js'
import type { ServedService } from './grpc-service.js'
import type { RateLimitDescriptor } from './messages/envoy/extensions/common/ratelimit/v3/ratelimit.gen.js'
import {
  CommitRequestSchema,
  CommitResponseSchema,
  RateLimitService,
  ReserveRequestSchema,
  ReserveResponseSchema,
} from './messages/kuadrant/service/ratelimit/v1/kuadrantrls.gen.js'
import type { Method } from './method.js'
import { priorityOf } from './priority.js'
import { limitResponseWriter, written } from './rls.js'
import { CODE, readLimitRequest } from './rls-codec.js'
import { decoded, GrpcError, STATUS } from './status.js'

const PATH = `/${RateLimitService.typeName}/`
const DEFAULT_TTL_MS = 60_000
/** Of a hold. */
const LEAST_TTL_MS = 10

/** Kuadrant's service: looks, reports of what was used, and reservations for work whose cost is known at its end. */
export function kuadrantService(limits: RateLimits, access: Access): ServedService {
  const writer = limitResponseWriter()
  const methods = new Map<string, Method>([
    [
      `${PATH}CheckRateLimit`,
      {
        kind: 'unary',
        answer: (message, call) =>
          written(writer, call, () => limits.decide(withHits(readLimitRequest(message), 0), priorityOf(call, access))),
      },
    ],
    [`${PATH}Report`, { kind: 'unary', answer: (message, call) => written(writer, call, () => limits.report(readLimitRequest(message))) }],
    [`${PATH}Reserve`, { kind: 'unary', answer: (message, call) => reserve(limits, message, priorityOf(call, access)) }],
    [`${PATH}Commit`, { kind: 'unary', answer: (message) => commit(limits, message) }],
  ])
  return { service: RateLimitService, methods }
}

function reserve(limits: RateLimits, message: Uint8Array, priority: AskedPriority) {
  const { domain, descriptors, amount, ttl } = decoded(ReserveRequestSchema, message)
  const request = requestOf(domain, descriptors, Number(amount))
  return whenDone(limits.reserve(request, ttlMsOf(ttl), priority), ({ over, id = '' }) => {
    const response = create(ReserveResponseSchema, { code: over ? CODE.overLimit : CODE.ok, reservationId: over ? '' : id })
    return toBinary(ReserveResponseSchema, response)
  }) as Uint8Array | Promise<Uint8Array>
}

/** Without an id there was no reservation, and what was used is reported. */
function commit(limits: RateLimits, message: Uint8Array) {
  const { domain, descriptors, reservationId, actualAmount } = decoded(CommitRequestSchema, message)
  const hits = Number(actualAmount)
  const done = toBinary(CommitResponseSchema, create(CommitResponseSchema))
  if (reservationId === '') {
    if (hits === 0) return done
    return whenDone(limits.report(requestOf(domain, descriptors, hits)), () => done) as Uint8Array | Promise<Uint8Array>
  }
  return whenDone(limits.settle(reservationId, hits), (found) => {
    if (!found) throw new GrpcError(STATUS.notFound, 'there is no such reservation, or it has ended')
    return done
  }) as Uint8Array | Promise<Uint8Array>
}

/** The amount is that of each descriptor, whatever it says itself. */
function requestOf(domain: string, descriptors: readonly RateLimitDescriptor[], hits: number): LimitRequest {
  const each = descriptors.map(({ entries, limit }) => ({ entries, limit, hitsAddend: hits, isNegativeHits: false }))
  return { domain, descriptors: each, hitsAddend: 0 }
}

function withHits(request: LimitRequest, hitsAddend: number): LimitRequest {
  return { ...request, descriptors: request.descriptors.map((one) => ({ ...one, hitsAddend, isNegativeHits: false })) }
}

/** @throws {GrpcError} for a time that is not positive. */
export function ttlMsOf(ttl: Duration | undefined): number {
  if (ttl === undefined) return DEFAULT_TTL_MS
  const ttlMs = Math.ceil(Number(ttl.seconds) * 1_000 + ttl.nanos / 1e6)
  if (!(ttlMs > 0)) throw new GrpcError(STATUS.invalidArgument, 'ttl must be longer than nothing')
  return Math.min(Math.max(ttlMs, LEAST_TTL_MS), MAX_RESERVATION_MS)
}
