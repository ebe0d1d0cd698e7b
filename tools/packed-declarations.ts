import { posix } from 'node:path'
import { type OutputChunk, rollup } from 'rollup'
import { dts } from 'rollup-plugin-dts'
import ts from 'typescript'
import { FORM, nameOf, type Written } from './commonjs-form.js'
import type { Entry } from './entry-points.js'

/**
 * The declarations of a package as it is published: what can be imported, and what that names. They stand once, in the CommonJS form, which
 * both forms may import; those of the ES modules pass them on.
 */
export async function packedDeclarations(folder: string, entries: readonly Entry[]): Promise<Written[]> {
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
