import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
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
 * Writes a built package as it is published into a folder beside it: without what only its own work needs. `npm pack` and
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

/** Both forms of the code, with one set of source maps, and the declarations once. */
async function writeLibrary(source: string, target: string): Promise<void> {
  const entries = entriesOf(source)
  cpSync(`${source}/core.wasm`, `${target}/core.wasm`)
  const nameIn = (file: string): string => posix.relative('dist', file).replace(/\.js$/, '')
  const imported = entries.flatMap(({ import: { default: file, node = file } }) => [nameIn(file), nameIn(node)])
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
  const shared = chunks.flatMap(({ file, code }) => (SIDE_EFFECTS.includes(`./${FORM}/${file}`) ? sharedText(file, code) : []))
  for (const { file, script } of shared) write(`${target}/${FORM}/${file}`, script)
  const apart = chunks.filter((chunk) => !shared.some(({ file }) => file === chunk.file))
  const [noCore, script] = withoutCore(shared)
  write(`${target}/${noCore}`, script)
  const live = new Map(apart.map(({ file, code }) => [file, liveNamesOf(code)]))
  for (const { file, code, map } of apart) {
    const isLive = (module: string, name: string): boolean => live.get(posix.join(posix.dirname(file), module))?.has(name) ?? false
    const isModule = ofModules.has(file)
    if (isModule) {
      write(`${target}/dist/${file}`, readingShared(file, code, 'dist', shared) + linkTo(`${posix.basename(file)}.map`))
      write(`${target}/dist/${file}.map`, map)
    }
    if (ofCommonJs.has(file)) {
      // Line for line the same code: one map is for both.
      const link = isModule ? linkTo(posix.relative(`${FORM}/${posix.dirname(file)}`, `dist/${file}.map`)) : ''
      write(`${target}/${FORM}/${file}`, commonJsTwin(readingShared(file, code, FORM, shared), isLive) + link)
    }
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

function linkTo(map: string): string {
  return `//# sourceMappingURL=${map}\n`
}

function write(path: string, text: string): void {
  mkdirSync(posix.dirname(path), { recursive: true })
  writeFileSync(path, text)
}
