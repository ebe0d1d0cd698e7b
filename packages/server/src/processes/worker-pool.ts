import { setTimeout as wait } from 'node:timers/promises'
import type { ListenerName, StopTimes } from 'sluicegate-config/config.js'
import type { ConfigFile } from 'sluicegate-config/read-config.js'
import type { TlsConfig } from 'sluicegate-config/tls.js'
import type { Log } from '../log.js'
import type { WorkerRestarts } from '../measures/service-measures.js'
import type { Child, ChildEvents } from './child.js'
import { Exchange, type Methods } from './exchange.js'
import type { SharedTables } from './owned-policies.js'
import type { Ports } from './shared-ports.js'

/** A worker that dies is started again after 100 ms, then after twice as long each time, until one has lived for ten seconds. */
const RESTART_MS = { first: 100, most: 5_000, steadyAfter: 10_000 } as const
/** How long a worker may take to exit after its last request. */
const EXIT_MS = 1_000
/**
 * A worker whose event loop is stuck is found by calls that it does not answer. Two in a row, since the first may be late because this process was
 * stopped itself.
 */
const ALIVE = { everyMs: 1_000, answerMs: 4_000, misses: 2 } as const

/** What a worker begins with. */
export interface WorkerStart {
  /** The configuration in force. */
  readonly files: readonly ConfigFile[]
  /** Certificates in force. */
  readonly tls: TlsConfig | undefined
  /** Counts the configurations that were in force. */
  readonly generation: number
  /** Where all workers listen. */
  readonly ports: Ports
  /** For threads. */
  readonly tables: SharedTables | undefined
}

/** Why a worker cannot serve, for people. */
export class WorkerError extends Error {
  override readonly name = 'WorkerError'
}

/** A worker that listens. */
export interface ReadyWorker {
  readonly slot: number
  readonly exchange: Pick<Exchange, 'call' | 'callWith'>
  /** Resolves at its end. */
  readonly ended: Promise<void>
  /** Set while it reads a configuration, which may take longer than an answer. */
  isReading: boolean
  /** Ends it at once; another one takes its place. */
  kill(): void
}

/** What a {@link WorkerPool} is made with. */
export interface WorkerPoolParts {
  readonly log: Log
  /** Starts the program once more, as a process or as a thread. */
  readonly spawn: (slot: number, events: ChildEvents) => Child
  /** What the worker of a slot may call; `end` when it has ended. */
  readonly methods: (slot: number) => Methods & { end(): void }
  readonly begin: () => WorkerStart
  /** The worker listens, with the configuration of `generation`. */
  readonly onReady: (worker: ReadyWorker, generation: number) => void
}

/** The workers of a service: one for each slot. One that ends or hangs is replaced. */
export class WorkerPool {
  /** Of workers that were started again. */
  readonly restarts: WorkerRestarts = { ended: 0, hung: 0 }
  readonly #parts: WorkerPoolParts
  readonly #workers = new Map<number, PoolWorker>()
  #watching: NodeJS.Timeout | undefined
  #phase: 'starting' | 'serving' | 'stopping' = 'starting'

  constructor(parts: WorkerPoolParts) {
    this.#parts = parts
  }

  /**
   * Starts the workers, and resolves with their addresses when all of them listen.
   *
   * @throws {WorkerError} when one cannot serve; then the others are ended.
   */
  async start(count: number): Promise<ReadonlyMap<ListenerName, string>> {
    try {
      const all = await Promise.all(Array.from({ length: count }, (_, slot) => this.#startWorker(slot, RESTART_MS.first)))
      this.#phase = 'serving'
      this.#watching = setInterval(() => {
        for (const worker of this.#workers.values()) void this.#lookAt(worker)
      }, ALIVE.everyMs).unref()
      return all[0] ?? new Map()
    } catch (error) {
      this.#phase = 'stopping'
      for (const worker of this.#workers.values()) worker.kill()
      throw error
    }
  }

  /** Workers that listen. */
  get ready(): readonly ReadyWorker[] {
    return [...this.#workers.values()].filter(({ isReady }) => isReady)
  }

  /** Whether the slot has a worker now. */
  has(slot: number): boolean {
    return this.#workers.has(slot)
  }

  /** A worker that may have permits and reservations; undefined for one that has not begun. */
  begun(slot: number): Pick<ReadyWorker, 'exchange'> | undefined {
    const worker = this.#workers.get(slot)
    return worker?.hasBegun ? worker : undefined
  }

  /** The answers of all workers that listen, by slot; one that ends or hangs meanwhile has none. */
  async call<Value>(method: string, ...args: readonly unknown[]): Promise<Map<number, Value>> {
    const answers = this.ready.map(async ({ slot, exchange }): Promise<[number, Value][]> => {
      try {
        return [[slot, await exchange.call<Value>(method, ...args)]]
      } catch {
        return []
      }
    })
    return new Map((await Promise.all(answers)).flat())
  }

  /** Lets all workers finish, and ends those that take longer. */
  async stop(times: StopTimes): Promise<void> {
    this.#phase = 'stopping'
    clearInterval(this.#watching)
    const timeoutMs = times.drainMs + times.finishMs + EXIT_MS
    const ends = [...this.#workers.values()].map(async (worker) => {
      // It has no connections yet.
      if (!worker.isReady) return worker.kill()
      worker.exchange.callWith({ timeoutMs }, 'stop', times).catch(() => undefined)
      const late = new AbortController()
      await Promise.race([worker.ended, wait(timeoutMs, undefined, late).catch(() => undefined)])
      late.abort()
      worker.kill()
    })
    await Promise.all(ends)
  }

  /** Resolves when the worker listens; rejects when it ends before that. */
  #startWorker(slot: number, delayMs: number): Promise<ReadonlyMap<ListenerName, string>> {
    const { log, spawn, methods, begin, onReady } = this.#parts
    return new Promise((resolve, reject) => {
      const steps = methods(slot)
      const startedMs = performance.now()
      const child = spawn(slot, {
        message: (message) => exchange.receive(message),
        error: (error) => log.error({ slot, err: error }, 'a worker failed'),
        exit: (reason) => {
          exchange.close()
          this.#workers.delete(slot)
          steps.end()
          worker.markEnded()
          reject(new WorkerError(`a worker ended before it listened: ${reason}`))
          const livedMs = performance.now() - startedMs
          if (this.#phase === 'serving') this.#replace(worker, reason, delayMs, livedMs)
        },
      })
      const exchange = new Exchange((message) => child.send(message), {
        ...steps,
        begin: (): WorkerStart => {
          worker.hasBegun = true
          return begin()
        },
        ready: (at: [ListenerName, string][], generation: number): void => {
          worker.isReady = true
          if (this.#phase === 'serving') log.info({ slot }, 'a worker listens again')
          onReady(worker, generation)
          resolve(new Map(at))
        },
        failed: (reason: string): void => {
          if (this.#phase === 'serving') log.error({ slot, reason }, 'a worker cannot start')
          reject(new WorkerError(reason))
        },
      })
      const worker = new PoolWorker(slot, child, exchange)
      this.#workers.set(slot, worker)
    })
  }

  #replace({ slot, isHung }: PoolWorker, reason: string, delayMs: number, livedMs: number): void {
    this.restarts[isHung ? 'hung' : 'ended']++
    const nextMs = livedMs >= RESTART_MS.steadyAfter ? RESTART_MS.first : Math.min(delayMs * 2, RESTART_MS.most)
    this.#parts.log.error({ slot, reason, restartMs: delayMs }, 'a worker ended: it is started again')
    setTimeout(() => {
      if (this.#phase === 'serving') this.#startWorker(slot, nextMs).catch(() => undefined)
    }, delayMs)
  }

  /** Ends a worker that does not answer, so that another one takes its place. */
  async #lookAt(worker: PoolWorker): Promise<void> {
    const { slot, exchange } = worker
    if (!worker.isReady || worker.isLookedAt || worker.isHung) return
    worker.isLookedAt = true
    try {
      await exchange.callWith({ timeoutMs: ALIVE.answerMs }, 'alive')
      worker.misses = 0
    } catch {
      // While it reads a configuration that has its own time.
      worker.misses = worker.isReading ? 0 : worker.misses + 1
      if (worker.misses < ALIVE.misses || this.#phase !== 'serving' || this.#workers.get(slot) !== worker) return
      worker.isHung = true
      this.#parts.log.error({ slot, silentMs: ALIVE.answerMs * ALIVE.misses }, 'a worker does not answer: it is killed')
      worker.kill()
    } finally {
      worker.isLookedAt = false
    }
  }
}

/** A worker and what the pool knows of it. */
class PoolWorker implements ReadyWorker {
  readonly slot: number
  readonly exchange: Exchange
  readonly ended: Promise<void>
  markEnded: () => void = () => undefined
  /** Before it begins, a worker answers no calls, and has no permits and no reservations. */
  hasBegun = false
  isReady = false
  isReading = false
  /** Whether a call that finds out whether it answers is under way. */
  isLookedAt = false
  /** Such calls in a row that it did not answer. */
  misses = 0
  /** Whether it was ended because of that. */
  isHung = false
  readonly #child: Child

  constructor(slot: number, child: Child, exchange: Exchange) {
    this.slot = slot
    this.#child = child
    this.exchange = exchange
    this.ended = new Promise((resolve) => {
      this.markEnded = resolve
    })
  }

  kill(): void {
    this.#child.kill()
  }
}
