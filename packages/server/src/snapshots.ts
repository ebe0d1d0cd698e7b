import { open, readlink, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { readBytes, replaceFault } from 'sluicegate-config/read-file.js'
import type { Engine } from './engine/engine.js'
import { CALL_RATES, isAnotherFile, readSnapshot, type SavedPolicy, SnapshotError, snapshotParts } from './engine/snapshot-file.js'
import type { Log } from './log.js'
import type { Part } from './part.js'
import { SnapshotLock, SnapshotPlaceError } from './snapshot-lock.js'

/** The longest file that can be read. */
const MAX_BYTES = 2 ** 31 - 1
const MOST_LINKS = 40
/** Keys of a policy that no configuration has had for so long are dropped. */
const LEFT_OUT_MS = 7 * 86_400_000

/** The file of snapshots, which this service alone uses, and the keys in it. */
export interface SnapshotFile {
  readonly file: string
  readonly lock: SnapshotLock
  readonly saved: readonly SavedPolicy[]
}

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
  readonly #lock: SnapshotLock
  readonly #everyMs: number
  readonly #engine: Engine
  readonly #log: Log
  readonly #startedMs = Date.now()
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #state: SnapshotState = { lastSuccessMs: undefined, hasFailed: false }

  /** @param everyMs between two of them; one more is written at the end. */
  constructor({ file, lock }: SnapshotFile, everyMs: number, engine: Engine, log: Log) {
    this.#file = file
    this.#lock = lock
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
    clearInterval(this.#timer)
    if (this.#timer !== undefined) await this.write()
    await this.#lock.release()
  }

  /** Writes a snapshot, after one that is being written. A failure is logged: the service goes on. */
  async write(): Promise<void> {
    await this.#writing
    this.#writing = this.#write()
    await this.#writing
  }

  async #write(): Promise<void> {
    try {
      if (!(await this.#lock.isHeld())) throw new SnapshotPlaceError('another service has taken the file, or its lock was removed')
      await replaceFile(this.#file, snapshotParts(await this.#saved()))
      this.#state = { lastSuccessMs: Date.now(), hasFailed: false }
    } catch (error) {
      this.#state = { ...this.#state, hasFailed: true }
      this.#log.error({ err: error, file: this.#file }, 'the snapshot could not be written')
    }
  }

  /** Keys of policies and tiers that are left out of the configuration: a mistake in it, or an older one, does not hand out fresh bursts. */
  #leftOut(served: readonly SavedPolicy[]): SavedPolicy[] {
    for (const { name, tier } of served) this.#engine.forget(name, tier)
    const nowMs = Date.now()
    return Array.from(this.#engine.leftOut).flatMap((saved) => {
      const { leftOutMs = this.#startedMs } = saved
      if (nowMs - leftOutMs < LEFT_OUT_MS) return [{ ...saved, leftOutMs }]
      this.#engine.forget(saved.name, saved.tier)
      return []
    })
  }

  /** One policy in each turn of the event loop, so that requests are answered in between. */
  async #saved(): Promise<SavedPolicy[]> {
    const saved: SavedPolicy[] = []
    for (const served of this.#engine.policies) {
      for (const _ of served.carrying()) await nextTurn()
      let former = 0
      for (const before of served.formerSnapshots()) {
        const { maxKeys, onFull } = served.config
        saved.push({ name: served.name, former: ++former, maxKeys, onFull, ...before })
        await nextTurn()
      }
      // After those from which keys come: one that is used meanwhile is in both, and not in neither.
      const bytes = served.snapshot()
      const { maxKeys, onFull } = served.config
      if (bytes !== undefined) saved.push({ name: served.name, maxKeys, onFull, bytes })
      for (const tier of served.tierSnapshots()) {
        const { maxKeys, onFull } = served.config
        saved.push({ name: served.name, maxKeys, onFull, ...tier })
        await nextTurn()
      }
      await nextTurn()
    }
    const { maxKeys } = this.#engine.callRates.room
    const rates = this.#engine.callRates.snapshot()
    if (rates !== undefined) saved.push({ name: CALL_RATES, maxKeys, onFull: 'evict', bytes: rates })
    return [...saved, ...this.#leftOut(saved)]
  }
}

/**
 * Takes the file for this service, and reads it.
 *
 * @throws {SnapshotPlaceError} when another service has it, and for what is no file of its own: a rename would put one in the place of a device.
 */
export async function openSnapshots(name: string, log: Log): Promise<SnapshotFile> {
  const fault = replaceFault(name)
  if (fault !== undefined) throw new SnapshotPlaceError(`${name} ${fault}`)
  const file = await fileOf(name)
  const lock = await SnapshotLock.take(file, (text) => log.warn({ file }, text))
  try {
    return { file, lock, saved: await savedPolicies(file, log) }
  } catch (error) {
    await lock.release()
    throw error
  }
}

/** The file that a name leads to, over links of it and of its folders, also while it is not there. */
async function fileOf(name: string, links = 0): Promise<string> {
  try {
    return await realpath(name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || links === MOST_LINKS)
      throw new SnapshotPlaceError(`${name}: ${(error as Error).message}`)
  }
  const folder = await realpath(dirname(name)).catch((error: Error) => {
    throw new SnapshotPlaceError(`${name}: ${error.message}`)
  })
  const target = await readlink(name).catch(() => undefined)
  return target === undefined ? join(folder, basename(name)) : fileOf(resolve(folder, target), links + 1)
}

/**
 * The policies in a snapshot; none when there is no file. A damaged one is reported, and kept under another name so that the next one does
 * not overwrite it.
 */
async function savedPolicies(file: string, log: Log): Promise<SavedPolicy[]> {
  const bytes = bytesOf(file)
  if (bytes === undefined) return []
  if (isAnotherFile(bytes))
    throw new SnapshotPlaceError(`${file} is no snapshot, and would be replaced: give the snapshot a file of its own`)
  try {
    return readSnapshot(bytes)
  } catch (error) {
    if (!(error instanceof SnapshotError)) throw error
    const kept = `${file}.damaged`
    const fault = replaceFault(kept)
    if (fault !== undefined) throw new SnapshotPlaceError(`${kept} ${fault}`)
    await rename(file, kept)
    log.error({ file, kept, reason: error.message }, 'the snapshot cannot be used: all keys start full')
    return []
  }
}

/** Undefined when there is no file. @throws {SnapshotPlaceError} */
function bytesOf(file: string): Buffer | undefined {
  try {
    return readBytes(file, MAX_BYTES)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new SnapshotPlaceError(`${file} cannot be read: ${(error as Error).message}`)
  }
}

/** The file is the old one or the new one, whatever happens meanwhile. Only this user may read it. */
async function replaceFile(file: string, parts: Iterable<Uint8Array>): Promise<void> {
  const fault = replaceFault(file)
  if (fault !== undefined) throw new SnapshotPlaceError(`${file} ${fault}`)
  const next = `${file}.next`
  // A pipe or a link of that name is not written to.
  await rm(next, { force: true })
  const handle = await open(next, 'wx', 0o600)
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
