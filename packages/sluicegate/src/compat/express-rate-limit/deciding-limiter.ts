import { chained } from '../../awaitable.js'
import { createLimiter } from '../../create-limiter.js'
import type { Decision } from '../../decision/decision.js'
import { PolicyError } from '../../errors.js'
import { changedPolicy, type Policy } from '../../policy/policy.js'
import { fixedWindow } from '../../policy/window-policy.js'
import { type LimiterVerbs, madeLimiter } from '../limiter-verbs.js'
import type { RateLimitOptions, UsedOptions } from './rate-limit-options.js'
import { SluicegateStore } from './sluicegate-store.js'

/**
 * The limiter that decides for the middleware: that of the store, the one that `create` makes, or one in memory.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function decidingLimiter({ create, store }: RateLimitOptions, { limit, windowMs, identifier }: UsedOptions): LimiterVerbs {
  // A policy's limit is at least 1: for 0 it only determines the ends of windows.
  const policy = fixedWindow({ limit: Math.max(1, limit), window: windowMs, name: identifier })
  const limiter = store === undefined ? madeLimiter(create ?? ((own) => createLimiter(own)), policy) : limiterOf(store, create, policy)
  return limit === 0 ? denyingAll(limiter) : limiter
}

function limiterOf(store: unknown, create: unknown, policy: Policy): LimiterVerbs {
  if (!(store instanceof SluicegateStore)) {
    const mend =
      'must be a store of this library: say create: (policy) => createRedisLimiter(policy, { client }), or keep express-rate-limit for stores of others'
    throw new PolicyError('OPTION_INVALID', 'store', store, mend)
  }
  if (create !== undefined) throw new PolicyError('OPTION_INVALID', 'create', create, 'makes a limiter: give that or store, and not both')
  return store.decideBy(policy)
}

/** A limit of 0: everything is denied, with the end of the window for `Retry-After`. */
function denyingAll(limiter: LimiterVerbs): LimiterVerbs {
  const denied = (decision: Decision): Decision => {
    const { retryAfterMs, resetAfterMs } = decision
    return { ...decision, allowed: false, limit: 0, remaining: 0, retryAfterMs: Math.max(1, retryAfterMs, resetAfterMs) }
  }
  // One for each policy, as header fields are cached by policy.
  const made = new WeakMap<Policy, Policy>()
  const none = (policy: Policy): Policy => {
    const known = made.get(policy) ?? changedPolicy(policy, { limit: 0, burst: 0 })
    made.set(policy, known)
    return known
  }
  return {
    get policy() {
      return none(limiter.policy)
    },
    policyOf: (key) => none(limiter.policyOf?.(key) ?? limiter.policy),
    take: (key) => chained(limiter.take(key), denied),
    peek: (key) => limiter.peek(key),
    refund: (key, tokens) => limiter.refund(key, tokens),
    penalize: (key, tokens) => limiter.penalize(key, tokens),
    block: (key, duration) => limiter.block(key, duration),
    reset: (key) => limiter.reset(key),
    close: () => limiter.close(),
  }
}
