import type { Decision, Limiter } from '../../../sluicegate/dist/index.js'
import type { MiddlewareLimiter } from '../../../sluicegate/dist/middleware/middleware-options.js'

/** A limiter whose answers all come a moment later, as those of a store do. */
export function promisedLimiter(limiter: Limiter): MiddlewareLimiter {
  return {
    get policy() {
      return limiter.policy
    },
    take: async (key, cost) => limiter.take(key, cost),
    peek: async (key, cost) => limiter.peek(key, cost),
    refund: async (key, tokens) => limiter.refund(key, tokens),
  }
}

/** A limiter whose peeks see something else than its takes. */
export function misledLimiter(limiter: Limiter, seen: Partial<Decision>): MiddlewareLimiter {
  return {
    policy: limiter.policy,
    peek: (key, cost) => ({ ...limiter.peek(key, cost), ...seen }),
    take: (key, cost) => limiter.take(key, cost),
    refund: (key, tokens) => limiter.refund(key, tokens),
  }
}
