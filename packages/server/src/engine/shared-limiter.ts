import type { SharedLimiter } from 'sluicegate'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { reserveNowOf } from './reserve-now.js'
import { type LimiterMaking, NO_TABLE, type StoredLimiter } from './stored-limiter.js'

/** The library's bound on keys with a lease in one process. */
const MAX_LEASED_KEYS = 10_000_000

/** What all stores have in the configuration. */
interface StoreConfig {
  readonly mode?: 'leased' | 'exact' | undefined
  readonly outage: 'local' | 'open' | 'closed'
  readonly timeoutMs: number
}

/** Options of a limiter over a store, which is not named yet. */
export function sharedOptions({ mode, outage, timeoutMs }: StoreConfig, config: PolicyConfig, { hotKeys }: LimiterMaking) {
  const { maxKeys, priorities } = config
  return {
    outage,
    timeout: timeoutMs,
    hotKeys,
    // Leased is the default, and a policy that cannot be leased runs exact then.
    // A lease says nothing about what is left at the store, which classes of requests depend on.
    ...((mode === 'exact' || priorities !== undefined) && { mode: 'exact' as const }),
    ...(maxKeys !== undefined && { maxKeys: Math.min(maxKeys, MAX_LEASED_KEYS) }),
  }
}

/** A limiter over a store, as the service uses it; it leaves `limiters` when it is closed. */
export function storedShared(limiter: SharedLimiter, limiters: Set<SharedLimiter>): StoredLimiter {
  limiters.add(limiter)
  return {
    isShared: true,
    get policy() {
      return limiter.policy
    },
    take: (key, cost) => limiter.take(key, cost),
    peek: (key, cost) => limiter.peek(key, cost),
    reserve: reserveNowOf(limiter),
    refund: (key, tokens) => limiter.refund(key, tokens),
    penalize: (key, tokens) => limiter.penalize(key, tokens),
    block: (key, forMs) => limiter.block(key, forMs),
    reset: (key) => limiter.reset(key),
    update: (next) => limiter.update(next),
    stats: () => ({ ...NO_TABLE, keys: limiter.stats().leases }),
    storeStats: () => limiter.stats(),
    servers: () => limiter.shards(1).servers,
    hotKeys: (n) => limiter.hotKeys(n),
    snapshot: () => undefined,
    close: () => {
      limiters.delete(limiter)
      limiter.close()
    },
  }
}
