import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { minify } from 'terser'
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
  const parts = partsOf(source)
  write(`${target}/package.json`, `${JSON.stringify({ ...manifest, ...dependenciesWith(parts, manifest.dependencies) }, null, 2)}\n`)
  for (const file of ['README.md', 'LICENSE']) cpSync(`${source}/${file}`, `${target}/${file}`)
  writePackedDocs(name, `${target}/docs`)
  if (name === 'sluicegate') await writeLibrary(source, target)
  else writeProgram(source, target, parts)
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

/** A program is never imported: it has no declarations. Its parts stand in folders beside its own, and are imported by path. */
function writeProgram(source: string, target: string, parts: readonly Part[]): void {
  for (const { folder, under } of [{ folder: source, under: '' }, ...parts]) {
    for (const file of compiledIn(folder)) {
      const path = `${under}${file}`
      write(`${target}/dist/${path}`, importedByPath(readFileSync(`${folder}/dist/${file}`, 'utf8'), path, parts))
    }
  }
  for (const folder of ['proto', 'schema']) cpSync(`${source}/${folder}`, `${target}/${folder}`, { recursive: true })
}

/** A private package of the workspace that is published as a part of another. */
interface Part {
  readonly name: string
  readonly folder: string
  /** Its folder in `dist` of the published package. */
  readonly under: string
}

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly scripts?: object
  readonly devDependencies?: object
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as Manifest
}

/** The private packages that a published one depends on: users install one package, and its parts have one version. */
function partsOf(source: string): Part[] {
  const { dependencies = {} } = manifestOf(source)
  return readdirSync('packages')
    .map((folder) => ({ folder: `packages/${folder}`, manifest: manifestOf(`packages/${folder}`) }))
    .filter(({ manifest }) => manifest.private && manifest.name in dependencies)
    .map(({ folder, manifest: { name } }) => ({ name, folder, under: `${posix.basename(folder)}/` }))
}

/** What a package depends on, with what its parts depend on in their place. */
function dependenciesWith(parts: readonly Part[], own: Manifest['dependencies']): Pick<Manifest, 'dependencies'> {
  if (own === undefined) return {}
  const all = Object.assign({}, own, ...parts.map(({ folder }) => manifestOf(folder).dependencies)) as Record<string, string>
  const names = Object.keys(all).filter((name) => parts.every((part) => part.name !== name))
  return { dependencies: Object.fromEntries(names.sort().map((name) => [name, all[name] as string])) }
}

/** The code of a file of `dist` with paths in place of the names of parts. */
function importedByPath(code: string, file: string, parts: readonly Part[]): string {
  return parts.reduce((text, { name, under }) => {
    const path = posix.relative(posix.dirname(file), under)
    const start = path.startsWith('.') ? path : `./${path}`
    return text.replaceAll(new RegExp(`(from |import ?\\(?)'${name}/`, 'g'), `$1'${start}/`)
  }, code)
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
