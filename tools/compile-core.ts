import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import asc from 'assemblyscript/asc'

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
export async function compileCore(folder: string): Promise<Uint8Array> {
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
