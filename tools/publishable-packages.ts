import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { minify } from 'terser'
import { bundledProgram } from './bundled-program.js'
import { FORM, nameOf } from './commonjs-form.js'
import { commonJsTwin, liveNamesOf, reachableFrom } from './commonjs-twin.js'
import { entriesOf } from './entry-points.js'
import { libraryChunks } from './library-chunks.js'
import { packedDeclarations } from './packed-declarations.js'
import { writePackedDocs } from './packed-docs.js'
import { FOLDER_OF, type Published } from './published.js'
import { PACKED_IMPORTS, readingShared, SIDE_EFFECTS, sharedText, withoutCore } from './shared-text.js'

const HOME = '.cache/packages'

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
  const published = {
    ...manifest,
    ...(dependencies && { dependencies: withoutOurs(dependencies) }),
    ...(manifest.sideEffects && { sideEffects: [...manifest.sideEffects, ...SIDE_EFFECTS], imports: PACKED_IMPORTS }),
  }
  write(`${target}/package.json`, `${JSON.stringify(published, null, 2)}\n`)
  for (const file of ['README.md', 'LICENSE']) cpSync(`${source}/${file}`, `${target}/${file}`)
  writePackedDocs(name, `${target}/docs`)
  if (name === 'sluicegate') await writeLibrary(source, target)
  else await writeProgram(source, target)
  return target
}

/** Both forms of the code, small, and the declarations once. */
async function writeLibrary(source: string, target: string): Promise<void> {
  const entries = entriesOf(source)
  cpSync(`${source}/core.wasm`, `${target}/core.wasm`)
  const nameIn = (file: string): string => posix.relative('dist', file).replace(/\.js$/, '')
  const imported = entries.map((entry) => nameIn(entry.import.default))
  const required = entries.flatMap(({ require }) => (require === undefined ? [] : nameOf(require.default)))
  const chunks = await libraryChunks(`${source}/dist`, [...new Set([...imported, ...required])])
  const importsOf = (file: string): readonly string[] => chunks.find((chunk) => chunk.file === file)?.imports ?? []
  const ofModules = reachableFrom(
    imported.map((name) => `${name}.js`),
    importsOf,
  )
  const ofCommonJs = reachableFrom(
    required.map((name) => `${name}.js`),
    importsOf,
  )
  const small = new Map<string, string>()
  for (const { file, code } of chunks) small.set(file, await minified(code))
  const shared = [...small].flatMap(([file, code]) => (SIDE_EFFECTS.includes(`./${FORM}/${file}`) ? sharedText(file, code) : []))
  for (const { file, script } of shared) {
    write(`${target}/${FORM}/${file}`, script)
    small.delete(file)
  }
  const [noCore, script] = withoutCore(shared)
  write(`${target}/${noCore}`, script)
  const live = new Map([...small].map(([file, code]) => [file, liveNamesOf(code)]))
  for (const [file, code] of small) {
    const isLive = (module: string, name: string): boolean => live.get(posix.join(posix.dirname(file), module))?.has(name) ?? false
    if (ofModules.has(file)) write(`${target}/dist/${file}`, readingShared(file, code, 'dist', shared))
    if (ofCommonJs.has(file)) write(`${target}/${FORM}/${file}`, commonJsTwin(readingShared(file, code, FORM, shared), isLive))
  }
  write(`${target}/${FORM}/package.json`, '{ "type": "commonjs" }\n')
  for (const [file, text] of await packedDeclarations(source, entries)) write(`${target}/${file}`, text)
}

/** A program is never imported: it has no declarations. It contains what it imports of the workspace. */
async function writeProgram(source: string, target: string): Promise<void> {
  for (const [file, text] of await bundledProgram(source)) write(`${target}/dist/${file}`, text)
  cpSync(`${source}/proto`, `${target}/proto`, { recursive: true })
  // Editors read them, people do not.
  for (const file of readdirSync(`${source}/schema`)) {
    write(`${target}/schema/${file}`, JSON.stringify(JSON.parse(readFileSync(`${source}/schema/${file}`, 'utf8'))))
  }
}

interface Manifest {
  readonly name: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly sideEffects?: readonly string[]
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
