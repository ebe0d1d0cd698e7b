import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { librariesOf } from '../executable/executable.js'

/** A folder in which a program finds nothing but itself and its libraries. */
export interface EmptyRoot {
  readonly path: string
  /** The command that runs the program there. */
  command(...args: string[]): string[]
  write(name: string, text: string): void
}

export function emptyRoot(executable: string): EmptyRoot {
  const path = mkdtempSync(join(tmpdir(), 'sluicegate-root-'))
  for (const file of librariesOf(executable)) {
    mkdirSync(dirname(path + file), { recursive: true })
    copyFileSync(realpathSync(file), path + file)
  }
  copyFileSync(executable, join(path, 'sluicegate'))
  return {
    path,
    command: (...args) => ['/usr/sbin/chroot', path, '/sluicegate', ...args],
    write: (name, text) => writeFileSync(join(path, name), text),
  }
}
