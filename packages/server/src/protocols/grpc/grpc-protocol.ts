import type { IncomingHttpHeaders } from 'node:http2'
import type { ClientBounds } from 'sluicegate-config/config.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import type { Scope } from 'sluicegate-config/tokens.js'
import type { Access } from '../../access.js'
import type { Engine } from '../../engine/engine.js'
import type { RateLimits } from '../../envoy/rate-limits.js'
import type { Log } from '../../log.js'
import type { QuotaService } from '../../quota/quota-service.js'
import type { CallTracing } from '../call-tracing.js'
import type { Guard } from '../guard.js'
import { GrpcService, type ServedService, tracedService } from './grpc-service.js'
import { kuadrantService } from './kuadrant-service.js'
import { limiterService } from './limiter-service.js'
import { RateLimitService } from './messages/envoy/service/ratelimit/v3/rls.gen.js'
import { secretOf } from './priority.js'
import { rlqsService } from './rlqs-service.js'
import { shouldRateLimit } from './rls.js'
import { GrpcError, STATUS } from './status.js'

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
