import { DEFAULT_QUOTA_BOUNDS } from '../../quota/quota-counts.js'
import type { QuotaService } from '../../quota/quota-service.js'
import type { QuotaOutlet } from '../../quota/quota-stream.js'
import type { ServedService } from './grpc-service.js'
import { RateLimitQuotaService } from './messages/envoy/service/rate_limit_quota/v3/rlqs.gen.js'
import type { Method, RequestHandler, ResponseStream } from './method.js'
import { readUsageReports, writeActions } from './rlqs-codec.js'
import { GrpcError, STATUS } from './status.js'

/** A report of all buckets that a stream may have, with ids of usual length. */
const MAX_MESSAGE_BYTES = 131_072

/** Why a stream ends, with its status. Envoy opens another one in any case. */
const ENDS: Readonly<Record<Parameters<QuotaOutlet['end']>[0], readonly [status: 8 | 14, message: string]>> = {
  idle: [STATUS.unavailable, 'there was no report for too long'],
  unread: [STATUS.unavailable, 'assignments are not read'],
  too_fast: [STATUS.resourceExhausted, 'there are too many reports'],
  leaving: [STATUS.unavailable, 'the server stops'],
}

/** Envoy's rate limit quota service. */
export function rlqsService(quotas: QuotaService): ServedService {
  const method: Method = {
    kind: 'streaming',
    maxMessageBytes: MAX_MESSAGE_BYTES,
    open: (stream) => openStream(quotas, stream),
  }
  return {
    service: RateLimitQuotaService,
    methods: new Map([[`/${RateLimitQuotaService.typeName}/StreamRateLimitQuotas`, method]]),
    leave: () => quotas.leave(),
  }
}

function openStream(quotas: QuotaService, responses: ResponseStream): RequestHandler {
  const stream = quotas.open({
    host: responses.host,
    plane: responses.peer,
    send: (actions, onDelivered) => responses.sendConfirmed(writeActions(actions), onDelivered),
    end: (reason) => responses.finish(new GrpcError(...ENDS[reason])),
  })
  if (stream === undefined) throw new GrpcError(STATUS.unavailable, 'there are too many streams, or the server stops')
  return {
    message(bytes) {
      const { domain, usages } = readUsageReports(bytes, DEFAULT_QUOTA_BOUNDS.maxBucketsPerStream)
      const known = stream.domain
      if (known === undefined && domain === '') throw new GrpcError(STATUS.invalidArgument, 'the first report must have a domain')
      if (known !== undefined && domain !== '' && domain !== known)
        throw new GrpcError(STATUS.invalidArgument, 'a stream has one domain: open another one')
      return stream.report(known ?? domain, usages)
    },
    end: () => responses.finish(),
    closed: () => stream.closed(),
  }
}
