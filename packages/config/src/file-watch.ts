import { createHash } from 'node:crypto'
import { type Stats, statSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { Looks } from './looks.js'
import { filesIn, filesOf } from './read-config.js'

/**
 * Notices that the files of a configuration have changed, and others that it names. A change must be the same at two looks, since a file may be half
 * written at the first. A folder over a network that does not answer holds up its looks, and nothing else.
 */
export class FileWatch {
  readonly #path: string
  #others: readonly string[] = []
  readonly #looks = new Looks()
  #noted: string
  #seen: string | undefined

  /** The files as they are now are known: it looks at once, as those have that were just read. */
  constructor(path: string, others: readonly string[] = []) {
    this.#path = path
    this.#others = others
    this.#noted = lookedAt(() => [...filesOf(path), ...others].map((file) => [file, statSync(file)]))
  }

  /** The same later. */
  async note(): Promise<void> {
    this.#noted = await this.#look()
  }

  /** Looks at these as well, which are known as they are now. */
  async with(others: readonly string[]): Promise<void> {
    if (others.join('\n') === this.#others.join('\n')) return
    this.#others = others
    await this.note()
  }

  /** Whether the files have changed since {@link FileWatch.note}, and are the same as at the look before. */
  async hasSettledChange(): Promise<boolean> {
    const now = await this.#look()
    const isSettled = now === this.#seen
    this.#seen = now
    return isSettled && now !== this.#noted
  }

  #look(): Promise<string> {
    return this.#looks.look(async () => {
      const found: (readonly [string, Stats])[] = []
      for (const file of [...(await filesNow(this.#path)), ...this.#others]) found.push([file, await stat(file)])
      return lookedAt(() => found)
    })
  }
}

/** {@link filesOf}, beside this thread. */
async function filesNow(path: string): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path]
  const found = await Promise.all(filesIn(path, await readdir(path)).map(async (file) => [file, await stat(file)] as const))
  return found.flatMap(([file, stats]) => (stats.isDirectory() ? [] : [file])).sort()
}

/** What changes with every change of the files: their names, sizes, times and inodes. */
function lookedAt(look: () => readonly (readonly [string, Stats])[]): string {
  try {
    const hash = createHash('sha256')
    for (const [file, { ino, size, mtimeMs, ctimeMs }] of look()) hash.update(JSON.stringify([file, ino, size, mtimeMs, ctimeMs]))
    return hash.digest('hex')
  } catch (error) {
    return String(error)
  }
}
