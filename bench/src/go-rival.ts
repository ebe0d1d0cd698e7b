import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { LineProcess } from './line-process.js'
import { VERSUS } from './rivals.js'

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
