import { create, type DescMethodUnary, fromBinary, type MessageInitShape, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'

/** A client of gRPC's own library. */
export class GrpcTestClient {
  readonly client: Client

  constructor(
    url: string,
    options: ConstructorParameters<typeof Client>[2] = {},
    channel: ChannelCredentials = credentials.createInsecure(),
  ) {
    const target = url.replace(/^grpcs?:\/\//, '')
    // Connections are not shared with other clients of the test.
    this.client = new Client(target, channel, { 'grpc.use_local_subchannel_pool': 1, ...options })
  }

  /** Rejects with a `ServiceError` for any status but OK. */
  call<Method extends DescMethodUnary>(
    method: Method,
    request: MessageInitShape<Method['input']>,
    { metadata = new Metadata(), deadlineMs = 30_000 }: { metadata?: Metadata; deadlineMs?: number } = {},
  ): Promise<MessageShape<Method['output']>> {
    return new Promise((resolve, reject) => {
      this.client.makeUnaryRequest(
        pathOf(method),
        (message: MessageShape<Method['input']>) => Buffer.from(toBinary(method.input, message)),
        (bytes) => fromBinary(method.output, bytes) as MessageShape<Method['output']>,
        create(method.input, request) as MessageShape<Method['input']>,
        metadata,
        { deadline: Date.now() + deadlineMs },
        (error: ServiceError | null, response?: MessageShape<Method['output']>) =>
          error === null ? resolve(response as MessageShape<Method['output']>) : reject(error),
      )
    })
  }

  [Symbol.dispose](): void {
    this.client.close()
  }
}

export function pathOf({ parent, name }: DescMethodUnary): string {
  return `/${parent.typeName}/${name}`
}
