import { create, type DescFile, type DescService, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { decoded } from './decoded.js'
import {
  ErrorResponseSchema,
  FileDescriptorResponseSchema,
  ListServiceResponseSchema,
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
  ServiceResponseSchema,
} from './messages/grpc/reflection/v1/reflection.gen.js'
import type { Method, Methods, RequestHandler, ResponseStream } from './method.js'
import { GrpcError, STATUS } from './status.js'

/** Both versions have the same messages; many tools ask for the older one first. */
const PATHS = [
  '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
  '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
]

type Answer = ServerReflectionResponse['messageResponse']

/** Lets tools such as grpcurl see the methods and messages of `services`. */
export function reflectionMethods(services: readonly DescService[]): Methods {
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
