import { open, readFile, rename, rm } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Engine } from './engine/engine.js'
import { CALL_RATES, readSnapshot, type SavedPolicy, SnapshotError, snapshotParts } from './engine/snapshot-file.js'
import type { Log } from './log.js'
import type { Part } from './part.js'

/** What became of snapshots, for metrics. */
export interface SnapshotState {
  /** Unix time in milliseconds; undefined before the first one. */
  readonly lastSuccessMs: number | undefined
  readonly hasFailed: boolean
}

/** Keys of policies in memory, written to a file again and again, so that a restart hands out no fresh bursts. */
export class Snapshots implements Part {
  readonly name = 'snapshots'
  readonly #file: string
  readonly #everyMs: number
  readonly #engine: Engine
  readonly #log: Log
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #state: SnapshotState = { lastSuccessMs: undefined, hasFailed: false }

  /** @param everyMs between two of them; one more is written at the end. */
  constructor(file: string, everyMs: number, engine: Engine, log: Log) {
    this.#file = file
    this.#everyMs = everyMs
    this.#engine = engine
    this.#log = log
  }

  get state(): SnapshotState {
    return this.#state
  }

  ready(): void {
    this.#timer = setInterval(() => void this.write(), this.#everyMs).unref()
  }

  /** Writes the last one, unless the service never was ready: its keys are those of the file. */
  async stop(): Promise<void> {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    await this.write()
  }

  /** Writes a snapshot, after one that is being written. A failure is logged: the service goes on. */
  async write(): Promise<void> {
    await this.#writing
    this.#writing = this.#write()
    await this.#writing
  }

  async #write(): Promise<void> {
    try {
      await replaceFile(this.#file, snapshotParts(await this.#saved()))
      this.#state = { lastSuccessMs: Date.now(), hasFailed: false }
    } catch (error) {
      this.#state = { ...this.#state, hasFailed: true }
      this.#log.error({ err: error, file: this.#file }, 'the snapshot could not be written')
    }
  }

  /** One policy in each turn of the event loop, so that requests are answered in between. */
  async #saved(): Promise<SavedPolicy[]> {
    const saved: SavedPolicy[] = []
    for (const served of this.#engine.policies) {
      const bytes = served.snapshot()
      const { maxKeys, growTo, onFull } = served.config
      if (bytes !== undefined) saved.push({ name: served.name, maxKeys, growTo, onFull, bytes })
      for (const [tier, bytes] of served.tierSnapshots()) {
        const { maxKeys, growTo, onFull } = served.config
        saved.push({ name: served.name, tier, maxKeys, growTo, onFull, bytes })
        await nextTurn()
      }
      await nextTurn()
    }
    const { maxKeys, growTo } = this.#engine.callRates.room
    const rates = this.#engine.callRates.snapshot()
    if (rates !== undefined) saved.push({ name: CALL_RATES, maxKeys, growTo, onFull: 'evict', bytes: rates })
    return saved
  }
}

/**
 * The policies in a snapshot; none when there is no file. A damaged one is reported, and kept under another name so that the next one does
 * not overwrite it.
 */
export async function savedPolicies(file: string, log: Log): Promise<SavedPolicy[]> {
  try {
    return readSnapshot(await readFile(file))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    if (!(error instanceof SnapshotError)) throw error
    const kept = `${file}.damaged`
    await rename(file, kept)
    log.error({ file, kept, reason: error.message }, 'the snapshot cannot be used: all keys start full')
    return []
  }
}

/** The file is the old one or the new one, whatever happens meanwhile. Only this user may read it. */
async function replaceFile(file: string, parts: readonly Uint8Array[]): Promise<void> {
  const next = `${file}.next`
  const handle = await open(next, 'w', 0o600)
  try {
    try {
      for (const part of parts) await handle.writeFile(part)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(next, file)
  } catch (error) {
    // On a full disk it is the part that takes the room.
    await rm(next, { force: true })
    throw error
  }
}
