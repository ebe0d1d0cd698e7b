import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { type OutputChunk, rollup } from 'rollup'
import { type Entry, entriesOf } from './published.js'

/** Where both `exports` of package.json and this program have the CommonJS form. */
export const FORM = 'dist/commonjs'

/** A file of the form by its path within it, and its text. */
export type Written = readonly [file: string, text: string]

/** Writes the CommonJS form beside the ES modules that tsc wrote and tests run, of which it is made. */
export async function writeCommonJs(folder = 'packages/sluicegate'): Promise<string> {
  const files = await commonJsModules(`${folder}/dist`, entriesOf(folder))
  rmSync(`${folder}/${FORM}`, { recursive: true, force: true })
  for (const [file, text] of files) {
    mkdirSync(posix.dirname(`${folder}/${FORM}/${file}`), { recursive: true })
    writeFileSync(`${folder}/${FORM}/${file}`, text)
  }
  return `${folder}/${FORM}: ${files.length} files`
}

/**
 * What `require` loads: every ES module below `dist` that an entry point needs, as a CommonJS module of the same name, and a package.json
 * that says what they are.
 */
async function commonJsModules(dist: string, entries: readonly Entry[]): Promise<Written[]> {
  const bundle = await rollup({
    input: Object.fromEntries(
      entries.flatMap(({ require }) => (require === undefined ? [] : [[nameOf(require.default), `${dist}/${nameOf(require.default)}.js`]])),
    ),
    // Peers are loaded from the caller's installation.
    external: (id) => !/^[./]/.test(id) && !id.startsWith(dist),
    onwarn(warning) {
      // Modules of policies know each other; they call only once all are loaded.
      if (warning.code !== 'CIRCULAR_DEPENDENCY') throw new Error(warning.message)
    },
  })
  const { output } = await bundle.generate({
    format: 'cjs',
    exports: 'auto',
    preserveModules: true,
    preserveModulesRoot: dist,
    entryFileNames: '[name].js',
    generatedCode: { preset: 'es2015', symbols: false },
    compact: true,
  })
  await bundle.close()
  const modules = output.filter((file): file is OutputChunk => file.type === 'chunk').map(({ fileName, code }): Written => [fileName, code])
  return [['package.json', '{ "type": "commonjs" }\n'], ...modules]
}

/** `./dist/commonjs/redis/index.js` is `redis/index`. */
export function nameOf(file: string): string {
  return posix.relative(FORM, file).replace(/(\.d\.ts|\.js)$/, '')
}
