import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { filesOf } from './read-config.js'

/** Notices that the files of a configuration have changed. A change must be the same at two looks, since a file may be half written at the first. */
export class FileWatch {
  readonly #path: string
  #noted: string
  #seen: string | undefined

  constructor(path: string) {
    this.#path = path
    this.#noted = this.#look()
  }

  /** The files as they are now are known. */
  note(): void {
    this.#noted = this.#look()
  }

  /** Whether the files have changed since {@link FileWatch.note}, and are the same as at the look before. */
  hasSettledChange(): boolean {
    const signature = this.#look()
    const isSettled = signature === this.#seen
    this.#seen = signature
    return isSettled && signature !== this.#noted
  }

  /** What changes with every change of the files: their names, sizes, times and inodes. */
  #look(): string {
    const hash = createHash('sha256')
    try {
      for (const file of filesOf(this.#path)) {
        const { ino, size, mtimeMs, ctimeMs } = statSync(file)
        hash.update(JSON.stringify([file, ino, size, mtimeMs, ctimeMs]))
      }
    } catch (error) {
      hash.update(String(error))
    }
    return hash.digest('hex')
  }
}
