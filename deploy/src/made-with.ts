import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { installFolder } from 'sluicegate-testkit/installed-folder.js'

/** The checkout. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Where what is built here stands. */
export const BUILT = `${ROOT}.cache/deploy/`

/** Folders with a package.json and a lockfile of their own: what is built with, and what only tests use. */
export type Installed = 'deploy' | 'deploy/tested-with'

/** Where a file of the packages is that only such a folder installs. */
export function pathThere(name: string, folder: Installed = 'deploy'): string {
  return createRequire(`${ROOT}${folder}/package.json`).resolve(name)
}

/** Imports one of the packages that only such a folder installs. */
export async function importThere<Exports>(name: string, folder: Installed = 'deploy'): Promise<Exports> {
  return (await import(pathThere(name, folder))) as Exports
}

/** Installs what the folder's package.json names. */
export function installIn(folder: Installed): void {
  installFolder(`${ROOT}${folder}/`)
}

/** The version of what is built. */
export function version(): string {
  return JSON.parse(readFileSync(`${ROOT}packages/server/package.json`, 'utf8')).version
}

/**
 * Seconds since 1970 that archives state as the time of their files: those of `SOURCE_DATE_EPOCH`, else of the last commit. The same sources
 * give the same bytes.
 */
export function sourceDateS(): number {
  const named = process.env.SOURCE_DATE_EPOCH
  if (named !== undefined) return Number(named)
  return Number(spawnSync('git', ['log', '-1', '--format=%ct'], { cwd: ROOT, encoding: 'utf8' }).stdout)
}
