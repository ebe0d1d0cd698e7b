import type { Awaitable } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import type { Key, KeysByName, WaitOptions } from '../limiter.js'
import { onceInProcess } from '../once-in-process.js'
import { asGiven, checkLimiter } from '../options/option-checks.js'
import type { Policy } from '../policy/policy.js'
import { ShownLimiter } from '../shown.js'
import { type Clock, clockHandle, preciseClock } from '../time/clock.js'
import { LimiterQueue } from './limiter-queue.js'
import {
  checkedQueueOptions,
  type OwnQueueOptions,
  type QueueLimiter,
  type RunningJob,
  type RunOptions,
  type WrapOptions,
} from './queue-options.js'
import type { QueueVerbs, WorkQueue } from './work-queue.js'

/**
 * A separate queue over any limiter: in memory, in Redis or of a cluster. Each limiter has one already, `limiter.queue`; make another where some work
 * needs other bounds.
 *
 * @throws {PolicyError} `OPTION_UNKNOWN` or `OPTION_INVALID`
 * @example
 * const queue = createQueue(limiter, { concurrency: 2, maxWaiting: 100, overflow: 'drop-oldest' })
 * const page = await queue.run('example.org', () => fetch('https://example.org/'), { priority: 1 })
 */
export function createQueue(limiter: QueueLimiter, options: OwnQueueOptions = {}): WorkQueue {
  checkLimiter('limiter', limiter)
  const { clock = clocks.get(limiter) ?? preciseClock(), ...others } = asGiven(options, CLOCK)
  // A step of the wall clock says nothing of how long a job runs or waits.
  const even = clockHandle(clock).kind === 'wall' ? preciseClock() : clock
  return new LimiterQueue(limiter, checkedQueueOptions(others), even)
}

const CLOCK = ['clock'] as const

/** Of each limiter, made when it is first used: most limiters never queue anything. */
const queues = /* @__PURE__ */ onceInProcess('queues', () => new WeakMap<QueueLimiter, WorkQueue>())
/** Of the limiters of this library, but a handle's or a snapshot's without its own. */
const clocks = /* @__PURE__ */ onceInProcess('clocks of queues', () => new WeakMap<QueueLimiter, Clock>())

/** Says by which clock the queue of a limiter goes, once one of its jobs or settings is asked for. */
export function withQueue<Limiter extends QueueLimiter>(limiter: Limiter, clock: Clock | undefined): Limiter {
  if (clock !== undefined) clocks.set(limiter, clock)
  return limiter
}

/** The queue behind `run` and `wrap` of a limiter. */
export function queueOf(limiter: QueueLimiter): WorkQueue {
  const known = queues.get(limiter)
  if (known !== undefined) return known
  const queue = createQueue(limiter)
  queues.set(limiter, queue)
  return queue
}

/** To be called when the limiter is closed. */
export function closeQueueOf(limiter: QueueLimiter): void {
  queues.get(limiter)?.close()
}

/** What every limiter has of its queue, which is made when it is first asked for. Each closes it by `closeQueueOf`. */
export abstract class QueuedLimiter extends ShownLimiter<Policy> implements QueueVerbs, QueueLimiter {
  abstract take(key: Key, cost?: number): Awaitable<Decision>
  abstract wait(key: Key, options?: WaitOptions): Promise<Decision>
  abstract refund(key: Key, tokens: number): Awaitable<Decision>
  abstract penalize(key: Key, tokens: number): Awaitable<Decision>

  get queue(): WorkQueue {
    return queueOf(this)
  }

  run<Result>(key: Key | KeysByName, fn: (job: RunningJob) => Result, options?: RunOptions): Promise<Awaited<Result>> {
    return this.queue.run(key, fn, options)
  }

  wrap<This, Args extends unknown[], Result>(
    fn: (this: This, ...args: Args) => Result,
    options?: WrapOptions<Args, Result>,
  ): (this: This, ...args: Args) => Promise<Awaited<Result>> {
    return this.queue.wrap(fn, options)
  }
}
