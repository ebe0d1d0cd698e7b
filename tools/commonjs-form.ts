import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { type OutputChunk, rollup } from 'rollup'
import { callableDeclaration, commonJsDeclaration } from './commonjs-declaration.js'
import { importsOf } from './imports-of.js'

const PACKAGE = 'packages/sluicegate'
/** Where both `exports` of package.json and this program have the CommonJS form. */
const FORM = 'dist/commonjs'

/** The entry in `exports` of an entry point that has both forms. */
interface Entry {
  readonly import: { readonly types: string; readonly default: string }
  readonly require: { readonly types: string; readonly default: string }
}

/** Writes the CommonJS form of every entry point, code and declarations, made of the ES modules that tsc wrote and tests run. */
export async function writeCommonJs(): Promise<string> {
  const entries = entriesOf(PACKAGE)
  rmSync(`${PACKAGE}/${FORM}`, { recursive: true, force: true })
  const files = [...(await codeOf(entries)), ...declarationsOf(entries)]
  for (const [file, text] of files) {
    const path = `${PACKAGE}/${file}`
    mkdirSync(posix.dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  return `${PACKAGE}/${FORM}: ${files.length} files for ${entries.length} entry points`
}

/** Entry points with code: `./package.json` is none. */
function entriesOf(folder: string): Entry[] {
  const { exports } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as { exports: Record<string, Entry | string> }
  return Object.values(exports).filter((entry) => typeof entry !== 'string')
}

type Written = readonly [file: string, text: string]

/** One bundle per entry point; code that several need is in separate chunks, so that it is loaded once. */
async function codeOf(entries: readonly Entry[]): Promise<Written[]> {
  const input = Object.fromEntries(entries.map((entry) => [nameOf(entry.require.default), `${PACKAGE}/${sourceOf(entry)}`]))
  const bundle = await rollup({
    input,
    // Peers are loaded from the caller's installation.
    external: (id) => !/^[./]/.test(id),
    onwarn(warning) {
      // Modules of policies know each other; they call only once all are loaded.
      if (warning.code !== 'CIRCULAR_DEPENDENCY') throw new Error(warning.message)
    },
  })
  const { output } = await bundle.generate({
    format: 'cjs',
    exports: 'auto',
    entryFileNames: '[name].cjs',
    chunkFileNames: 'chunks/[name]-[hash].cjs',
    generatedCode: 'es2015',
  })
  await bundle.close()
  return output.filter((file): file is OutputChunk => file.type === 'chunk').map(({ fileName, code }) => [`${FORM}/${fileName}`, code])
}

/** Where a module `commonjs.js` stands beside an entry point, its default export is what `require` returns. */
function sourceOf(entry: Entry): string {
  return isCallable(entry) ? ownSourceOf(entry) : entry.import.default
}

function isCallable(entry: Entry): boolean {
  return existsSync(`${PACKAGE}/${ownSourceOf(entry)}`)
}

function ownSourceOf({ import: { default: file } }: Entry): string {
  return posix.join(posix.dirname(file), 'commonjs.js')
}

/** The declaration of such an entry point, in the place of the one that only has the names, which stands beside it then. */
function callable({ import: { types } }: Entry): Written[] {
  const text = readFileSync(`${PACKAGE}/${types}`, 'utf8')
  const place = commonJsPath(posix.normalize(types))
  const names = place.replace(/[^/]*$/, 'names.d.cts')
  return [
    [names, commonJsDeclaration(types, text)],
    [place, callableDeclaration(types, text, './names.cjs')],
  ]
}

/** `./dist/commonjs/redis/index.cjs` is `redis/index`. */
function nameOf(file: string): string {
  return posix.relative(FORM, file).replace(/\.cjs$/, '')
}

/** The declarations of entry points and all that they import, in the same places below the form's folder. */
function declarationsOf(entries: readonly Entry[]): Written[] {
  const texts = new Map<string, string>()
  const open = entries.map((entry) => posix.normalize(entry.import.types))
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (texts.has(file)) continue
    const text = readFileSync(`${PACKAGE}/${file}`, 'utf8')
    texts.set(file, text)
    const relative = importsOf(file, text).filter(({ specifier }) => specifier.startsWith('.'))
    for (const { specifier } of relative) open.push(posix.join(posix.dirname(file), specifier).replace(/\.js$/, '.d.ts'))
  }
  const plain = [...texts].map(([file, text]): Written => [commonJsPath(file), commonJsDeclaration(file, text)])
  return [...plain, ...entries.filter(isCallable).flatMap(callable)]
}

/** `dist/http.d.ts` is `dist/commonjs/http.d.cts`. */
function commonJsPath(file: string): string {
  return posix.join(FORM, posix.relative('dist', file)).replace(/\.d\.ts$/, '.d.cts')
}
