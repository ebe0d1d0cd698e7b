import { type ConfigFile, configFiles } from 'sluicegate-config/read-config.js'
import type { Log } from '../log.js'
import type { ConfigSource, PreparedReload, Reloader, ReloadTrigger } from '../reload.js'
import type { SharedTables } from './owned-policies.js'
import type { ReadyWorker, WorkerPool } from './worker-pool.js'

/** How long a worker may take to read a changed configuration; data files of tiers may have a million rows. */
const PREPARE_MS = 60_000

/** What a {@link ReloadCoordinator} is made with. */
export interface ReloadCoordinatorParts {
  readonly source: ConfigSource
  /** That of this process. */
  readonly reloader: Pick<Reloader, 'prepare' | 'prepareData' | 'fail' | 'tls'>
  readonly workers: Pick<WorkerPool, 'call' | 'ready'>
  /** Serves the policies that are in force now, and returns the tables that threads share. */
  readonly tables: (() => SharedTables | undefined) | undefined
  readonly log: Log
  /** As they were read at the start. */
  readonly files: readonly ConfigFile[]
}

/**
 * Puts a changed configuration in force in all processes, or in none: all prepare the same files, then all commit. One change after another.
 */
export class ReloadCoordinator {
  /** The configuration in force. */
  files: readonly ConfigFile[]
  /** Counts the configurations that were in force, and the data files of tiers. */
  generation = 0
  readonly #parts: ReloadCoordinatorParts
  #last: Promise<void> = Promise.resolve()

  constructor(parts: ReloadCoordinatorParts) {
    this.#parts = parts
    this.files = parts.files
  }

  /** @throws as `Reloader.reload`, later. */
  reload(trigger: ReloadTrigger): Promise<void> {
    return this.#inTurn(async () => {
      const next = this.#filesNow(trigger)
      const prepared = await this.#parts.reloader.prepare(trigger, next)
      const workers = await this.#prepareWorkers(trigger, prepared, 'prepareReload', next, prepared.tls)
      await prepared.commit()
      this.files = next
      await this.#commitWorkers(workers)
    })
  }

  /** The data files of tiers. */
  reloadData(trigger: ReloadTrigger = 'file'): Promise<void> {
    return this.#inTurn(async () => {
      const prepared = await this.#parts.reloader.prepareData(trigger)
      const workers = await this.#prepareWorkers(trigger, prepared, 'prepareData')
      await prepared.commit()
      await this.#commitWorkers(workers)
    })
  }

  /** Gives a worker that started with an earlier configuration the one in force, also when that changes at this moment. */
  bringUpToDate(worker: ReadyWorker, generation: number): Promise<void> {
    return this.#inTurn(async () => {
      if (generation === this.generation) return
      worker.isReading = true
      try {
        await worker.exchange.callWith({ timeoutMs: PREPARE_MS }, 'prepareReload', this.files, this.#parts.reloader.tls)
        await worker.exchange.call('commitReload', this.#parts.tables?.())
      } catch (error) {
        this.#parts.log.error({ slot: worker.slot, err: error }, 'a worker could not read the configuration in force: it is started again')
        worker.kill()
      } finally {
        worker.isReading = false
      }
    })
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    this.#last = this.#last.catch(() => undefined).then(step)
    return this.#last
  }

  /** @throws {ConfigError} which is recorded. */
  #filesNow(trigger: ReloadTrigger): readonly ConfigFile[] {
    try {
      return configFiles(this.#parts.source.path)
    } catch (error) {
      this.#parts.reloader.fail(trigger, error as Error)
      throw error
    }
  }

  async #prepareWorkers(
    trigger: ReloadTrigger,
    { data, discard }: PreparedReload,
    method: string,
    ...args: readonly unknown[]
  ): Promise<readonly ReadyWorker[]> {
    const { workers, reloader } = this.#parts
    const { ready } = workers
    try {
      const prepared = await Promise.all(ready.map((worker) => hasPrepared(worker, data, method, args)))
      if (!prepared.every(Boolean)) throw new RangeError('the files changed while they were read')
      return ready
    } catch (error) {
      discard()
      await workers.call('discardReload')
      reloader.fail(trigger, error as Error, method === 'prepareData' ? 'data' : 'files')
      throw error
    }
  }

  /**
   * A worker that has become ready meanwhile is not among them: it is brought up to date in its turn. One that cannot commit is ended, as it would
   * go on with another configuration than the others.
   */
  async #commitWorkers(workers: readonly ReadyWorker[]): Promise<void> {
    this.generation++
    const tables = this.#parts.tables?.()
    await Promise.all(
      workers.map((worker) => worker.exchange.callWith({ timeoutMs: PREPARE_MS }, 'commitReload', tables).catch(() => worker.kill())),
    )
  }
}

/**
 * Whether the worker has prepared what this process has. One that does not answer is ended, and replaced by one that reads the files again.
 *
 * @throws {RangeError} when it has no memory for it.
 */
async function hasPrepared(worker: ReadyWorker, data: string, method: string, args: readonly unknown[]): Promise<boolean> {
  worker.isReading = true
  try {
    return (await worker.exchange.callWith<string>({ timeoutMs: PREPARE_MS }, method, ...args)) === data
  } catch (error) {
    if (error instanceof RangeError) throw error
    worker.kill()
    return true
  } finally {
    worker.isReading = false
  }
}
