import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import asc from 'assemblyscript/asc'

const ASSEMBLY = 'packages/sluicegate/assembly'
const FOLDER = 'packages/sluicegate/src/memory'
/** For runtimes that import WebAssembly and compile none from bytes. */
const FILE = 'packages/sluicegate/core.wasm'
/**
 * Parts of the text, each a module: in a packed package a part of the one module form stands beside the same of the other, and compresses to
 * nothing as long as both are within the 32 kB that gzip looks back.
 */
const PARTS = 3

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
  await writeChanged(`${FOLDER}/core-wasm.gen.ts`, `${origin}${imports}\nexport const CORE_WASM_HEX: string = ${names.join(' + ')}\n`)
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
