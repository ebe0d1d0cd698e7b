import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { bundledProgram } from './bundled-program.js'
import { FOLDER_OF } from './published.js'

// The service as it is published, for `npm start` and for what measures it; tests run what tsc wrote. After tsc, from the root.
const folder = FOLDER_OF['sluicegate-server']
const target = `${folder}/bundle`
const files = await bundledProgram(folder)
rmSync(target, { recursive: true, force: true })
for (const [file, text] of files) {
  mkdirSync(dirname(`${target}/${file}`), { recursive: true })
  writeFileSync(`${target}/${file}`, text)
}
console.log(`${target}: ${files.length} files`)
