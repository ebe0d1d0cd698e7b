import type { Decision } from '../decision.js'
import type { HotKeys } from '../hot-keys.js'
import type { Key, Limiter, LimiterHandle, LimiterStats, WaitOptions } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { closeQueueOf, QueuedLimiter } from '../queue/create-queue.js'
import { checkedWaitRequest } from '../wait-options.js'

/** A limiter around an inner one. Verbs without a key go to the inner limiter directly. */
export abstract class WrappedLimiter<Answer extends Decision> extends QueuedLimiter {
  protected readonly inner: Limiter<Answer>

  constructor(inner: Limiter<Answer>) {
    super()
    this.inner = inner
  }

  abstract override take(key: Key, cost?: number): Answer
  abstract override wait(key: Key, options?: WaitOptions): Promise<Answer>
  abstract override refund(key: Key, tokens: number): Decision
  abstract override penalize(key: Key, tokens: number): Decision

  get policy(): Policy {
    return this.inner.policy
  }

  /** The policy in force for a key. */
  policyOf(key: Key): Policy {
    return this.inner instanceof WrappedLimiter ? this.inner.policyOf(key) : this.inner.policy
  }

  update(policy: Policy): void {
    this.inner.update(policy)
  }

  handle(): LimiterHandle<Answer> {
    return this.inner.handle()
  }

  stats(): LimiterStats {
    return this.inner.stats()
  }

  snapshot(): Uint8Array {
    return this.inner.snapshot()
  }

  hotKeys(n?: number): HotKeys {
    return this.inner.hotKeys(n)
  }

  close(): void {
    closeQueueOf(this)
    this.inner.close()
  }
}

/** A wait that ends at once; throws what it rejects with. */
export function atOnce<Answer>(key: Key, options: WaitOptions, take: (cost: number) => Answer): Answer {
  const { cost, signal } = checkedWaitRequest(key, options)
  if (signal?.aborted) throw signal.reason
  return take(cost)
}
