import type { Access } from '../../access.js'
import type { RateLimits } from '../../envoy/rate-limits.js'
import type { ServedService } from './grpc-service.js'
import { RateLimitService } from './messages/envoy/service/ratelimit/v3/rls.gen.js'
import { shouldRateLimit } from './rls.js'

/** Envoy's rate limit service. */
export function rlsService(limits: RateLimits, access: Access): ServedService {
  const methods = new Map([[`/${RateLimitService.typeName}/ShouldRateLimit`, shouldRateLimit(limits, access)]])
  return { service: RateLimitService, methods }
}
