import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { filesOf } from './read-config.js'

/**
 * Notices that the files of a configuration have changed, and others that it names. A change must be the same at two looks, since a file may be half
 * written at the first.
 */
export class FileWatch {
  readonly #path: string
  #others: readonly string[] = []
  #noted: string | Promise<string>
  #seen: string | undefined

  constructor(path: string, others: readonly string[] = []) {
    this.#path = path
    this.#others = others
    this.#noted = this.#look()
  }

  /** The files as they are now are known. */
  async note(): Promise<void> {
    this.#noted = this.#look()
    await this.#noted
  }

  /** Looks at these as well, which are known as they are now. */
  with(others: readonly string[]): void {
    if (others.join('\n') === this.#others.join('\n')) return
    this.#others = others
    void this.note()
  }

  /** Whether the files have changed since {@link FileWatch.note}, and are the same as at the look before. */
  async hasSettledChange(): Promise<boolean> {
    const signature = await this.#look()
    const isSettled = signature === this.#seen
    this.#seen = signature
    return isSettled && signature !== (await this.#noted)
  }

  /** What changes with every change of the files: their names, sizes, times and inodes. */
  async #look(): Promise<string> {
    const hash = createHash('sha256')
    try {
      for (const file of [...filesOf(this.#path), ...this.#others]) {
        const { ino, size, mtimeMs, ctimeMs } = await stat(file)
        hash.update(JSON.stringify([file, ino, size, mtimeMs, ctimeMs]))
      }
    } catch (error) {
      hash.update(String(error))
    }
    return hash.digest('hex')
  }
}
