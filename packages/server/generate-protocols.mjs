// Compiles the messages in proto/ to src/protocols/grpc/messages/*.gen.ts. Run by `npm run build` before TypeScript; needs no network.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))
const fresh = join(folder, '.cache/messages')
const target = join(folder, 'src/protocols/grpc/messages')

// Unchecked, because the project's settings refuse the enums in them.
const template = {
  version: 'v2',
  plugins: [{ local: 'protoc-gen-es', out: '.cache/messages', opt: ['target=ts', 'import_extension=js', 'ts_nocheck=true'] }],
}
rmSync(fresh, { recursive: true, force: true })
const { status } = spawnSync('buf', ['generate', '--template', JSON.stringify(template)], { cwd: folder, stdio: 'inherit' })
if (status !== 0) throw new Error('buf generate failed')

const files = readdirSync(fresh, { recursive: true }).filter((file) => file.endsWith('_pb.ts'))
rmSync(target, { recursive: true, force: true })
for (const file of files) {
  // Generated sources of this repository end in .gen.ts.
  const source = readFileSync(join(fresh, file), 'utf8').replaceAll(/_pb\.js"/g, '.gen.js"')
  const path = join(target, file.replace(/_pb\.ts$/, '.gen.ts'))
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, source)
}
console.log(`Compiled ${files.length} files of messages`)
