import type { When } from '../awaitable.js'
import type { Reservation } from '../decision/reservation.js'
import { type Key, type KeysByName, nameOf } from '../key.js'
import { Shown } from '../shown.js'
import { type Clock, unheldClock } from '../time/clock.js'
import { AbortWatch } from '../waiting/abort-watch.js'
import { Alarm, type Alert } from '../waiting/alarm.js'
import { DueHeap } from '../waiting/due-heap.js'
import { type Job, newJob, type Rank, type RunningHost, runAdmitted } from './job.js'
import { Lane, type LaneHost, tooLate } from './lane.js'
import {
  checkedRunOptions,
  checkedWrapOptions,
  checkWork,
  keyOfJob,
  type QueueLimiter,
  type QueueSettings,
  type RunningJob,
  type RunOptions,
  type WrapOptions,
} from './queue-options.js'
import { QueueError, type QueueStats, type WorkQueue } from './work-queue.js'

/** The longest time that a job with `maxWait: 0` is kept while a store decides. */
const LATEST_ANSWER_MS = 1_000

/** The queue: one lane of jobs per key. Jobs start by priority, then by arrival. */
export class LimiterQueue extends Shown implements WorkQueue, LaneHost, RunningHost {
  readonly limiter: QueueLimiter
  readonly aborts = new AbortWatch()
  private readonly settings: QueueSettings
  private readonly clock: Clock
  private readonly alarm: Alarm
  private readonly background: Alarm
  private readonly lanes = new Map<string, Lane>()
  /** Lanes that can ask for a token. */
  private readonly ready = new DueHeap<Lane>()
  private readonly drops = new DueHeap<Rank>()
  private readonly idlers: (() => void)[] = []
  private readonly emptiers: (() => void)[] = []
  private arrivals = 0
  private size = 0
  private running = 0
  /** Places kept for takes that are under way. */
  private kept = 0
  private completed = 0
  private failed = 0
  private rejected = 0
  private isStarting = false
  private willStart = false
  private isClosed = false
  isPaused = false

  constructor(limiter: QueueLimiter, settings: QueueSettings, clock: Clock) {
    super()
    this.limiter = limiter
    this.settings = settings
    this.clock = clock
    this.alarm = new Alarm(clock, (error) => this.rejectAll(() => error))
    this.background = new Alarm(unheldClock(clock), (error) => this.rejectAll(() => error))
  }

  run<Result>(key: Key | KeysByName, fn: (job: RunningJob) => Result, options: RunOptions = {}): Promise<Awaited<Result>> {
    return new Promise((resolve, reject) => {
      checkWork(fn)
      const own = keyOfJob(this.limiter, key)
      const settings = checkedRunOptions(options, this.settings)
      if (this.isClosed) throw new QueueError('CLOSED', 'this queue is closed', own)
      if (settings.signal?.aborted) return reject(settings.signal.reason)
      const { maxWaitMs } = settings
      const deadlineMs = maxWaitMs === Number.POSITIVE_INFINITY ? maxWaitMs : this.nowMs() + maxWaitMs
      const parts = { key: own, settings, order: this.arrivals++, deadlineMs, fn, resolve: resolve as (value: unknown) => void, reject }
      this.enter(newJob(parts, this.settings.overflow !== 'refuse-newest'))
    })
  }

  wrap<This, Args extends unknown[], Result>(
    fn: (this: This, ...args: Args) => Result,
    wrapOptions: WrapOptions<Args, Result> = {},
  ): (this: This, ...args: Args) => Promise<Awaited<Result>> {
    checkWork(fn)
    const { options, keyOf, costOf } = checkedWrapOptions(wrapOptions, this.settings)
    const queue = this
    return function (this: This, ...args: Args) {
      // An error of the key function rejects too.
      return new Promise((resolve) => {
        const work = costOf === undefined ? () => fn.apply(this, args) : settled(() => fn.apply(this, args), costOf)
        resolve(queue.run(keyOf(args), work as (job: RunningJob) => Result, options))
      })
    }
  }

  pause(): void {
    this.isPaused = true
    for (const lane of this.lanes.values()) {
      lane.stop()
      this.rank(lane)
    }
  }

  resume(): void {
    this.isPaused = false
    this.startJobs()
  }

  clear(): number {
    const { size } = this
    this.rejectAll((job) => new QueueError('CLEARED', 'the queue was cleared', job.key))
    return size
  }

  onEmpty(): Promise<void> {
    return this.size === 0 ? Promise.resolve() : new Promise((resolve) => this.emptiers.push(resolve))
  }

  onIdle(): Promise<void> {
    return this.isIdle ? Promise.resolve() : new Promise((resolve) => this.idlers.push(resolve))
  }

  toJSON(): QueueStats & { readonly isPaused: boolean } {
    return { ...this.stats(), isPaused: this.isPaused }
  }

  stats(): QueueStats {
    const { size: queued, running, completed, failed, rejected } = this
    return { queued, running, keys: this.lanes.size, completed, failed, rejected }
  }

  close(): void {
    this.isClosed = true
    this.rejectAll((job) => new QueueError('CLOSED', 'the queue was closed', job.key))
  }

  [Symbol.dispose](): void {
    this.close()
  }

  // What lanes and running jobs need.

  nowMs(): number {
    return this.clock.nowMs()
  }

  readonly after = (ms: number, fn: () => void): (() => void) => timer(this.alarm, ms, fn)

  readonly afterUnheld = (ms: number, fn: () => void): (() => void) => timer(this.background, ms, fn)

  canStart(): boolean {
    return !this.isPaused && this.running + this.kept < this.settings.concurrency
  }

  start(job: Job, reservation: Reservation<When>): void {
    this.running++
    this.leave(job)
    runAdmitted(job, reservation, this)
  }

  ended({ key, settings }: Job, isSuccess: boolean): void {
    this.running--
    if (isSuccess) this.completed++
    else this.failed++
    const lane = typeof settings.cost === 'number' ? undefined : this.lanes.get(nameOf(key))
    if (lane !== undefined) {
      lane.wake()
      this.rank(lane)
    }
    this.startJobs()
  }

  reject(job: Job, reason: unknown): void {
    if (!isWaiting(job)) return
    this.rejected++
    this.leave(job)
    job.reject(reason)
    this.startSoon()
  }

  keepPlaces(change: 1 | -1): void {
    this.kept += change
  }

  changed(lane: Lane): void {
    this.rank(lane)
    this.startJobs()
  }

  private get isIdle(): boolean {
    return this.size === 0 && this.running === 0
  }

  private enter(job: Job): void {
    const name = nameOf(job.key)
    const lane = this.lanes.get(name) ?? new Lane(job.key, name, this)
    this.lanes.set(name, lane)
    this.size++
    lane.add(job)
    if (job.drop !== undefined) this.drops.add(job.drop)
    this.watch(job)
    this.changed(lane)
    if (job.settings.maxWaitMs === 0 && isWaiting(job)) this.hurry(job, lane)
    if (lane.size - lane.takes > this.settings.maxWaitingPerKey) this.shed(job, lane.drops, 'of this key')
    if (this.size - this.kept > this.settings.maxWaiting) this.shed(job, this.drops, 'in all')
    this.startJobs()
  }

  /** A job that does not wait. If a store is being asked, its answer may arrive first. */
  private hurry(job: Job, lane: Lane): void {
    if (lane.takes === 0) {
      this.reject(job, tooLate(job))
      return
    }
    const { unwatch } = job
    const untime = this.after(LATEST_ANSWER_MS, () => this.reject(job, tooLate(job)))
    job.unwatch = () => {
      unwatch()
      untime()
    }
  }

  private watch(job: Job): void {
    const { signal, maxWaitMs } = job.settings
    const unwatch = signal && this.aborts.add(signal, () => this.reject(job, signal.reason))
    const isTimed = maxWaitMs > 0 && maxWaitMs !== Number.POSITIVE_INFINITY
    const untime = isTimed ? this.after(maxWaitMs, () => this.reject(job, tooLate(job))) : undefined
    job.unwatch = () => {
      unwatch?.()
      untime?.()
    }
  }

  /** Removes one job: the newest, or the one with the lowest priority. */
  private shed(newest: Job, drops: DueHeap<Rank>, where: string): void {
    const least = drops.first?.job
    const isLess = least !== undefined && (this.settings.overflow === 'drop-oldest' || least.settings.priority < newest.settings.priority)
    const isNewest = !isLess || least === newest
    const code = isNewest ? 'QUEUE_FULL' : 'DROPPED'
    const job = isNewest ? newest : least
    if (isWaiting(job)) this.reject(job, new QueueError(code, `too many jobs are waiting ${where}`, job.key))
  }

  private leave(job: Job): void {
    const lane = this.lanes.get(nameOf(job.key)) as Lane
    job.unwatch()
    this.size--
    lane.remove(job)
    if (job.drop !== undefined) this.drops.remove(job.drop)
    this.rank(lane)
    this.tell()
  }

  /** Puts a lane where it belongs among those that can ask, and forgets one without jobs. */
  private rank(lane: Lane): void {
    this.ready.remove(lane)
    const { first } = lane
    if (first !== undefined && lane.canAsk) {
      lane.dueUs = first.turn.dueUs
      lane.order = first.order
      this.ready.add(lane)
    }
    if (first === undefined && lane.takes === 0) {
      lane.stop()
      if (this.lanes.get(lane.name) === lane) this.lanes.delete(lane.name)
    }
  }

  private startJobs(): void {
    // A job that starts may add others, which the loop below finds.
    if (this.isStarting) return
    this.isStarting = true
    try {
      for (let lane = this.ready.first; lane !== undefined && this.canStart(); lane = this.ready.first) {
        lane.ask()
        this.rank(lane)
      }
    } finally {
      this.isStarting = false
    }
    this.tell()
  }

  /** When thousands of jobs leave together, those behind them start once. */
  private startSoon(): void {
    if (this.willStart) return
    this.willStart = true
    queueMicrotask(() => {
      this.willStart = false
      this.startJobs()
    })
  }

  private rejectAll(reason: (job: Job) => unknown): void {
    for (const lane of [...this.lanes.values()]) {
      for (let { first } = lane; first !== undefined; { first } = lane) this.reject(first, reason(first))
    }
  }

  private tell(): void {
    if (this.size === 0) for (const resolve of this.emptiers.splice(0)) resolve()
    if (this.isIdle) for (const resolve of this.idlers.splice(0)) resolve()
  }
}

/** Work that says by its result what it cost. */
function settled<Result>(work: () => Result, costOf: (result: Awaited<Result>) => number) {
  return async ({ settle }: RunningJob): Promise<Awaited<Result>> => {
    const result = await work()
    await settle(costOf(result))
    return result
  }
}

function isWaiting(job: Job): boolean {
  return job.turn.place >= 0
}

function timer(alarm: Alarm, ms: number, fn: () => void): () => void {
  const alert: Alert = { dueUs: 0, order: 0, place: -1, ring: fn }
  alarm.set(alert, alarm.inUs(ms), 0)
  return () => alarm.clear(alert)
}
