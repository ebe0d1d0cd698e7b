// What an editor offers within the options of middleware: asked of the language service that editors ask.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const ADAPTERS = ['express', 'fetch', 'fastify', 'hono', 'koa']
/** Beside the compiled declarations, which are what users have. */
const FOLDER = fileURLToPath(new URL('.', import.meta.url))

/** The names that are offered at the bar in each text. */
function offered(texts: Readonly<Record<string, string>>): Readonly<Record<string, readonly string[]>> {
  const files = new Map(Object.entries(texts).map(([name, text]) => [`${FOLDER}${name}.asked.ts`, text]))
  const options: ts.CompilerOptions = {
    strict: true,
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts'],
    skipLibCheck: true,
    noEmit: true,
    types: ['node'],
  }
  const read = (path: string): string | undefined => files.get(path)?.replace('|', '') ?? ts.sys.readFile(path)
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => [...files.keys()],
    getScriptVersion: () => '1',
    getScriptSnapshot: (path) => {
      const text = read(path)
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
    },
    getCurrentDirectory: () => FOLDER,
    getDefaultLibFileName: (settings) => ts.getDefaultLibFilePath(settings),
    fileExists: (path) => files.has(path) || ts.sys.fileExists(path),
    readFile: read,
    directoryExists: ts.sys.directoryExists,
    realpath: ts.sys.realpath ?? ((path) => path),
  })
  const found = [...files].map(([path, text]) => {
    const entries = service.getCompletionsAtPosition(path, text.indexOf('|'), {})?.entries ?? []
    return [path, entries.filter(({ kind }) => kind === ts.ScriptElementKind.memberVariableElement).map(({ name }) => name)] as const
  })
  service.dispose()
  return Object.fromEntries(found.map(([path, names]) => [path.slice(FOLDER.length, -'.asked.ts'.length), names]))
}

test('within the options of middleware an editor offers options, and not the fields of a policy', () => {
  const within = (adapter: string, call: string): string => `import { rateLimit } from './adapters/${adapter}.js'\nrateLimit(${call})\n`
  const texts = Object.fromEntries(
    ADAPTERS.flatMap((adapter) => [
      [adapter, within(adapter, '{ | }')],
      [`${adapter}, begun`, within(adapter, '{ po| }')],
      [`${adapter}, within`, within(adapter, '{ key: () => "all", | }')],
    ]),
  )
  const nest = "import { RateLimit, RateLimitModule } from './adapters/nest.js'\n"
  const all = offered({ ...texts, 'nest, module': `${nest}RateLimitModule.forRoot({ | })`, 'nest, decorator': `${nest}RateLimit({ | })` })
  for (const [name, names] of Object.entries(all)) {
    for (const option of ['policy', 'limiter', 'limits', 'skip', 'onDenied', 'headers'])
      assert.ok(names.includes(option), `${name}: ${names}`)
    for (const field of ['algorithm', 'windowMs', 'burst', 'name', 'take']) assert.ok(!names.includes(field), `${name}: ${names}`)
    assert.equal(names.includes('key'), !name.endsWith('within'), name)
  }
})
