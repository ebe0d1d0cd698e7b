import { create, type DescFile, type DescService, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import type { ListenAddress } from 'sluicegate-config/listen-address.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import { PolicyError, StoreError, TooManyHeldError } from '../../engine/engine.js'
import type { CallTracing } from '../call-tracing.js'
import type { ProtocolServer } from '../protocol-server.js'
import { GrpcServer, type GrpcServerOptions } from './grpc-server.js'
import { Health } from './health.js'
import { Health as HealthService } from './messages/grpc/health/v1/health.gen.js'
import {
  ErrorResponseSchema,
  FileDescriptorResponseSchema,
  ListServiceResponseSchema,
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
  ServiceResponseSchema,
} from './messages/grpc/reflection/v1/reflection.gen.js'
import type { Method, Methods, RequestHandler, ResponseStream } from './method.js'
import { statusOfLimitError } from './rls.js'
import type { Sessions } from './sessions.js'
import { decoded, GrpcError, STATUS } from './status.js'

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

/** Both versions have the same messages; many tools ask for the older one first. */
const PATHS = [
  '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
  '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
]

type Answer = ServerReflectionResponse['messageResponse']

/** Lets tools such as grpcurl see the methods and messages of `services`. */
function reflectionMethods(services: readonly DescService[]): Methods {
  const catalog = new Catalog(services)
  const open = (stream: ResponseStream): RequestHandler => ({
    message(bytes) {
      const request = decoded(ServerReflectionRequestSchema, bytes)
      // A client that sends without reading is one that is not answered any more.
      if (stream.unsentBytes > MAX_UNSENT_BYTES) throw new GrpcError(STATUS.resourceExhausted, 'answers are not read')
      stream.send(answerTo(request, catalog.answer(request)))
    },
    end: () => stream.finish(),
    closed() {},
  })
  return new Map<string, Method>(PATHS.map((path) => [path, { kind: 'streaming', open }]))
}

const MAX_UNSENT_BYTES = 262_144

function answerTo(request: ServerReflectionRequest, messageResponse: Answer): Uint8Array {
  const { host } = request
  return toBinary(
    ServerReflectionResponseSchema,
    create(ServerReflectionResponseSchema, { validHost: host, originalRequest: request, messageResponse }),
  )
}

/** Files by their name and by the names of what they define. */
class Catalog {
  readonly #services: readonly string[]
  readonly #files = new Map<string, DescFile>()
  readonly #fileOf = new Map<string, DescFile>()

  constructor(services: readonly DescService[]) {
    this.#services = services.map(({ typeName }) => typeName)
    for (const { file } of services) this.#add(file)
  }

  answer({ messageRequest: { case: kind, value } }: ServerReflectionRequest): Answer {
    if (kind === 'listServices') return listed(this.#services)
    if (kind === 'fileByFilename') return files(this.#files.get(value), value)
    if (kind === 'fileContainingSymbol') return files(this.#fileOf.get(value) ?? this.#fileOf.get(value.replace(/\.[^.]*$/, '')), value)
    if (kind === 'fileContainingExtension' || kind === 'allExtensionNumbersOfType') return missing('there are no extensions')
    return missing('the request asks for nothing')
  }

  #add(file: DescFile): void {
    const name = `${file.name}.proto`
    if (this.#files.has(name)) return
    this.#files.set(name, file)
    for (const { typeName } of [...file.messages.flatMap(withNested), ...file.enums, ...file.services]) this.#fileOf.set(typeName, file)
    for (const dependency of file.dependencies) this.#add(dependency)
  }
}

function withNested(message: DescFile['messages'][number]): { readonly typeName: string }[] {
  return [message, ...message.nestedEnums, ...message.nestedMessages.flatMap(withNested)]
}

function listed(names: readonly string[]): Answer {
  const service = names.map((name) => create(ServiceResponseSchema, { name }))
  return { case: 'listServicesResponse', value: create(ListServiceResponseSchema, { service }) }
}

/** The file, then all that it needs: a client can then ask no more. */
function files(file: DescFile | undefined, name: string): Answer {
  if (file === undefined) return missing(`there is no ${name}`)
  const all = new Set<DescFile>()
  const collect = (one: DescFile): void => {
    if (all.has(one)) return
    all.add(one)
    for (const dependency of one.dependencies) collect(dependency)
  }
  collect(file)
  const fileDescriptorProto = Array.from(all, ({ proto }) => toBinary(FileDescriptorProtoSchema, proto))
  return { case: 'fileDescriptorResponse', value: create(FileDescriptorResponseSchema, { fileDescriptorProto }) }
}

function missing(reason: string): Answer {
  return { case: 'errorResponse', value: create(ErrorResponseSchema, { errorCode: STATUS.notFound, errorMessage: reason }) }
}
