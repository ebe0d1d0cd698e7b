import { create, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { type ClientDuplexStream, Metadata, type ServiceError } from '@grpc/grpc-js'
import {
  RateLimitQuotaResponseSchema,
  RateLimitQuotaService,
  RateLimitQuotaUsageReportsSchema,
} from 'sluicegate-server/dist/protocols/grpc/messages/envoy/service/rate_limit_quota/v3/rlqs.gen.js'
import { RateLimitStrategy_BlanketRule as Blanket } from 'sluicegate-server/dist/protocols/grpc/messages/envoy/type/v3/ratelimit_strategy.gen.js'
import type { Assignment } from 'sluicegate-server/dist/quota/assignment.js'
import type { GrpcTestClient } from './simulated-envoy.js'

type Reports = MessageShape<typeof RateLimitQuotaUsageReportsSchema>
type Response = MessageShape<typeof RateLimitQuotaResponseSchema>
type BucketAction = Response['bucketAction'][number]

const PATH = `/${RateLimitQuotaService.typeName}/StreamRateLimitQuotas`

/** What is reported of a bucket. */
export interface TestUsage {
  readonly bucket: Record<string, string>
  readonly allowed?: number
  readonly denied?: number
}

/** A data plane: one stream of gRPC's own library. */
export class QuotaClient {
  /** All that arrived, the latest last. */
  readonly actions: { readonly bucket: Record<string, string>; readonly assignment: Assignment }[] = []
  /** The status with which the stream ended. */
  status: { readonly code: number; readonly details: string } | undefined
  onAction: (bucket: Record<string, string>, assignment: Assignment) => void = () => {}
  readonly #stream: ClientDuplexStream<Reports, Response>
  readonly #ended: Promise<void>

  constructor({ client }: GrpcTestClient) {
    this.#stream = client.makeBidiStreamRequest(
      PATH,
      (message: Reports) => Buffer.from(toBinary(RateLimitQuotaUsageReportsSchema, message)),
      (bytes) => fromBinary(RateLimitQuotaResponseSchema, bytes),
      new Metadata(),
      {},
    )
    this.#stream.on('error', (_: ServiceError) => {})
    this.#ended = new Promise((resolve) => {
      this.#stream.on('status', ({ code, details }) => {
        this.status = { code, details }
        resolve()
      })
    })
    this.#stream.on('data', ({ bucketAction }: Response) => {
      for (const action of bucketAction) {
        const bucket = { ...action.bucketId?.bucket }
        const assignment = assignmentOf(action)
        this.actions.push({ bucket, assignment })
        this.onAction(bucket, assignment)
      }
    })
  }

  report(domain: string, ...usages: readonly TestUsage[]): void {
    const bucketQuotaUsages = usages.map(({ bucket, allowed = 0, denied = 0 }) => ({
      bucketId: { bucket },
      timeElapsed: { seconds: 1n },
      numRequestsAllowed: BigInt(allowed),
      numRequestsDenied: BigInt(denied),
    }))
    this.#stream.write(create(RateLimitQuotaUsageReportsSchema, { domain, bucketQuotaUsages }))
  }

  /** Breaks the stream. */
  cancel(): void {
    this.#stream.cancel()
  }

  ended(): Promise<void> {
    return this.#ended
  }
}

/** What Envoy understands of an action. */
export function assignmentOf({ bucketAction: { case: kind, value } }: BucketAction): Assignment {
  if (kind !== 'quotaAssignmentAction') return { kind: 'abandon' }
  const { assignmentTimeToLive, rateLimitStrategy } = value
  const ttlSeconds = Number(assignmentTimeToLive?.seconds)
  const strategy = rateLimitStrategy?.strategy
  if (strategy?.case === 'tokenBucket') {
    const { maxTokens, tokensPerFill, fillInterval } = strategy.value
    return {
      kind: 'tokens',
      bucket: { maxTokens, tokensPerFill: tokensPerFill ?? 1, fillSeconds: Number(fillInterval?.seconds) },
      ttlSeconds,
    }
  }
  if (strategy?.case !== 'blanketRule') throw new Error(`Envoy ignores ${strategy?.case}`)
  return { kind: strategy.value === Blanket.ALLOW_ALL ? 'allow' : 'deny', ttlSeconds }
}
