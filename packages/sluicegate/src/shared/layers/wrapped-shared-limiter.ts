import type { Awaitable } from '../../awaitable.js'
import type { Decision } from '../../decision.js'
import type { HotKeys } from '../../hot-keys.js'
import type { Key, WaitOptions } from '../../limiter.js'
import type { Policy } from '../../policy/policy.js'
import { closeQueueOf, QueuedLimiter } from '../../queue/create-queue.js'
import { shownAs } from '../../shown.js'
import type { ShardLoads } from '../calls/shard-load.js'
import type { FleetBoundKey, FleetLimiter, FleetStats } from '../fleet-limiter.js'

/** A shared limiter around another one: calls without a key go straight through. */
export abstract class WrappedSharedLimiter<Answer extends Decision> extends QueuedLimiter {
  protected readonly inner: FleetLimiter<Answer>

  constructor(inner: FleetLimiter<Answer>) {
    super()
    this.inner = inner
  }

  abstract override take(key: Key, cost?: number): Awaitable<Answer>
  abstract override wait(key: Key, options?: WaitOptions): Promise<Answer>
  abstract override refund(key: Key, tokens: number): Promise<Decision>
  abstract override penalize(key: Key, tokens: number): Promise<Decision>

  get policy(): Policy {
    return this.inner.policy
  }

  /** The policy in force for a key. */
  policyOf(key: Key): Policy {
    return policyIn(this.inner, key)
  }

  update(policy: Policy): void {
    this.inner.update(policy)
  }

  stats(): FleetStats {
    return this.inner.stats()
  }

  hotKeys(n?: number): HotKeys {
    return this.inner.hotKeys(n)
  }

  shards(n?: number): ShardLoads {
    return this.inner.shards(n)
  }

  close(): void {
    closeQueueOf(this)
    this.inner.close()
  }

  /** A bound key of this limiter; logs show it without the key. */
  protected bound(bound: FleetBoundKey<Answer>): FleetBoundKey<Answer> {
    return shownAs(bound, 'FleetBoundKey', this.toJSON())
  }
}

/** The policy of a limiter for a key. */
export function policyIn(limiter: FleetLimiter<Decision>, key: Key): Policy {
  return limiter instanceof WrappedSharedLimiter ? limiter.policyOf(key) : limiter.policy
}
