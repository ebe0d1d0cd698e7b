import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import asc from 'assemblyscript/asc'
import { build } from 'esbuild'

const ASSEMBLY = 'packages/sluicegate/assembly'
const FOLDER = 'packages/sluicegate/src/memory'
/** For runtimes that import WebAssembly and compile none from bytes. */
const FILE = 'packages/sluicegate/core.wasm'
/**
 * Parts of the text, each a module: in a packed package a part of the one module form stands beside the same of the other, and compresses to
 * nothing as long as both are within the 32 kB that gzip looks back.
 */
const PARTS = 3

/** Of the runtime, whose types are not those of a browser. */
const { Module } = (
  globalThis as unknown as {
    readonly WebAssembly: {
      readonly Module: {
        new (binary: Uint8Array): object
        exports(module: object): readonly { readonly kind: string; readonly name: string }[]
      }
    }
  }
).WebAssembly

/**
 * Compiles the core and writes it as modules, so that the library reads no file and runs wherever its modules load. Hexadecimal: base64 is
 * shorter on disk, but shifts repeated bytes against each other, and a compressed bundle is then 3.4 kB larger.
 */
export async function embedWasm(): Promise<string> {
  const binary = await compileCore(ASSEMBLY)
  await writeFile(FILE, binary)
  const hex = Buffer.from(binary).toString('hex')
  const length = Math.ceil(hex.length / PARTS)
  const names = Array.from({ length: PARTS }, (_, i) => `PART_${i + 1}`)
  const origin = '// Compiled from assembly/index.ts by tools/embed-wasm.\n'
  for (const [i, name] of names.entries()) {
    const text = `${origin}export const ${name}: string =\n  '${hex.slice(i * length, (i + 1) * length)}'\n`
    await writeChanged(`${FOLDER}/core-wasm-${i + 1}.gen.ts`, text)
  }
  const imports = names.map((name, i) => `import { ${name} } from './core-wasm-${i + 1}.gen.js'\n`).join('')
  const numbers = Module.exports(new Module(binary))
    .filter(({ kind }) => kind === 'global')
    .map(({ name }) => `  | '${name}'\n`)
  await writeChanged(
    `${FOLDER}/core-wasm.gen.ts`,
    [
      `${origin}${imports}\nexport const CORE_WASM_HEX: string = ${names.join(' + ')}\n`,
      `\n/** Numbers that the core exports: offsets in its memory, and names of outcomes. */\nexport type CoreNumber =\n${numbers.join('')}`,
    ].join(''),
  )
  return `${FOLDER}/core-wasm.gen.ts: ${binary.length} bytes of WebAssembly`
}

/** Left alone when nothing changed: the TypeScript build then has nothing to do either. */
async function writeChanged(file: string, text: string): Promise<void> {
  if ((await readFile(file, 'utf8').catch(() => '')) !== text) await writeFile(file, text)
}

/**
 * The core imports its memory and JavaScript creates it: any size from one page up to 4 GiB fits these limits, as a given
 * memory may be larger than the declared minimum and its maximum smaller than the declared one.
 */
const MEMORY_FLAGS = ['--importMemory', '--sharedMemory', '--initialMemory', '1', '--maximumMemory', '65536']
const FLAGS = ['-O3', '--noAssert', '--enable', 'threads', '--runtime', 'stub', ...MEMORY_FLAGS]

/**
 * Compiles the AssemblyScript sources in `folder`, from its index.ts, to WebAssembly.
 *
 * @throws {Error} with the compiler's messages.
 */
async function compileCore(folder: string): Promise<Uint8Array> {
  const messages: string[] = []
  let binary: Uint8Array | undefined
  const { error } = await asc.main(['index.ts', '--outFile', 'core.wasm', ...FLAGS], {
    stderr: { write: (text: string) => void messages.push(text) },
    readFile: (name) => readFile(join(folder, name), 'utf8').catch(() => null),
    listFiles: (name) => readdir(join(folder, name)).catch(() => null),
    writeFile(name, contents) {
      if (name === 'core.wasm' && typeof contents !== 'string') binary = contents
    },
  })
  if (error !== null || binary === undefined) throw new Error(`${messages.join('')}${error?.message ?? 'the compiler wrote nothing'}`)
  return binary
}

const LUA = 'packages/sluicegate/lua'
const GENERATED = 'packages/sluicegate/src/redis/scripts.gen.ts'

/** Steps of every script, in this order, after `FIRST`; the steps of the forms follow, then those of the script, and the script itself. */
const FIRST = ['now', 'whole']
const SHARED = ['arithmetic', 'parts', 'bounds', 'holds', 'records']
const LEASED = ['rate', 'fixed-window', 'sliding-window', 'sliding-log']
const FORMS = ['rate', 'fixed-window', 'sliding-window', 'sliding-log', 'concurrency']
/** What can be done with a key of a region. */
const REGION = ['draw', 'claim', 'refill', 'give-back', 'reclaim', 'add-debt', 'take-debt', 'block']
/** Encodings with a fast path, which runs before all other steps where it can decide. */
const UNROLLED = ['rate', 'fixed-window', 'sliding-window']

/** Writes the scripts as a module that has each step once, each script with the SHA-1 by which a server knows it. */
export async function embedLua(): Promise<string> {
  const pieces = new Pieces()
  const scripts: string[] = []
  for (const form of FORMS) scripts.push(await pieces.scriptOf(form, [...unrolled(form, 'take'), ...SHARED, form, 'verbs'], 'decide'))
  for (const form of LEASED) scripts.push(await pieces.scriptOf(`lease ${form}`, [...unrolled(form, 'lease'), ...SHARED, form], 'lease'))
  scripts.push(await pieces.scriptOf('all-of', [...SHARED, ...FORMS, 'verbs'], 'decide-all'))
  scripts.push(await pieces.scriptOf('hold', [...SHARED, ...FORMS, 'verbs'], 'hold'))
  const callRate = await pieces.composed(FIRST, 'call-rate')
  const overrides = await pieces.composed([], 'overrides')
  const nodes = await pieces.composed(FIRST, 'nodes')
  const region: string[] = []
  for (const verb of REGION) region.push(`  '${verb}': ${await pieces.composed([...FIRST, 'region-key'], `region/${verb}`)},\n`)
  const names = [...FORMS, ...LEASED.map((form) => `lease ${form}`), 'all-of', 'hold']
  const text = [
    "// Composed from lua/ by tools/embed-lua.\nimport type { Script } from './run-script.js'\n\n",
    '// Pieces of the scripts.\n',
    ...pieces.constants(),
    "\nfunction script(sha1: string, ...texts: readonly string[]): Script {\n  return { sha1, source: texts.join('') }\n}\n\n",
    `/** What a policy is to the scripts. */\nexport type EncodingName = ${unionOf(FORMS)}\n\n`,
    `export const SCRIPTS: Readonly<Record<${unionOf(names)}, Script>> = {\n${scripts.join('')}}\n\n`,
    `/** Which knows no policy. */\nexport const OVERRIDES_SCRIPT: Script = ${overrides}\n\n`,
    `/** The same. */\nexport const CALL_RATE_SCRIPT: Script = ${callRate}\n\n`,
    `/** The same. */\nexport const NODES_SCRIPT: Script = ${nodes}\n\n`,
    `/** The same; one a verb. */\nexport const REGION_SCRIPTS: Readonly<Record<${unionOf(REGION)}, Script>> = {\n${region.join('')}}\n`,
  ].join('')
  if ((await readFile(GENERATED, 'utf8').catch(() => '')) !== text) await writeFile(GENERATED, text)
  return `${GENERATED}: ${scripts.length + 3 + REGION.length} scripts`
}

/** Steps and scripts as they are embedded: files of `lua/` without comments, each a constant of the generated module. */
class Pieces {
  private readonly texts = new Map<string, string>()

  async scriptOf(name: string, steps: readonly string[], script: string): Promise<string> {
    return `  '${name}': ${await this.composed([...FIRST, ...steps], script)},\n`
  }

  /** The call that makes a script of its pieces. */
  async composed(steps: readonly string[], script: string): Promise<string> {
    const files = [...steps.map((step) => `steps/${step}`), `scripts/${script}`]
    const sha1 = createHash('sha1')
    for (const file of files) sha1.update(await this.textOf(file))
    return `/* @__PURE__ */ script('${sha1.digest('hex')}', ${files.map(constantOf).join(', ')})`
  }

  constants(): string[] {
    return [...this.texts].map(([file, text]) => `const ${constantOf(file)} =\n  ${JSON.stringify(text)}\n`)
  }

  private async textOf(file: string): Promise<string> {
    const text = this.texts.get(file) ?? withoutComments(await readFile(`${LUA}/${file}.lua`, 'utf8'))
    this.texts.set(file, text)
    return text
  }
}

/** `steps/fixed-window` is `STEPS_FIXED_WINDOW`. */
function constantOf(file: string): string {
  return file.toUpperCase().replace(/[^A-Z]/g, '_')
}

function unionOf(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(' | ')
}

function unrolled(form: string, what: 'take' | 'lease'): readonly string[] {
  return UNROLLED.includes(form) ? [`${form}-${what}`] : []
}

/** Comments, indentation and spaces about operators stay in the source: no string of the scripts begins a line, or contains a quote. */
function withoutComments(source: string): string {
  const lines = source.split('\n').map((line) => line.replace(/\s*(?<!')--.*$/, '').trim())
  return `${lines
    .filter((line) => line !== '')
    .map(withoutSpaces)
    .join('\n')}\n`
}

function withoutSpaces(line: string): string {
  const pieces = line.split(/('[^']*')/)
  return pieces.map((piece, i) => (i % 2 === 0 ? piece.replace(/ ?([=,+*/<>{}()]) ?/g, '$1') : piece)).join('')
}

/** Folders with a page in `page/`, and the constants of its files. */
const PAGES = [
  {
    folder: 'packages/server/src/dashboard',
    prefix: 'PAGE',
    files: { HTML: 'index.html', ICON: 'icon.svg', SCRIPT: 'main.ts', STYLE: 'style.css' },
  },
  { folder: 'packages/commands/src/report', prefix: 'REPORT', files: { HTML: 'index.html', SCRIPT: 'main.ts', STYLE: 'style.css' } },
] as const

/**
 * Bundles the live page and the page of reports (code, uPlot, style) into `assets.gen.ts` beside their folders, so that the published
 * service needs no files beside its code and no other host. Run from the root.
 */
export async function embedPages(): Promise<string> {
  const sizes: string[] = []
  for (const { folder, prefix, files } of PAGES) {
    const lines: string[] = []
    for (const [name, file] of Object.entries(files)) {
      const path = `${folder}/page/${file}`
      const text = /\.(ts|css)$/.test(file) ? await bundled(path) : readFileSync(path, 'utf8')
      lines.push(`export const ${prefix}_${name}: string = ${JSON.stringify(text)}\n`)
    }
    writeFileSync(`${folder}/assets.gen.ts`, lines.join(''))
    sizes.push(`${folder.split('/').at(-1)} ${Math.ceil(lines.join('').length / 1024)} kB`)
  }
  return `Embedded the pages: ${sizes.join(', ')}`
}

async function bundled(entry: string): Promise<string> {
  const licence = `/*! With uPlot (https://github.com/leeoniya/uPlot):\n${uPlotTerms()}\n*/`
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: 'es2022',
    banner: { js: licence, css: licence },
    charset: 'utf8',
    logLevel: 'warning',
  })
  return outputFiles[0]?.text ?? ''
}

/** uPlot's own files do not mark their licence as a comment to keep, and its terms ask for it. */
function uPlotTerms(): string {
  const file = createRequire(import.meta.url)
    .resolve('uplot')
    .replace(/dist\/.*$/, 'LICENSE')
  return readFileSync(file, 'utf8').trim()
}

// Generates the sources that have to exist before the packages compile. Run from the root. A package that generates sources
// of its own has a script "generate".
console.log(await embedWasm())
console.log(await embedLua())
console.log(await embedPages())

for (const folder of readdirSync('packages')) {
  const { name, scripts } = JSON.parse(readFileSync(`packages/${folder}/package.json`, 'utf8'))
  if (scripts?.generate === undefined) continue
  const { status } = spawnSync('npm', ['run', '--silent', 'generate', '-w', name], { stdio: 'inherit' })
  if (status !== 0) throw new Error(`"npm run generate -w ${name}" failed`)
}
