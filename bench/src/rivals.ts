import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** The folder with the rivals' own package.json and lockfile. */
export const VERSUS = fileURLToPath(new URL('../versus/', import.meta.url))

const requireThere = createRequire(`${VERSUS}package.json`)

/** A rival's module. Its types are not there when this is compiled, so each caller says what it expects. */
export function requireRival(name: string): unknown {
  try {
    return requireThere(name)
  } catch (error) {
    throw new Error(`no ${name} in bench/versus: npm test and npm run bench install what is used there`, { cause: error })
  }
}

/** The versions of all rivals as their package.json pins them. */
export function rivalVersions(): Readonly<Record<string, string>> {
  return (requireThere('./package.json') as { dependencies: Record<string, string> }).dependencies
}

/** Runs `npm ci` in the rivals' folder unless what is there fits its lockfile. */
export function installRivals(): void {
  const digest = createHash('sha256')
    .update(readFileSync(`${VERSUS}package-lock.json`))
    .digest('hex')
  const stamp = `${VERSUS}node_modules/.installed-for`
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return
  console.error('installing the rivals in bench/versus ...')
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: VERSUS, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error('npm ci in bench/versus failed: the rivals cannot be measured')
  writeFileSync(stamp, digest)
}
