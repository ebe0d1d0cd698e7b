import { on } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Key } from 'sluicegate'
import type { PolicySpec, SinglePolicySpec } from './oracle/oracle.js'
import type { AskedJob, GivenAnswer, WorkerJob, WorkerStart } from './worker-job.js'

/** An algorithm, in one of its forms, as the tests with worker threads run it. */
interface CrewAlgorithm {
  readonly name: string
  /** What a take costs in these tests. */
  readonly cost: number
  /** Lets `takes` of that cost pass in a window, and no more at once. A form may take a shorter window, or one of the calendar. */
  readonly specOf: (takes: number, windowMs: number) => PolicySpec
  /** Who is limited, by name: with all-of perhaps a key each. */
  readonly keyOf: (name: string) => Key
}

/** Below it both counts of a sliding window no longer fit one word. */
const SHORT_MS = 200
const DAY_MS = 86_400_000
/** Takes the counts of a sliding window beyond 65,535. */
const WIDE_COST = 10_000

/** Every algorithm, in every form that counts differently. */
export const CREW_ALGORITHMS: readonly CrewAlgorithm[] = [
  single('token bucket', 1, (limit, windowMs) => ({ algorithm: 'token-bucket', limit, windowMs, burst: limit })),
  single('gcra', 1, (limit, windowMs) => ({ algorithm: 'gcra', limit, windowMs, burst: limit })),
  single('fixed window', 1, (limit, windowMs) => ({ algorithm: 'fixed-window', limit, windowMs })),
  single('fixed window of the calendar', 1, (limit) => ({
    algorithm: 'fixed-window',
    limit,
    windowMs: DAY_MS,
    calendar: { unit: 'day', timeZone: 'Europe/Rome' },
  })),
  single('sliding window, packed', 1, (limit, windowMs) => ({ algorithm: 'sliding-window', limit, windowMs })),
  single('sliding window, short', 1, (limit, windowMs) => ({
    algorithm: 'sliding-window',
    limit,
    windowMs: shorter(windowMs),
  })),
  single('sliding window, wide', WIDE_COST, (limit, windowMs) => ({ algorithm: 'sliding-window', limit, windowMs })),
  single('sliding log', 3, (limit, windowMs) => ({ algorithm: 'sliding-log', limit, windowMs })),
  single('concurrency', 2, (limit, windowMs) => ({ algorithm: 'concurrency', limit, windowMs })),
  { name: 'all-of, one key', cost: 1, specOf: several, keyOf: (name) => name },
  { name: 'all-of, a key each', cost: 1, specOf: several, keyOf: (name) => [name, `${name}, too`, `the third ${name}`] },
]

/** The window of a policy, of several the longest. */
export function windowMsOf(spec: PolicySpec): number {
  return spec.algorithm === 'all-of' ? Math.max(...spec.parts.map(windowMsOf)) : spec.windowMs
}

/** Other windows are other windows still. */
function shorter(windowMs: number): number {
  return Math.round(((SHORT_MS * windowMs) / (windowMs + 1000)) * 1000) / 1000
}

function single(name: string, cost: number, specOf: (limit: number, windowMs: number) => SinglePolicySpec): CrewAlgorithm {
  return { name, cost, specOf: (takes, windowMs) => specOf(takes * cost, windowMs), keyOf: (key) => key }
}

/** A word, a log with a ring and a permit: all that can change together. */
function several(limit: number, windowMs: number): PolicySpec {
  return {
    algorithm: 'all-of',
    parts: [
      { algorithm: 'token-bucket', limit, windowMs, burst: limit },
      { algorithm: 'sliding-log', limit, windowMs },
      { algorithm: 'concurrency', limit, windowMs },
    ],
  }
}

const PROGRAM = new URL('./limiter-worker.js', import.meta.url)

/** One worker thread that shares a limiter. */
export class Mate {
  readonly #worker: Worker
  #failure: Error | undefined
  #asked = 0

  /** Without a limiter to start with, the first job is to attach to one. */
  constructor(start?: WorkerStart) {
    this.#worker = new Worker(PROGRAM, { workerData: start })
    this.onError((error) => {
      this.#failure ??= error
    })
  }

  /** The answer to a job; rejects when the worker fails at it, or has failed before. */
  async ask(job: WorkerJob): Promise<unknown> {
    if (this.#failure !== undefined) throw this.#failure
    const number = this.start(job)
    // Not that to an earlier job, whose asker went when another worker failed.
    for await (const [given] of on(this.#worker, 'message') as AsyncIterable<[GivenAnswer]>)
      if (given.number === number) return given.answer
    return undefined
  }

  /** Sets a job going and waits for no answer; this is its number. */
  start(job: WorkerJob): number {
    const asked: AskedJob = { number: ++this.#asked, job }
    this.#worker.postMessage(asked)
    return asked.number
  }

  /** Ends the thread wherever it is. */
  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  /** Calls `listen` when the worker fails by itself. */
  onError(listen: (error: Error) => void): void {
    this.#worker.on('error', listen)
  }
}

/** Several worker threads that share a limiter. */
export class Crew {
  #mates: readonly Mate[]

  constructor(size: number, start?: WorkerStart) {
    this.#mates = Array.from({ length: size }, () => new Mate(start))
  }

  /** The answers of all, who work at the job at the same time. */
  async ask(job: WorkerJob): Promise<readonly unknown[]> {
    return Promise.all(this.#mates.map((mate) => mate.ask(job)))
  }

  /** From now on all work at this limiter, and others in the place of those who failed at the one before. */
  async attach(start: WorkerStart): Promise<void> {
    this.#mates = this.#mates.map((mate) => (mate.hasFailed ? new Mate() : mate))
    await this.ask({ kind: 'attach', ...start })
  }

  async end(): Promise<void> {
    await Promise.all(this.#mates.map((mate) => mate.terminate()))
  }
}

/** A crew that goes when the test ends, or all tests of the file, however they end. */
export function crewFor(t: { after(end: () => Promise<void>): void }, ...[size, start]: ConstructorParameters<typeof Crew>): Crew {
  const crew = new Crew(size, start)
  t.after(() => crew.end())
  return crew
}
