import { checkedWaitRequest } from '../arguments.js'
import type { Awaitable, When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import type { HotKeys } from '../decision/hot-keys.js'
import { type Reservation, type Settling, TAKE, WAIT } from '../decision/reservation.js'
import type { AnyHold, OpenOptions } from '../holds/hold.js'
import type { BoundKey, Key, LimiterHandle, LimiterVerbs, ReserveOptions, WaitOptions } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { closeQueueOf, QueuedLimiter } from '../queue/create-queue.js'
import { shownAs } from '../shown.js'
import type { Duration } from '../time/duration.js'

/** What a limiter has beside the verbs of all: counters, in memory threads and snapshots, over a store its servers. */
interface Besides {
  stats(): object
  open(key: Key, options?: OpenOptions): Awaitable<AnyHold>
  handle(): LimiterHandle
  snapshot(): Uint8Array
  shards(n?: number): unknown
  /** Those of levels, whose policies depend on the key. */
  readonly plans?: unknown
  policyOf?(key: Key): Policy
}

/** A limiter in memory or over a store. */
export type InnerLimiter<Answer extends Decision = Decision> = LimiterVerbs<Answer> & Pick<Besides, 'stats' | 'plans' | 'policyOf'>

/**
 * A limiter around an inner one, whose answers come when the inner one's do: in memory at once. Verbs without a key go to the inner limiter
 * directly. To its user a layer has the type of the limiter within.
 */
export abstract class Layer<Answer extends Decision> extends QueuedLimiter implements LimiterVerbs<Answer>, Settling<Answer> {
  protected readonly inner: LimiterVerbs<Answer> & Besides

  constructor(inner: InnerLimiter<Answer>) {
    super()
    this.inner = inner as LimiterVerbs<Answer> & Besides
    // Limiters in memory have no servers to show.
    if ('shards' in inner && !('shards' in this)) Object.defineProperty(this, 'shards', { value: (n?: number) => this.shardsOf(n) })
  }

  abstract [TAKE](key: Key, cost?: number): Awaitable<Reservation<When, Answer>>
  abstract [WAIT](key: Key, options?: WaitOptions): Promise<Reservation<When, Answer>>
  abstract override take(key: Key, cost?: number): Awaitable<Answer>
  abstract peek(key: Key, cost?: number): Awaitable<Decision>
  abstract override wait(key: Key, options?: WaitOptions): Promise<Answer>
  abstract reserve(key: Key, cost: number, options?: ReserveOptions): Awaitable<Reservation<When>>
  abstract override refund(key: Key, tokens: number): Awaitable<Decision>
  abstract override penalize(key: Key, tokens: number): Awaitable<Decision>
  abstract block(key: Key, duration: Duration): Awaitable<Decision>
  abstract reset(key: Key): Awaitable<Decision>
  abstract key(key: Key): BoundKey<Answer, When>

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

  open(key: Key, options?: OpenOptions): Awaitable<AnyHold> {
    return this.inner.open(key, options)
  }

  hotKeys(n?: number): HotKeys {
    return this.inner.hotKeys(n)
  }

  stats(): object {
    return this.inner.stats()
  }

  handle(): LimiterHandle {
    return this.inner.handle()
  }

  snapshot(): Uint8Array {
    return this.inner.snapshot()
  }

  /** Of a limiter over a store. */
  protected shardsOf(n: number | undefined): unknown {
    return this.inner.shards(n)
  }

  close(): void {
    closeQueueOf(this)
    this.inner.close()
  }

  /** A bound key of this limiter; logs show it without the key. */
  protected bound(bound: BoundKey<Answer, When>): BoundKey<Answer, When> {
    return shownAs(bound, 'BoundKey', this.toJSON())
  }
}

/** The policy of a limiter for a key. */
export function policyIn(limiter: Pick<InnerLimiter, 'policy' | 'plans' | 'policyOf'>, key: Key): Policy {
  const dependsOnKey = limiter instanceof Layer || limiter.plans !== undefined
  return (dependsOnKey ? limiter.policyOf?.(key) : undefined) ?? limiter.policy
}

/** A limiter of this library, whose takes can be settled. */
export function settling<Answer extends Decision>(limiter: LimiterVerbs<Answer>): Settling<Answer> {
  return limiter as LimiterVerbs<Answer> & Settling<Answer>
}

/** A wait that ends at once; throws what it rejects with. */
export function atOnce<Answer>(key: Key, options: WaitOptions, take: (cost: number) => Answer): Answer {
  const { cost, signal } = checkedWaitRequest(key, options)
  if (signal?.aborted) throw signal.reason
  return take(cost)
}
