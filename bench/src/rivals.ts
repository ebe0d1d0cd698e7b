import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { installFolder } from 'sluicegate-testkit/installed-folder.js'
import { LineProcess } from './line-process.js'

/** The folder with the rivals' own package.json and lockfile. */
const VERSUS = fileURLToPath(new URL('../versus/', import.meta.url))

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

/** Installs the rivals that are measured. */
export function installRivals(): void {
  installFolder(VERSUS)
}

export type GoLimiter = 'cas' | 'cas-coarse' | 'rate'

const FOLDER = `${VERSUS}go/`
const BINARY = `${FOLDER}.cache/rival`
const PACKAGES = ['golang-go', 'golang-golang-x-time-dev']
/** Debian's Go libraries live here; nothing is downloaded. */
const GO_ENV = { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOFLAGS: '' }

let built: boolean | undefined

/** Builds the Go program once. False, with a line that says why, where that cannot be done. */
export function buildGoRival(): boolean {
  built ??= build()
  return built
}

/** The version of Go, or undefined where there is none. */
export function goVersion(): string | undefined {
  const { status, stdout } = spawnSync('go', ['version'], { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

/** The rival in its own process, one hot key. */
export function startGoRival(limiter: GoLimiter, goroutines: number, repeatMs: number): Promise<LineProcess> {
  const args = ['-limiter', limiter, '-goroutines', String(goroutines), '-ms', String(repeatMs)]
  return LineProcess.start(`Go ${limiter}`, BINARY, args)
}

function build(): boolean {
  if (goVersion() === undefined && !installGo()) return false
  mkdirSync(`${FOLDER}.cache`, { recursive: true })
  const { status } = spawnSync('go', ['build', '-o', BINARY, '.'], { cwd: FOLDER, stdio: 'inherit', env: GO_ENV })
  if (status !== 0) console.error('the Go rivals did not build: their rows are left out')
  return status === 0
}

function installGo(): boolean {
  if (process.getuid?.() === 0) {
    console.error(`installing ${PACKAGES.join(' and ')} for the rivals in Go ...`)
    const { status } = spawnSync('apt-get', ['install', '-y', '-q', ...PACKAGES], { stdio: ['ignore', 'ignore', 'inherit'] })
    if (status === 0) return true
  }
  console.error(`no Go here: rows against it are left out; apt-get install ${PACKAGES.join(' ')} brings them`)
  return false
}
