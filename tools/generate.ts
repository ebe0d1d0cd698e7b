import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { embedLua } from './embed-lua.js'
import { embedPages } from './embed-pages.js'
import { embedWasm } from './embed-wasm.js'

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
