import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { WorkerJob, WorkerStart } from './worker-job.js'

const PROGRAM = new URL('./limiter-worker.js', import.meta.url)

/** One worker thread that shares a limiter. */
export class Mate {
  readonly #worker: Worker
  #failure: Error | undefined

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
    this.start(job)
    const [answer] = await once(this.#worker, 'message')
    return answer
  }

  /** Sets a job going and waits for no answer. */
  start(job: WorkerJob): void {
    this.#worker.postMessage(job)
  }

  /** Ends the thread wherever it is. */
  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }

  /** Calls `listen` when the worker fails by itself. */
  onError(listen: (error: Error) => void): void {
    this.#worker.on('error', listen)
  }
}

/** Several worker threads that share a limiter. */
export class Crew {
  readonly #mates: readonly Mate[]

  constructor(size: number, start?: WorkerStart) {
    this.#mates = Array.from({ length: size }, () => new Mate(start))
  }

  /** The answers of all, who work at the job at the same time. */
  async ask(job: WorkerJob): Promise<readonly unknown[]> {
    return Promise.all(this.#mates.map((mate) => mate.ask(job)))
  }

  /** From now on all work at this limiter. */
  async attach(start: WorkerStart): Promise<void> {
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
