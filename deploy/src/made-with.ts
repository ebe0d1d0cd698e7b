import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

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

/** Runs `npm ci` in the folder unless what is there fits its lockfile. */
export function installIn(folder: Installed): void {
  const home = `${ROOT}${folder}/`
  const digest = createHash('sha256')
    .update(readFileSync(`${home}package-lock.json`))
    .digest('hex')
  const stamp = `${home}node_modules/.installed-for`
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return
  console.error(`installing what ${folder}/package.json names ...`)
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: home, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`npm ci in the folder ${folder} failed`)
  writeFileSync(stamp, digest)
}

/** The version of what is built. */
export function version(): string {
  return JSON.parse(readFileSync(`${ROOT}packages/server/package.json`, 'utf8')).version
}
