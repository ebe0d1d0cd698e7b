import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { type OutputChunk, rollup } from 'rollup'
import { dts } from 'rollup-plugin-dts'
import ts from 'typescript'
import { bundledProgram } from './bundled-program.js'
import { FORM, nameOf, type Written } from './commonjs-form.js'
import { commonJsTwin, liveNamesOf, reachableFrom } from './commonjs-twin.js'
import { libraryChunks } from './library-chunks.js'
import { writePackedDocs } from './packed-docs.js'
import { type Entry, entriesOf, FOLDER_OF, type Published } from './published.js'
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

/**
 * The declarations of a package as it is published: what can be imported, and what that names. They stand once, in the CommonJS form, which
 * both forms may import; those of the ES modules pass them on.
 */
async function packedDeclarations(folder: string, entries: readonly Entry[]): Promise<Written[]> {
  const bundle = await rollup({
    input: Object.fromEntries(entries.map((entry) => [fileOf(entry), posix.join(folder, entry.import.types)])),
    external: (id) => !/^[./]/.test(id) && !id.startsWith(folder),
    plugins: [dts()],
    // Types that entry points share and do not export are meant to stay private; the one for Workers exports nothing.
    onwarn: (warning, warn) => {
      if (warning.plugin !== 'dts' && warning.code !== 'EMPTY_BUNDLE') warn(warning)
    },
  })
  const { output } = await bundle.generate({ format: 'es', chunkFileNames: ({ name }) => `types/${name.replace(/\.d$/, '')}-[hash].d.ts` })
  await bundle.close()
  const chunks = output.filter((file): file is OutputChunk => file.type === 'chunk')
  const shared = chunks.map(({ fileName, code }): Written => [`${FORM}/${fileName}`, withLibrary(withFramework(code))])
  const textOf = (entry: Entry): string => chunks.find(({ fileName }) => fileName === `${fileOf(entry)}.d.ts`)?.code ?? ''
  const passedOn = entries.map((entry): Written => [posix.normalize(entry.import.types), passingOn(entry, textOf(entry))])
  return [...shared, ...passedOn, ...entries.filter(isCallable).map((entry) => callable(entry, textOf(entry)))]
}

/** Nest is an ES module, from which a declaration of the CommonJS form takes types alone. */
function withFramework(code: string): string {
  return code.replace(/^import (?:type )?(\{[^}]*\} from '@nestjs\/common')/gm, "import type $1 with { 'resolution-mode': 'import' }")
}

/** `using` is younger than what a project without types of Node.js declares. */
function withLibrary(code: string): string {
  return /\bSymbol\.(?:d|asyncD)ispose\b|\b(?:Async)?Disposable\b/.test(code) ? `/// <reference lib="esnext.disposable" />\n${code}` : code
}

/** Where the names of an entry point are declared, within the form. */
function fileOf(entry: Entry): string {
  return posix.relative('dist', entry.import.types).replace(/\.d\.ts$/, '')
}

/** Where the names are that `require` returns. */
function requiredTypes({ import: { types }, require }: Entry): string {
  return require?.types ?? types.replace('dist', FORM)
}

/** `require` returns the default export of a module beside it instead of its names. */
function isCallable(entry: Entry): boolean {
  return nameOf(requiredTypes(entry)) !== fileOf(entry)
}

/** The declaration of an ES module whose names are declared in the CommonJS form. */
function passingOn(entry: Entry, text: string): string {
  const from = relative(entry.import.types, `${FORM}/${fileOf(entry)}.js`)
  const names = exportedNames(text)
  const byDefault = names.find(({ name }) => name === 'default')
  if (byDefault === undefined) return `export * from '${from}'\n`
  // Across the forms a default export is the whole module.
  const same = names.find(({ name, local }) => name !== 'default' && local === byDefault.local)
  if (same === undefined) throw new Error(`${entry.import.types}: a default export needs a second name`)
  return `export * from '${from}'\nexport { ${same.name} as default } from '${from}'\n`
}

/** The declaration of a module that is a function itself and has all that it exports beside it. */
function callable(entry: Entry, text: string): Written {
  const exported = exportedNames(text).filter(({ name }) => name !== 'default')
  const list = exported.map(({ name, typeOnly }) => `${typeOnly ? 'type ' : ''}${name}`).join(', ')
  const from = relative(requiredTypes(entry), `${FORM}/${fileOf(entry)}.js`)
  return [
    posix.normalize(requiredTypes(entry)),
    `import names, { ${list} } from '${from}'
declare function required(...options: Parameters<typeof names>): ReturnType<typeof names>
declare namespace required {
  export { ${list}, required as default }
}
export = required
`,
  ]
}

function relative(from: string, to: string): string {
  const path = posix.relative(posix.dirname(posix.normalize(from)), to)
  return path.startsWith('.') ? path : `./${path}`
}

/** A name that a module exports; of a type alone nothing is there at run time. */
interface Exported {
  readonly name: string
  readonly local: string
  readonly typeOnly: boolean
}

function exportedNames(text: string): Exported[] {
  const { statements } = ts.createSourceFile('bundle.d.ts', text, ts.ScriptTarget.Latest)
  return statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement) || statement.exportClause === undefined || !ts.isNamedExports(statement.exportClause)) return []
    return statement.exportClause.elements.map(({ name, propertyName, isTypeOnly }) => ({
      name: name.text,
      local: (propertyName ?? name).text,
      typeOnly: isTypeOnly || statement.isTypeOnly,
    }))
  })
}
