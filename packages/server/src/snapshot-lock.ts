import { randomUUID } from 'node:crypto'
import { existsSync, lstatSync, readFileSync, readlinkSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { readBytes } from 'sluicegate-config/read-file.js'

/** Between two signs of life of the owner. */
const BEAT_MS = 2_000
/** Without a sign of life for so long the owner is gone. */
const GONE_MS = 3 * BEAT_MS
const MAX_BYTES = 10_000

/** Why a file cannot be the snapshot of this service, for people. */
export class SnapshotPlaceError extends Error {
  override readonly name = 'SnapshotPlaceError'
}

/** Who has a lock. */
interface Owner {
  readonly id: string
  readonly host: string
  /** In which its number is the one of one process: that of a container, for example. */
  readonly space: string
  readonly pid: number
  /** What tells a process from a later one with its number; empty where the system does not say. */
  readonly born: string
  /** Counts signs of life. */
  readonly beat: number
}

/**
 * The right to write a snapshot, which one service has at a time: a file beside it that names the owner, and changes every two seconds as a sign of
 * life. So the lock of a process that was killed ends by itself, also on another machine that shares the folder.
 */
export class SnapshotLock {
  readonly #snapshot: string
  readonly #file: string
  readonly #waits: (text: string) => void
  #owner: Owner = { id: randomUUID(), host: hostname(), space: SPACE, pid: process.pid, born: bornOf(process.pid), beat: 0 }
  #beating: NodeJS.Timeout | undefined

  private constructor(snapshot: string, waits: (text: string) => void) {
    this.#snapshot = snapshot
    this.#waits = waits
    this.#file = `${snapshot}.lock`
  }

  /**
   * Takes the lock of a snapshot.
   *
   * @param snapshot the file itself, not a link to it: another service may know it by another name.
   * @param waits told why it takes some seconds, where it does.
   * @throws {SnapshotPlaceError} when a service has it, and for what is no lock.
   */
  static async take(snapshot: string, waits: (text: string) => void): Promise<SnapshotLock> {
    const lock = new SnapshotLock(snapshot, waits)
    await lock.#take()
    lock.#beating = setInterval(() => void lock.#beat(), BEAT_MS).unref()
    return lock
  }

  /** Whether it is still the own one: a service that stood still for long may have lost it. One that was removed is taken again. */
  async isHeld(): Promise<boolean> {
    if (!existsSync(this.#file)) await this.#take()
    return ownerIn(this.#file)?.id === this.#owner.id
  }

  async release(): Promise<void> {
    clearInterval(this.#beating)
    if (ownerIn(this.#file)?.id === this.#owner.id) await rm(this.#file, { force: true })
  }

  async #take(): Promise<void> {
    for (;;) {
      try {
        await writeFile(this.#file, JSON.stringify(this.#owner), { flag: 'wx', mode: 0o600 })
        return
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        // On a full disk the service starts all the same, and takes it when there is room.
        if (code === 'ENOSPC' || code === 'EDQUOT') {
          await rm(this.#file, { force: true })
          return
        }
        if (code !== 'EEXIST') throw new SnapshotPlaceError(`${this.#snapshot} cannot be locked: ${(error as Error).message}`)
      }
      const found = lstatSync(this.#file, { throwIfNoEntry: false })
      // It ended at this moment.
      if (found === undefined) continue
      // Nobody's sign of life can change what is no file.
      if (!found.isFile()) throw new SnapshotPlaceError(`${this.#snapshot} cannot be locked: ${this.#file} is no file; remove it`)
      const owner = ownerIn(this.#file)
      if (!(await isGone(owner, this.#file, this.#waits))) {
        const who = owner === undefined ? '' : ` by process ${owner.pid} on ${owner.host}`
        throw new SnapshotPlaceError(`${this.#snapshot} is in use${who}: give each service a file of its own`)
      }
      // Moved away first, so that of several that see it abandoned one takes it.
      const abandoned = `${this.#file}.${this.#owner.id}`
      try {
        await rename(this.#file, abandoned)
        await rm(abandoned, { force: true })
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue
        throw new SnapshotPlaceError(`${this.#snapshot} cannot be locked: ${(error as Error).message}`)
      }
    }
  }

  async #beat(): Promise<void> {
    const next = `${this.#file}.${this.#owner.id}`
    try {
      if (!(await this.isHeld())) return
      this.#owner = { ...this.#owner, beat: this.#owner.beat + 1 }
      await writeFile(next, JSON.stringify(this.#owner), { mode: 0o600 })
      await rename(next, this.#file)
    } catch {
      // The folder cannot be written at the moment: the snapshot itself says so.
      await rm(next, { force: true }).catch(() => undefined)
    }
  }
}

/** Whether the owner of a lock does not live any more. Of a process beside this one that is known at once; of others signs of life are awaited. */
async function isGone(owner: Owner | undefined, file: string, waits: (text: string) => void): Promise<boolean> {
  if (owner?.host === hostname() && owner.space === SPACE) {
    if (!isAlive(owner.pid)) return true
    const born = bornOf(owner.pid)
    if (born !== '') return born !== owner.born
  }
  const whose = owner === undefined ? 'names no service' : `is of process ${owner.pid} on ${owner.host}`
  waits(`${file} ${whose}: waiting ${GONE_MS / 1_000} s for a sign of life`)
  for (let waited = 0; waited < GONE_MS; waited += BEAT_MS / 4) {
    await wait(BEAT_MS / 4)
    const now = ownerIn(file)
    if (now?.id !== owner?.id || now?.beat !== owner?.beat) return now === undefined
  }
  return true
}

function ownerIn(file: string): Owner | undefined {
  try {
    const owner = JSON.parse(readBytes(file, MAX_BYTES).toString()) as Owner | null
    return typeof owner?.id === 'string' ? owner : undefined
  } catch {
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

const SPACE = spaceOf()

/** The namespace of processes under Linux; empty elsewhere. */
function spaceOf(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return ''
  }
}

/** When a process began, by the clock of Linux; empty elsewhere. `ended` for one that is dead, and of which its parent has not heard. */
function bornOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // From the 3rd field on; the second may have spaces in it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? 'ended' : (fields[19] ?? '')
  } catch {
    return ''
  }
}
