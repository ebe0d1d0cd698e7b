import { checkedWaitRequest } from '../arguments.js'
import type { Decision } from '../decision/decision.js'
import type { HotKeys } from '../decision/hot-keys.js'
import { type Receipt, type Receipting, TAKE, WAIT } from '../decision/receipt.js'
import type { Key, Limiter, LimiterHandle, LimiterStats, WaitOptions } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { closeQueueOf, QueuedLimiter } from '../queue/create-queue.js'

/** What a layer needs of the limiter around which it stands, in memory or shared. */
interface InnerLimiter {
  readonly policy: Policy
  update(policy: Policy): void
  hotKeys(n?: number): HotKeys
  close(): void
}

/** A limiter around an inner one. Verbs without a key go to the inner limiter directly. */
export abstract class Layer<Inner extends InnerLimiter> extends QueuedLimiter {
  protected readonly inner: Inner

  constructor(inner: Inner) {
    super()
    this.inner = inner
  }

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

  hotKeys(n?: number): HotKeys {
    return this.inner.hotKeys(n)
  }

  close(): void {
    closeQueueOf(this)
    this.inner.close()
  }
}

/** The policy of a limiter for a key. */
export function policyIn(limiter: InnerLimiter, key: Key): Policy {
  return limiter instanceof Layer ? limiter.policyOf(key) : limiter.policy
}

/** A limiter in memory, plain or in layers: its receipts come at once. */
type MemoryReceipting<Answer extends Decision> = Receipting<Answer, Receipt<Answer>>

/** The receipts of a limiter in memory. */
export function receiptsOf<Answer extends Decision>(limiter: Limiter<Answer>): MemoryReceipting<Answer> {
  return limiter as Limiter<Answer> & MemoryReceipting<Answer>
}

/** A layer around a limiter in memory. */
export abstract class WrappedLimiter<Answer extends Decision> extends Layer<Limiter<Answer>> implements MemoryReceipting<Answer> {
  abstract [TAKE](key: Key, cost?: number): Receipt<Answer>
  abstract [WAIT](key: Key, options?: WaitOptions): Promise<Receipt<Answer>>
  abstract override take(key: Key, cost?: number): Answer
  abstract override wait(key: Key, options?: WaitOptions): Promise<Answer>
  abstract override refund(key: Key, tokens: number): Decision
  abstract override penalize(key: Key, tokens: number): Decision

  handle(): LimiterHandle<Answer> {
    return this.inner.handle()
  }

  stats(): LimiterStats {
    return this.inner.stats()
  }

  snapshot(): Uint8Array {
    return this.inner.snapshot()
  }
}

/** A wait that ends at once; throws what it rejects with. */
export function atOnce<Answer>(key: Key, options: WaitOptions, take: (cost: number) => Answer): Answer {
  const { cost, signal } = checkedWaitRequest(key, options)
  if (signal?.aborted) throw signal.reason
  return take(cost)
}
