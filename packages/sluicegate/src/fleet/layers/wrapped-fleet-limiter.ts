import type { Awaitable } from '../../awaitable.js'
import type { Decision } from '../../decision.js'
import type { HotKeys } from '../../hot-keys.js'
import type { Key, WaitOptions } from '../../limiter.js'
import type { Policy } from '../../policy/policy.js'
import { closeQueueOf, queueOf } from '../../queue/create-queue.js'
import type { RunningJob, RunOptions, WrapOptions } from '../../queue/queue-options.js'
import type { WorkQueue } from '../../queue/work-queue.js'
import { ShownLimiter } from '../../shown.js'
import type { FleetLimiter, FleetStats } from '../fleet-limiter.js'
import type { ShardLoads } from '../shard-load.js'

/** A limiter of a fleet around another one: what is about no key goes straight through. */
export abstract class WrappedFleetLimiter<Answer extends Decision> extends ShownLimiter<Policy> {
  protected readonly inner: FleetLimiter<Answer>

  constructor(inner: FleetLimiter<Answer>) {
    super()
    this.inner = inner
  }

  abstract take(key: Key, cost?: number): Awaitable<Answer>
  abstract wait(key: Key, options?: WaitOptions): Promise<Answer>
  abstract refund(key: Key, tokens: number): Promise<Decision>
  abstract penalize(key: Key, tokens: number): Promise<Decision>

  get queue(): WorkQueue {
    return queueOf(this)
  }

  run<Result>(key: Key, fn: (job: RunningJob) => Result, options?: RunOptions): Promise<Awaited<Result>> {
    return queueOf(this).run(key, fn, options)
  }

  wrap<This, Args extends unknown[], Result>(
    fn: (this: This, ...args: Args) => Result,
    options?: WrapOptions<Args>,
  ): (this: This, ...args: Args) => Promise<Awaited<Result>> {
    return queueOf(this).wrap(fn, options)
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
}

/** The policy that a limiter has for a key. */
export function policyIn(limiter: FleetLimiter<Decision>, key: Key): Policy {
  return limiter instanceof WrappedFleetLimiter ? limiter.policyOf(key) : limiter.policy
}
