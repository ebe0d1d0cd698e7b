import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Where Debian puts the programs of each version. */
const DEBIAN = '/usr/lib/postgresql'

/** A program of PostgreSQL: of the newest version that Debian installed, else by its name. */
export function postgresProgram(name: string): string {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : []
  const found = versions.map((version) => join(DEBIAN, version, 'bin', name)).find(existsSync)
  return found ?? name
}

/** The user that runs servers which refuse root. */
const USER = 'postgres'

/** A command line that runs as no root; the process has the id of the program itself. */
export function withoutRoot(program: string, args: readonly string[]): readonly [string, readonly string[]] {
  if (process.getuid?.() !== 0) return [program, args]
  return ['setpriv', [`--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', program, ...args]]
}
