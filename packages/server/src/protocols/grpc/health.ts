import { create, toBinary } from '@bufbuild/protobuf'
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from './messages/grpc/health/v1/health.gen.js'
import type { Method, Methods, RequestHandler, ResponseStream } from './method.js'
import { decoded, GrpcError, STATUS } from './status.js'

const SERVICE = 'grpc.health.v1.Health'

/** The health of the server and of its services: SERVING, until it is about to stop. */
export class Health {
  readonly #services: readonly string[]
  readonly #watchers = new Set<ResponseStream>()
  #isServing = true

  /** @param services names of the services; the server as a whole is the empty one. */
  constructor(services: readonly string[]) {
    this.#services = ['', ...services, SERVICE]
  }

  /** From now on all services are NOT_SERVING. */
  leave(): void {
    this.#isServing = false
    for (const watcher of this.#watchers) watcher.send(this.#answer(this.#status))
  }

  /** Ends the streams of clients that watch: a server does not stop before they are closed. */
  close(): void {
    for (const watcher of this.#watchers) watcher.finish(new GrpcError(STATUS.unavailable, 'the server stops'))
  }

  methods(): Methods {
    return new Map<string, Method>([
      [`/${SERVICE}/Check`, { kind: 'unary', answer: (message: Uint8Array) => this.#check(message) }],
      [`/${SERVICE}/List`, { kind: 'unary', answer: () => this.#list() }],
      [`/${SERVICE}/Watch`, { kind: 'streaming', open: (stream: ResponseStream) => this.#watch(stream) }],
    ])
  }

  get #status(): ServingStatus {
    return this.#isServing ? ServingStatus.SERVING : ServingStatus.NOT_SERVING
  }

  #check(message: Uint8Array): Uint8Array {
    const { service } = decoded(HealthCheckRequestSchema, message)
    if (!this.#services.includes(service)) throw new GrpcError(STATUS.notFound, `there is no service ${service}`)
    return this.#answer(this.#status)
  }

  #list(): Uint8Array {
    const statuses = Object.fromEntries(this.#services.map((name) => [name, create(HealthCheckResponseSchema, { status: this.#status })]))
    return toBinary(HealthListResponseSchema, create(HealthListResponseSchema, { statuses }))
  }

  #watch(stream: ResponseStream): RequestHandler {
    let isAsked = false
    return {
      message: (message) => {
        if (isAsked) throw new GrpcError(STATUS.unimplemented, 'this method takes one message')
        isAsked = true
        const { service } = decoded(HealthCheckRequestSchema, message)
        const isKnown = this.#services.includes(service)
        if (isKnown) this.#watchers.add(stream)
        stream.send(this.#answer(isKnown ? this.#status : ServingStatus.SERVICE_UNKNOWN))
      },
      end() {
        if (!isAsked) throw new GrpcError(STATUS.invalidArgument, 'the request has no message')
      },
      closed: () => {
        this.#watchers.delete(stream)
      },
    }
  }

  #answer(status: ServingStatus): Uint8Array {
    return toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status }))
  }
}
