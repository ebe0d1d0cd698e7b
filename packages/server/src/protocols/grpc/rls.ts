import { create, fromJson, type JsonObject, toBinary } from '@bufbuild/protobuf'
import { type Struct, StructSchema } from '@bufbuild/protobuf/wkt'
import type { Access } from '../../access.js'
import { type Awaitable, whenDone } from '../../engine/engine.js'
import { LimitRequestError, type LimitResponse } from '../../envoy/limit-request.js'
import type { RateLimits } from '../../envoy/rate-limits.js'
import { inTime } from './in-time.js'
import type { Call, UnaryMethod } from './method.js'
import { priorityOf } from './priority.js'
import { LimitResponseWriter, readLimitRequest } from './rls-codec.js'
import { GrpcError, STATUS } from './status.js'

/** `ShouldRateLimit` of Envoy's rate limit service. */
export function shouldRateLimit(limits: RateLimits, access: Access): UnaryMethod {
  const writer = limitResponseWriter()
  return {
    kind: 'unary',
    answer: (message, call) => written(writer, call, () => limits.decide(readLimitRequest(message), priorityOf(call, access))),
  }
}

export function limitResponseWriter(): LimitResponseWriter {
  return new LimitResponseWriter((metadata) => toBinary(StructSchema, structOf(metadata)))
}

/** The response that `decide` gives, in time for the client. */
export function written(writer: LimitResponseWriter, call: Call, decide: () => Awaitable<LimitResponse>): Awaitable<Uint8Array> {
  return inTime(whenDone(decide(), (response) => writer.write(response)) as Awaitable<Uint8Array>, call)
}

/** The status of errors of requests; as in Envoy's ratelimit service, what is unset has no status of its own. */
export function statusOfLimitError(error: unknown): GrpcError | undefined {
  if (!(error instanceof LimitRequestError)) return undefined
  return new GrpcError(error.reason === 'unset' ? STATUS.unknown : STATUS.invalidArgument, error.message)
}

/** Values that JSON does not know, such as dates in YAML, become texts. */
function structOf(metadata: Readonly<Record<string, unknown>>): Struct {
  const json = JSON.parse(JSON.stringify(metadata)) as JsonObject
  return create(StructSchema, fromJson(StructSchema, json))
}
