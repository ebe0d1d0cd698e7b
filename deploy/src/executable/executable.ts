import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BUILT, type Component, componentOfNode, componentsOfPackages, importThere, installIn, pathThere, ROOT } from '../software.js'
import { oneScript } from './one-script.js'

const LICENCE_FILE = /^(?:licen[cs]e|copying)(?:\.(?:md|txt))?$/i

/** The texts of the licences of Sluicegate, Node.js and each package that is in the executable, each under its name. */
function licencesOf(runtime: string, packages: readonly string[]): string {
  const parts = [ROOT, runtime, ...packages.map((folder) => `${ROOT}${folder}/`)].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'))
    return `${name} ${version}\n\n${textOf(folder) ?? `License: ${license}`}`
  })
  return `${parts.map((part) => part.trimEnd()).join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

function textOf(folder: string): string | undefined {
  const file = readdirSync(folder).find((name) => LICENCE_FILE.test(name) && existsSync(`${folder}${name}`))
  return file === undefined ? undefined : readFileSync(`${folder}${file}`, 'utf8')
}

/** Where Node.js looks for the program that an executable contains. */
const SECTION = 'NODE_SEA_BLOB'
/** A text in the executable of Node.js that says whether it contains one. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

const SCRIPT = 'sluicegate.cjs'
const BLOB = 'sluicegate.blob'

/** What was built. */
export interface Executable {
  readonly path: string
  readonly bytes: number
  /** The licences of all that is in it. */
  readonly licences: string
  readonly components: readonly Component[]
}

/**
 * Builds `sluicegate` as one file: Node.js of the version that this folder pins, without its symbols, and the program in it. The same sources
 * give the same bytes.
 *
 * @throws where Node.js has no binary for this processor on npm, or `strip` of binutils is missing.
 */
export async function buildExecutable(): Promise<Executable> {
  installIn('deploy')
  mkdirSync(BUILT, { recursive: true })
  const runtime = pathThere(`node-linux-${process.arch}/package.json`).replace('package.json', '')
  const { code, packages } = await oneScript(programOfPackage())
  const path = `${BUILT}sluicegate`
  writeFileSync(`${BUILT}${SCRIPT}`, code)
  const settings = { main: SCRIPT, output: BLOB, disableExperimentalSEAWarning: true, assets: { script: SCRIPT } }
  writeFileSync(`${BUILT}sea.json`, JSON.stringify(settings))
  // Within the folder: the path of the script becomes part of the executable.
  execFileSync(`${runtime}bin/node`, ['--experimental-sea-config', 'sea.json'], { cwd: BUILT, stdio: 'pipe' })
  copyFileSync(`${runtime}bin/node`, path)
  execFileSync('strip', [path])
  const { inject } = await importThere<Postject>('postject')
  await withoutWarnings(() => inject(path, SECTION, readFileSync(`${BUILT}${BLOB}`), { sentinelFuse: FUSE }))
  const { version } = JSON.parse(readFileSync(`${runtime}package.json`, 'utf8'))
  const components = [componentOfNode(version), ...componentsOfPackages(packages)]
  return { path, bytes: statSync(path).size, licences: licencesOf(runtime, packages), components }
}

/** What `npx sluicegate-server` would run. */
function programOfPackage(): string {
  const { bin } = JSON.parse(readFileSync(`${ROOT}packages/server/package.json`, 'utf8'))
  return `${ROOT}packages/server/${bin.sluicegate}`
}

interface Postject {
  inject(file: string, section: string, content: Buffer, options: { sentinelFuse: string }): Promise<void>
}

/** postject prints a line about each section of Node.js that it does not know. */
async function withoutWarnings(act: () => Promise<void>): Promise<void> {
  const { log, warn, error } = console
  Object.assign(console, { log() {}, warn() {}, error() {} })
  try {
    await act()
  } finally {
    Object.assign(console, { log, warn, error })
  }
}

/** The shared libraries that an executable needs, with the loader, by their paths on this machine. */
export function librariesOf(executable: string): string[] {
  const listed = execFileSync('ldd', [executable], { encoding: 'utf8' })
  return Array.from(listed.matchAll(/(?:=> )?(\/\S+) \(0x/g), ([, path = '']) => path)
}

/** Files of a folder and of those in it. */
export function filesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}
