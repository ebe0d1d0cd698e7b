import type { Awaitable } from '../awaitable.js'
import type { Decision } from '../decision.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { ShownLimiter } from '../shown.js'
import { queueOf } from './create-queue.js'
import type { QueueLimiter, RunningJob, RunOptions, WrapOptions } from './queue-options.js'
import type { QueueVerbs, WorkQueue } from './work-queue.js'

/** What every limiter has of its queue, which is made when it is first asked for. Each closes it by `closeQueueOf`. */
export abstract class QueuedLimiter extends ShownLimiter<Policy> implements QueueVerbs, QueueLimiter {
  abstract take(key: Key, cost?: number): Awaitable<Decision>
  abstract wait(key: Key, options?: WaitOptions): Promise<Decision>
  abstract refund(key: Key, tokens: number): Awaitable<Decision>
  abstract penalize(key: Key, tokens: number): Awaitable<Decision>

  get queue(): WorkQueue {
    return queueOf(this)
  }

  run<Result>(key: Key, fn: (job: RunningJob) => Result, options?: RunOptions): Promise<Awaited<Result>> {
    return this.queue.run(key, fn, options)
  }

  wrap<This, Args extends unknown[], Result>(
    fn: (this: This, ...args: Args) => Result,
    options?: WrapOptions<Args>,
  ): (this: This, ...args: Args) => Promise<Awaited<Result>> {
    return this.queue.wrap(fn, options)
  }
}
