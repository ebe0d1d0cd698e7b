import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'

/**
 * Runs `npm ci` in a folder with a package.json and a lockfile that are not part of the workspace, unless what is there fits the lockfile.
 *
 * @param folder its path, with a slash at the end.
 * @throws {Error} when npm fails; it has printed why.
 */
export function installFolder(folder: string): void {
  const digest = createHash('sha256')
    .update(readFileSync(`${folder}package-lock.json`))
    .digest('hex')
  const stamp = `${folder}node_modules/.installed-for`
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return
  const shown = relative(process.cwd(), folder)
  console.error(`installing what ${shown}/package.json names ...`)
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`npm ci in ${shown} failed`)
  writeFileSync(stamp, digest)
}
