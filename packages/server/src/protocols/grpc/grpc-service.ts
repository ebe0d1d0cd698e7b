import type { DescService } from '@bufbuild/protobuf'
import type { ListenAddress } from 'sluicegate-config/listen-address.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import { PolicyError, StoreError, TooManyHeldError } from '../../engine/engine.js'
import type { CallTracing } from '../call-tracing.js'
import type { ProtocolServer } from '../protocol-server.js'
import { GrpcServer, type GrpcServerOptions } from './grpc-server.js'
import { Health } from './health.js'
import { Health as HealthService } from './messages/grpc/health/v1/health.gen.js'
import { ServerReflection } from './messages/grpc/reflection/v1/reflection.gen.js'
import type { Method, Methods } from './method.js'
import { reflectionMethods } from './reflection.js'
import { statusOfLimitError } from './rls.js'
import type { Sessions } from './sessions.js'
import { GrpcError, STATUS } from './status.js'

/** One service with its methods. */
export interface ServedService {
  readonly service: DescService
  readonly methods: Methods
  /** The server is about to stop: streams that would never end are ended. */
  leave?(): void
}

/** Services over one port, with health and reflection. */
export class GrpcService implements ProtocolServer {
  readonly #server: GrpcServer
  readonly #health: Health
  readonly #services: readonly ServedService[]

  constructor(services: readonly ServedService[], options: GrpcServerOptions) {
    this.#services = services
    this.#health = new Health(services.map(({ service }) => service.typeName))
    const reflected = [...services.map(({ service }) => service), HealthService, ServerReflection]
    const methods: Methods = new Map([
      ...services.flatMap((served) => [...served.methods]),
      ...this.#health.methods(),
      ...reflectionMethods(reflected),
    ])
    this.#server = new GrpcServer(methods, { statusOf, ...options })
  }

  get traffic(): Sessions {
    return this.#server.sessions
  }

  listen(at: ListenAddress): Promise<string> {
    return this.#server.listen(at)
  }

  certify(tls: Certificates): void {
    this.#server.certify(tls)
  }

  drain(): void {
    this.#leave()
    this.#server.drain()
  }

  stop(finishMs: number): Promise<void> {
    this.#leave()
    this.#health.close()
    return this.#server.stop(finishMs)
  }

  #leave(): void {
    this.#health.leave()
    for (const service of this.#services) service.leave?.()
  }
}

/** Errors of the engine, which methods need not handle. */
export function statusOf(error: unknown): GrpcError | undefined {
  if (error instanceof PolicyError) return new GrpcError(STATUS.invalidArgument, error.message)
  if (error instanceof TooManyHeldError) return new GrpcError(STATUS.resourceExhausted, error.message)
  if (error instanceof StoreError) return new GrpcError(STATUS.unavailable, `no decision: ${error.code}`)
  return statusOfLimitError(error)
}

/** A service whose calls are followed; streams are not, which have no end. */
export function tracedService(served: ServedService, tracing: CallTracing | undefined): ServedService {
  if (tracing === undefined) return served
  return { ...served, methods: new Map(Array.from(served.methods, ([path, method]) => [path, tracedMethod(path, method, tracing)])) }
}

function tracedMethod(path: string, method: Method, tracing: CallTracing): Method {
  if (method.kind !== 'unary') return method
  const [, service = '', name = ''] = path.split('/')
  const attributes = { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': name }
  return {
    kind: 'unary',
    answer: (request, call) =>
      tracing.run({ name: `${service}/${name}`, attributes, headers: call.headers }, () => method.answer(request, call)),
  }
}
