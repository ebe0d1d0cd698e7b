import { on } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { AskedJob, GivenAnswer, WorkerJob, WorkerStart } from './worker-job.js'

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
