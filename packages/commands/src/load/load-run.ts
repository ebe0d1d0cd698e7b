import { keysOf } from './key-choice.js'
import { LoadInterval, recordMs } from './load-interval.js'
import type { LoadOutcome, LoadPlan, LoadTarget } from './load-plan.js'
import { Arrivals, type ProcessShare } from './load-plan.js'

const INTERVAL_MS = 1_000
const SHORTEST_S = 0.001

/** Time as a run sees it. */
export interface LoadClock {
  /** Milliseconds of a clock that never steps. */
  nowMs(): number
  /** Calls `wake` at that time or soon after; earlier calls that have not happened are dropped. */
  wakeAt(atMs: number, wake: () => void): void
}

/** One answer, in milliseconds of the run's clock. */
export interface LoadAnswer {
  readonly key: string
  readonly intendedMs: number
  readonly sentMs: number
  readonly answeredMs: number
  readonly outcome: LoadOutcome
}

/** What a run reports while it goes on. */
export interface LoadWatcher {
  /** The second with this number is over; the run keeps nothing of it. */
  interval(second: number, interval: LoadInterval): void
  answer?(answer: LoadAnswer): void
  /** The warm-up is over: what has been counted of it does not count. */
  warmedUp?(): void
}

/** Requests that wait for an answer at once; later ones are sent late, and their latency counts from when they were due. */
const MAX_OUTSTANDING = 8_192
/** After that number more are sent when so few wait: one at a time would cost a turn for each answer. */
const OUTSTANDING_AGAIN = 6_144

interface OpenRequest {
  readonly intendedMs: number
  readonly sentMs: number
}

/** The load of one process. The warm-up goes over into what is measured without a pause, as the same code: neither is compiled again. */
export class LoadRun {
  readonly #plan: LoadPlan
  readonly #target: LoadTarget
  readonly #clock: LoadClock
  readonly #watcher: LoadWatcher
  readonly #share: ProcessShare
  readonly #callers: number
  readonly #open = new Set<OpenRequest>()
  /** Made before the run: a file of keys takes time to read. */
  readonly #measuredKeys: () => string
  #nextKey: () => string
  #arrivals: Arrivals | undefined
  /** Of what is measured: later than now during the warm-up. */
  #measuredFromMs = 0
  #startMs = 0
  #endMs = Number.POSITIVE_INFINITY
  #dueMs = Number.POSITIVE_INFINITY
  #second = 0
  #interval = new LoadInterval()
  #done: () => void = () => undefined
  #isOver = false
  #endedMs = 0

  constructor(plan: LoadPlan, target: LoadTarget, clock: LoadClock, watcher: LoadWatcher, share: ProcessShare = { index: 0, of: 1 }) {
    this.#plan = plan
    this.#target = target
    this.#clock = clock
    this.#watcher = watcher
    this.#share = share
    const { loop } = plan
    this.#callers = loop.kind === 'closed' ? Math.ceil((loop.callers - share.index) / share.of) : 0
    this.#measuredKeys = keysOf(plan.keys, this.#seed, share)
    this.#nextKey = plan.warmUpMs > 0 ? keysOf(plan.keys, this.#seed, share) : this.#measuredKeys
    this.#arrivals = this.#newArrivals()
  }

  /** Resolves when every request has its answer, or the time for answers is over. */
  run(): Promise<void> {
    return new Promise((resolve) => {
      this.#done = resolve
      this.#startMs = this.#nowMs()
      this.#measuredFromMs = this.#startMs + this.#plan.warmUpMs
      this.#endMs = this.#measuredFromMs + this.#plan.durationMs
      if (this.#arrivals === undefined) for (let i = 0; i < this.#callers; i++) this.#send(this.#nowMs())
      else this.#dueMs = this.#startMs + this.#arrivals.next()
      this.#turn()
    })
  }

  /** From the end of the warm-up to the last answer, in seconds; nearly 0 if the run ended within the warm-up. */
  get seconds(): number {
    return Math.max(SHORTEST_S, (this.#endedMs - this.#measuredFromMs) / 1_000)
  }

  /** Ends a run that has begun: nothing more is sent. */
  stop(): void {
    this.#endMs = Math.min(this.#endMs, this.#nowMs())
    this.#turn()
  }

  get #seed(): number {
    return this.#plan.seed + 7_919 * this.#share.index
  }

  get #isWarmingUp(): boolean {
    return this.#startMs < this.#measuredFromMs
  }

  #newArrivals(): Arrivals | undefined {
    const { loop } = this.#plan
    return loop.kind === 'open' ? new Arrivals(loop.arrivals, this.#share, this.#seed + 1) : undefined
  }

  /** Keys, arrivals and counts begin again: the seed repeats what is measured, whatever the warm-up. */
  #endWarmUp(): void {
    this.#startMs = this.#measuredFromMs
    this.#nextKey = this.#measuredKeys
    this.#arrivals = this.#newArrivals()
    if (this.#arrivals !== undefined) this.#dueMs = this.#startMs + this.#arrivals.next()
    this.#second = 0
    this.#interval = new LoadInterval()
    this.#watcher.warmedUp?.()
  }

  #nowMs(): number {
    return this.#clock.nowMs()
  }

  /** Sends what is due, and waits for what comes next. */
  #turn(): void {
    if (this.#isOver) return
    const nowMs = this.#nowMs()
    this.#pass(nowMs)
    while (this.#dueMs <= nowMs && this.#dueMs < this.#endMs && this.#open.size < MAX_OUTSTANDING) {
      this.#send(this.#dueMs)
      this.#dueMs = this.#startMs + (this.#arrivals as Arrivals).next()
    }
    const isSending = this.#arrivals === undefined ? nowMs < this.#endMs : this.#dueMs < this.#endMs
    const lastMs = this.#endMs + this.#plan.graceMs
    if ((!isSending && this.#open.size === 0 && nowMs >= this.#endMs) || nowMs >= lastMs) {
      this.#finish(nowMs)
      return
    }
    const second = this.#startMs + (this.#second + 1) * INTERVAL_MS
    const due = isSending && this.#dueMs > nowMs ? this.#dueMs : Number.POSITIVE_INFINITY
    const measured = this.#isWarmingUp ? this.#measuredFromMs : Number.POSITIVE_INFINITY
    const end = nowMs < this.#endMs ? this.#endMs : lastMs
    this.#clock.wakeAt(Math.min(second, due, measured, end), () => this.#turn())
  }

  #send(intendedMs: number): void {
    const key = this.#nextKey()
    const request: OpenRequest = { intendedMs, sentMs: this.#nowMs() }
    this.#open.add(request)
    this.#interval.sent++
    void this.#target.take(key).then((outcome) => this.#answered(request, key, outcome))
  }

  #answered(request: OpenRequest, key: string, outcome: LoadOutcome): void {
    if (this.#isOver) return
    this.#open.delete(request)
    const nowMs = this.#nowMs()
    this.#pass(nowMs)
    if (request.intendedMs >= this.#startMs) this.#count(request, key, outcome, nowMs)
    if (this.#arrivals === undefined && nowMs < this.#endMs) this.#send(nowMs)
    else if (this.#open.size === 0 || this.#open.size === OUTSTANDING_AGAIN) this.#turn()
  }

  #count(request: OpenRequest, key: string, outcome: LoadOutcome, nowMs: number): void {
    const interval = this.#interval
    if (outcome === 'error') interval.errors++
    else interval[outcome]++
    recordMs(interval.latency, nowMs - request.intendedMs)
    recordMs(interval.service, nowMs - request.sentMs)
    if (!this.#isWarmingUp) this.#watcher.answer?.({ key, ...request, answeredMs: nowMs, outcome })
  }

  /** Ends the warm-up and the seconds that are over. */
  #pass(nowMs: number): void {
    if (this.#isWarmingUp && nowMs >= this.#measuredFromMs) this.#endWarmUp()
    while (nowMs >= this.#startMs + (this.#second + 1) * INTERVAL_MS) {
      if (!this.#isWarmingUp) this.#watcher.interval(this.#second, this.#interval)
      this.#second++
      this.#interval = new LoadInterval()
    }
  }

  /** What has no answer counts with its latency so far, also what was due and never sent: leaving it out would hide a stall. */
  #finish(nowMs: number): void {
    this.#isOver = true
    this.#endedMs = nowMs
    const interval = this.#isWarmingUp ? new LoadInterval() : this.#interval
    for (const { intendedMs, sentMs } of this.#isWarmingUp ? [] : this.#open) {
      if (intendedMs < this.#startMs) continue
      interval.unanswered++
      recordMs(interval.latency, nowMs - intendedMs)
      recordMs(interval.service, nowMs - sentMs)
    }
    for (; this.#dueMs < this.#endMs; this.#dueMs = this.#startMs + (this.#arrivals as Arrivals).next()) {
      interval.unanswered++
      recordMs(interval.latency, nowMs - this.#dueMs)
    }
    this.#watcher.interval(this.#second, interval)
    this.#done()
  }
}

/** The clock of the process. Below a millisecond it waits by turns of the event loop, as timers are no finer. */
export function processClock(): LoadClock {
  let timer: NodeJS.Timeout | undefined
  let immediate: NodeJS.Immediate | undefined
  return {
    nowMs: () => performance.now(),
    wakeAt(atMs, wake) {
      clearTimeout(timer)
      clearImmediate(immediate)
      const waitMs = atMs - performance.now()
      if (waitMs >= 2) timer = setTimeout(wake, Math.floor(waitMs - 1))
      else immediate = setImmediate(wake)
    },
  }
}
