import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** The folder with the generator's own package.json and lockfile, its settings and the pages that only the site has. */
export const SITE = fileURLToPath(new URL('../', import.meta.url))
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Where the built site stands. */
export const BUILT = `${ROOT}.cache/site`

const requireThere = createRequire(`${SITE}package.json`)

/** Where a file of the generator's packages is. */
export function pathThere(name: string): string {
  return requireThere.resolve(name)
}

/** Runs `npm ci` in the folder of the site unless what is there fits its lockfile. */
export function installGenerator(): void {
  const digest = createHash('sha256')
    .update(readFileSync(`${SITE}package-lock.json`))
    .digest('hex')
  const stamp = `${SITE}node_modules/.installed-for`
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return
  console.error('installing the generator of the site ...')
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: SITE, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error('npm ci in the folder site failed: the site cannot be built')
  writeFileSync(stamp, digest)
}
