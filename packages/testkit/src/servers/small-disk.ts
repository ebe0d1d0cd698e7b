import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PIECE = new Uint8Array(64 * 1024).fill(1)
/** The last bytes are used up in small pieces. */
const CRUMB = PIECE.subarray(0, 512)

/** A small file system in memory, which only root can make. It can be filled to the last byte. */
export class SmallDisk {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluicegate-disk-'))

  /** @throws {Error} when it cannot be mounted */
  constructor(mebibytes: number) {
    const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=1777`, 'tmpfs', this.folder])
    if (status === 0) return
    rmSync(this.folder, { recursive: true })
    throw new Error(`no file system in memory: ${stderr}`)
  }

  /** Leaves no byte free. */
  fill(): void {
    const file = openSync(this.filler, 'a')
    for (const piece of [PIECE, CRUMB]) {
      try {
        for (;;) writeSync(file, piece)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      }
    }
    closeSync(file)
  }

  free(): void {
    rmSync(this.filler, { force: true })
  }

  remove(): void {
    spawnSync('umount', ['--lazy', this.folder])
    rmSync(this.folder, { recursive: true, force: true })
  }

  [Symbol.dispose](): void {
    this.remove()
  }

  private get filler(): string {
    return join(this.folder, 'filler')
  }
}
