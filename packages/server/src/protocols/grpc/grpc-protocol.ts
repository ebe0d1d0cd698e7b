import type { IncomingHttpHeaders } from 'node:http2'
import { create, toBinary } from '@bufbuild/protobuf'
import type { ClientBounds } from 'sluicegate-config/config.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import type { Scope } from 'sluicegate-config/tokens.js'
import type { Access } from '../../access.js'
import {
  type AskedPriority,
  type Awaitable,
  type Decision,
  type Engine,
  type Key,
  type ServedPolicy,
  type TakePart,
  whenDone,
} from '../../engine/engine.js'
import type { RateLimits } from '../../envoy/rate-limits.js'
import type { Log } from '../../log.js'
import type { QuotaService } from '../../quota/quota-service.js'
import type { CallTracing } from '../call-tracing.js'
import type { Guard } from '../guard.js'
import { decisionOf } from './decision-message.js'
import { GrpcService, type ServedService, tracedService } from './grpc-service.js'
import { holdMethods } from './hold-methods.js'
import { inTime } from './in-time.js'
import { kuadrantService, ttlMsOf } from './kuadrant-service.js'
import { RateLimitService } from './messages/envoy/service/ratelimit/v3/rls.gen.js'
import {
  CommitRequestSchema,
  CommitResponseSchema,
  DecisionSchema,
  Limiter,
  ReserveRequestSchema,
  ReserveResponseSchema,
  TakeAllRequestSchema,
  TakeAllResponseSchema,
  type TakeRequest,
  TakeRequestSchema,
} from './messages/sluicegate/v1/limiter.gen.js'
import type { Call, Method } from './method.js'
import { priorityOf, secretOf } from './priority.js'
import { rlqsService } from './rlqs-service.js'
import { shouldRateLimit } from './rls.js'
import { decoded, GrpcError, STATUS } from './status.js'

const MAX_TAKES = 128

/** Decisions on named policies: `sluicegate.v1.Limiter`. */
function limiterService(engine: Engine, access: Access): ServedService {
  const path = `/${Limiter.typeName}/`
  const verb = (act: (served: ServedPolicy, key: Key, cost: number, priority: AskedPriority) => Awaitable<Decision>): Method => ({
    kind: 'unary',
    answer(message, call) {
      const { policy, key, cost } = partOf(engine, decoded(TakeRequestSchema, message))
      return bytesOf(act(policy, key, cost, priorityOf(call, access)), call, (decision) =>
        toBinary(DecisionSchema, create(DecisionSchema, decisionOf(decision))),
      )
    },
  })
  const methods = new Map<string, Method>([
    [`${path}Take`, verb((served, key, cost, priority) => served.take(key, cost, priority))],
    [`${path}Peek`, verb((served, key, cost, priority) => served.peek(key, cost, priority))],
    [`${path}Refund`, verb((served, key, tokens) => served.refund(key, tokens))],
    [`${path}TakeAll`, { kind: 'unary', answer: (message, call) => takeAll(engine, access, message, call) }],
    [`${path}Reserve`, { kind: 'unary', answer: (message, call) => reserve(engine, access, message, call) }],
    [`${path}Commit`, { kind: 'unary', answer: (message, call) => commit(engine, message, call) }],
    ...holdMethods(engine, access, (name) => policyOf(engine, name)).map(([name, method]): [string, Method] => [path + name, method]),
  ])
  return { service: Limiter, methods }
}

function takeAll(engine: Engine, access: Access, message: Uint8Array, call: Call): Awaitable<Uint8Array> {
  const parts = partsOf(engine, decoded(TakeAllRequestSchema, message).takes, priorityOf(call, access))
  return bytesOf(engine.takeAll(parts), call, (decisions) => {
    const allowed = decisions.every((decision) => decision.allowed)
    return toBinary(TakeAllResponseSchema, create(TakeAllResponseSchema, { allowed, decisions: decisions.map(decisionOf) }))
  })
}

function reserve(engine: Engine, access: Access, message: Uint8Array, call: Call): Awaitable<Uint8Array> {
  const { takes, ttl } = decoded(ReserveRequestSchema, message)
  return bytesOf(engine.reservations.reserve(partsOf(engine, takes, priorityOf(call, access)), ttlMsOf(ttl)), call, ({ decisions, id }) => {
    const response = { allowed: id !== undefined, reservationId: id ?? '', decisions: decisions.map(decisionOf) }
    return toBinary(ReserveResponseSchema, create(ReserveResponseSchema, response))
  })
}

function commit(engine: Engine, message: Uint8Array, call: Call): Awaitable<Uint8Array> {
  const { reservationId, actualCost } = decoded(CommitRequestSchema, message)
  return bytesOf(engine.reservations.settle(reservationId, Number(actualCost)), call, (states) => {
    const response = { found: states !== undefined, decisions: (states ?? []).map(decisionOf) }
    return toBinary(CommitResponseSchema, create(CommitResponseSchema, response))
  })
}

function bytesOf<Value>(value: Awaitable<Value>, call: Call, write: (value: Value) => Uint8Array): Awaitable<Uint8Array> {
  return inTime(whenDone(value, write) as Awaitable<Uint8Array>, call)
}

function partsOf(engine: Engine, takes: readonly TakeRequest[], priority: AskedPriority): TakePart[] {
  if (takes.length === 0 || takes.length > MAX_TAKES)
    throw new GrpcError(STATUS.invalidArgument, `takes must be 1 to ${MAX_TAKES}, not ${takes.length}`)
  return takes.map((take) => ({ ...partOf(engine, take), priority }))
}

function policyOf(engine: Engine, policy: string): ServedPolicy {
  const served = engine.policy(policy)
  if (served === undefined) throw new GrpcError(STATUS.notFound, `there is no policy ${JSON.stringify(policy)}`)
  if (Number.isFinite(served.permitMs))
    throw new GrpcError(
      STATUS.invalidArgument,
      `policy ${JSON.stringify(policy)} gives permits, which have to be released: use HTTP for it`,
    )
  return served
}

function partOf(engine: Engine, { policy, keys, cost }: TakeRequest): TakePart {
  const served = policyOf(engine, policy)
  const [key] = keys
  if (key === undefined) throw new GrpcError(STATUS.invalidArgument, 'keys must have at least one key')
  return { policy: served, key: keys.length === 1 ? key : keys, cost: cost === 0n ? 1 : Number(cost) }
}

/** Methods that change keys of other callers. */
const ADMIN_METHODS: ReadonlySet<string> = new Set(['/sluicegate.v1.Limiter/Refund'])
/** For everyone: orchestrators have no token. */
const HEALTH = '/grpc.health.'

/** What the gRPC server is made with. */
export interface GrpcContext {
  readonly engine: Engine
  readonly limits: RateLimits
  /** Undefined: the quota service is not served. */
  readonly quotas: QuotaService | undefined
  readonly access: Access
  readonly clients: ClientBounds
  readonly tls: Certificates | undefined
  readonly log: Log
  readonly guard: Guard
  /** Undefined: calls are not followed. */
  readonly tracing?: CallTracing | undefined
}

/** The gRPC server of the service. */
export function grpcServer({ engine, limits, quotas, access, clients, tls, log, guard, tracing }: GrpcContext): GrpcService {
  const { maxConnections, maxConnectionsPerAddress, headersMs, requestMs } = clients
  const services = [rlsService(limits, access), kuadrantService(limits, access), limiterService(engine, access)]
  if (quotas !== undefined) services.push(rlqsService(quotas))
  const traced = services.map((each) => tracedService(each, tracing))
  return new GrpcService(traced, {
    bounds: { maxConnections, maxConnectionsPerAddress, headersMs, requestMs },
    tls,
    guard,
    admit: (path, headers) => admit(access, path, headers),
    onError: (error) => log.error({ listener: 'grpc', err: error }, 'a connection could not be taken'),
  })
}

function admit(access: Access, path: string, headers: IncomingHttpHeaders): void {
  if (path.startsWith(HEALTH)) return
  const scope: Scope = ADMIN_METHODS.has(path) ? 'admin' : 'decide'
  if (!access.needsToken(scope)) return
  if (access.allows(secretOf(headers), scope)) return
  throw new GrpcError(STATUS.unauthenticated, `this needs a token of scope ${scope}, in authorization: Bearer TOKEN`)
}

/** Envoy's rate limit service. */
export function rlsService(limits: RateLimits, access: Access): ServedService {
  const methods = new Map([[`/${RateLimitService.typeName}/ShouldRateLimit`, shouldRateLimit(limits, access)]])
  return { service: RateLimitService, methods }
}
