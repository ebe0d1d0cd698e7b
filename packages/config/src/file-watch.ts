import { createHash } from 'node:crypto'
import { type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { filesOf } from './read-config.js'

/**
 * Notices that the files of a configuration have changed, and others that it names. A change must be the same at two looks, since a file may be half
 * written at the first.
 */
export class FileWatch {
  readonly #path: string
  #others: readonly string[] = []
  #noted: string
  #seen: string | undefined

  constructor(path: string, others: readonly string[] = []) {
    this.#path = path
    this.#others = others
    this.#noted = this.#lookNow()
  }

  /** The files as they are now are known. */
  note(): void {
    this.#noted = this.#lookNow()
  }

  /** Looks at these as well, which are known as they are now. */
  with(others: readonly string[]): void {
    if (others.join('\n') === this.#others.join('\n')) return
    this.#others = others
    this.note()
  }

  /** Whether the files have changed since {@link FileWatch.note}, and are the same as at the look before. */
  async hasSettledChange(): Promise<boolean> {
    const now = await this.#look()
    const isSettled = now === this.#seen
    this.#seen = now
    return isSettled && now !== this.#noted
  }

  /** What changes with every change of the files: their names, sizes, times and inodes. */
  #lookNow(): string {
    return signature(() => this.#files().map((file) => [file, statSync(file)]))
  }

  /** The same for a folder that may be slow: it is looked at again and again. */
  async #look(): Promise<string> {
    const found: (readonly [string, Stats])[] = []
    try {
      for (const file of this.#files()) found.push([file, await stat(file)])
    } catch (error) {
      return String(error)
    }
    return signature(() => found)
  }

  #files(): string[] {
    return [...filesOf(this.#path), ...this.#others]
  }
}

function signature(look: () => readonly (readonly [string, Stats])[]): string {
  try {
    const hash = createHash('sha256')
    for (const [file, { ino, size, mtimeMs, ctimeMs }] of look()) hash.update(JSON.stringify([file, ino, size, mtimeMs, ctimeMs]))
    return hash.digest('hex')
  } catch (error) {
    return String(error)
  }
}
