import { create, type DescMethodUnary, fromBinary, type MessageInitShape, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import type { Assignment, TokenBucket } from 'sluicegate-server/dist/quota/assignment.js'

/**
 * The bucket of one id in an Envoy, as its filter `rate_limit_quota` runs it: a token bucket is full when it begins, and begins again when an
 * assignment has other numbers or comes after the end of the one before. Without an assignment it denies, by its configuration. Times are seconds of its own clock.
 */
export class SimulatedEnvoy {
  /** Undefined while no assignment is in force. */
  #assignment: Assignment | undefined
  #bucket: TokenBucket | undefined
  #tokens = 0
  #filledAt = 0
  #endsAt = Number.POSITIVE_INFINITY

  /** When the timer of the assignment ends. */
  get endsAt(): number {
    return this.#endsAt
  }

  apply(assignment: Assignment, now: number): void {
    if (assignment.kind === 'abandon') {
      this.#end()
      return
    }
    if (assignment.kind === 'tokens') {
      if (this.#bucket === undefined || !isSame(this.#bucket, assignment.bucket)) {
        this.#tokens = assignment.bucket.maxTokens
        this.#filledAt = now
        this.#bucket = assignment.bucket
      }
    } else this.#bucket = undefined
    this.#assignment = assignment
    this.#endsAt = now + assignment.ttlSeconds
  }

  /** The timer has fired. */
  expire(): void {
    this.#end()
  }

  /** Admits up to `requests`; returns how many. */
  admit(requests: number, now: number): number {
    if (this.#assignment?.kind === 'allow') return requests
    if (this.#bucket === undefined) return 0
    const { maxTokens, tokensPerFill, fillSeconds } = this.#bucket
    this.#tokens = Math.min(maxTokens, this.#tokens + ((now - this.#filledAt) * tokensPerFill) / fillSeconds)
    this.#filledAt = now
    const admitted = Math.min(requests, Math.floor(this.#tokens))
    this.#tokens -= admitted
    return admitted
  }

  /**
   * What passes while more requests come than can pass, in fractions of requests. `isSteady`: they came ever since the last call, so that the bucket was
   * never full; otherwise they begin now.
   */
  drain(now: number, isSteady: boolean): number {
    if (this.#bucket === undefined) return 0
    const { maxTokens, tokensPerFill, fillSeconds } = this.#bucket
    const tokens = this.#tokens + ((now - this.#filledAt) * tokensPerFill) / fillSeconds
    this.#tokens = 0
    this.#filledAt = now
    return isSteady ? tokens : Math.min(maxTokens, tokens)
  }

  #end(): void {
    this.#assignment = undefined
    this.#bucket = undefined
    this.#endsAt = Number.POSITIVE_INFINITY
  }
}

/** What Envoy compares: of the interval only the fraction of a second. */
function isSame(a: TokenBucket, b: TokenBucket): boolean {
  return a.maxTokens === b.maxTokens && a.tokensPerFill === b.tokensPerFill
}

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
