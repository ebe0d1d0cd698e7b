import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { minify } from 'terser'
import { bundledProgram } from './bundled-program.js'
import { commonJsModules, FORM } from './commonjs-form.js'
import { entriesOf } from './entry-points.js'
import { packedDeclarations } from './packed-declarations.js'
import { writePackedDocs } from './packed-docs.js'
import { FOLDER_OF, type Published } from './published.js'

const HOME = '.cache/packages'
const UNPUBLISHED = /\.test\.|\.tsbuildinfo$/

/**
 * Writes a built package as it is published into a folder beside it: without what only its own work needs, and small. `npm pack` and
 * `npm publish` take that folder.
 *
 * @param home another folder for them, for tests that run at once.
 */
export async function publishablePackage(name: Published, home = HOME): Promise<string> {
  const source = FOLDER_OF[name]
  const target = `${home}/${name}`
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  const { scripts: _, devDependencies: __, ...manifest } = manifestOf(source)
  const { dependencies } = manifest
  const published = dependencies === undefined ? manifest : { ...manifest, dependencies: withoutOurs(dependencies) }
  write(`${target}/package.json`, `${JSON.stringify(published, null, 2)}\n`)
  for (const file of ['README.md', 'LICENSE']) cpSync(`${source}/${file}`, `${target}/${file}`)
  writePackedDocs(name, `${target}/docs`)
  if (name === 'sluicegate') await writeLibrary(source, target)
  else await writeProgram(source, target)
  return target
}

/** Both forms of the code without what only readers of the source need, and the declarations once. */
async function writeLibrary(source: string, target: string): Promise<void> {
  const entries = entriesOf(source)
  cpSync(`${source}/core.wasm`, `${target}/core.wasm`)
  for (const file of compiledIn(source)) {
    if (file.startsWith('commonjs/')) continue
    write(`${target}/dist/${file}`, await minified(readFileSync(`${source}/dist/${file}`, 'utf8')))
  }
  for (const [file, text] of await commonJsModules(`${target}/dist`, entries)) write(`${target}/${FORM}/${file}`, text)
  for (const [file, text] of await packedDeclarations(source, entries)) write(`${target}/${file}`, text)
}

/** A program is never imported: it has no declarations. It contains what it imports of the workspace. */
async function writeProgram(source: string, target: string): Promise<void> {
  for (const [file, text] of await bundledProgram(source)) write(`${target}/dist/${file}`, text)
  for (const folder of ['proto', 'schema']) cpSync(`${source}/${folder}`, `${target}/${folder}`, { recursive: true })
}

interface Manifest {
  readonly name: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly scripts?: object
  readonly devDependencies?: object
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as Manifest
}

/** What a program depends on, with what the packages of the workspace in it depend on in their place. */
function withoutOurs(own: Readonly<Record<string, string>>): Record<string, string> {
  const folders = readdirSync('packages').map((folder) => `packages/${folder}`)
  const ours = new Map(folders.map((folder) => [manifestOf(folder).name, manifestOf(folder)]))
  const all: Record<string, string> = {}
  for (const [name, version] of Object.entries(own))
    Object.assign(all, ours.get(name)?.dependencies ?? (ours.has(name) ? {} : { [name]: version }))
  const names = Object.keys(all).filter((name) => !ours.has(name))
  return Object.fromEntries(names.sort().map((name) => [name, all[name] as string]))
}

function compiledIn(source: string): string[] {
  const files = readdirSync(`${source}/dist`, { recursive: true, encoding: 'utf8' })
  return files.filter((file) => file.endsWith('.js') && !UNPUBLISHED.test(file))
}

/** Functions and classes keep their names: stack traces and `inspect` show them. */
async function minified(code: string): Promise<string> {
  const { code: small } = await minify(code, { module: true, ecma: 2020, keep_classnames: true, keep_fnames: true })
  if (small === undefined) throw new Error('nothing is left')
  return small
}

function write(path: string, text: string): void {
  mkdirSync(posix.dirname(path), { recursive: true })
  writeFileSync(path, text)
}
