import { readFile, writeFile } from 'node:fs/promises'
import { compileCore } from './compile-core.js'

const ASSEMBLY = 'packages/sluicegate/assembly'
const GENERATED = 'packages/sluicegate/src/memory/core-wasm.gen.ts'

/**
 * Compiles the core and writes it as a module, so that the library reads no file and runs wherever its modules load. Hexadecimal: base64 is
 * shorter on disk, but shifts repeated bytes against each other, and a compressed bundle is then 3.4 kB larger.
 */
export async function embedWasm(): Promise<string> {
  const binary = await compileCore(ASSEMBLY)
  const text = `// Compiled from assembly/index.ts by tools/embed-wasm.\nexport const CORE_WASM_HEX =\n  '${Buffer.from(binary).toString('hex')}'\n`
  // Left alone when nothing changed: the TypeScript build then has nothing to do either.
  if ((await readFile(GENERATED, 'utf8').catch(() => '')) !== text) await writeFile(GENERATED, text)
  return `${GENERATED}: ${binary.length} bytes of WebAssembly`
}
