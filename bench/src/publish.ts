// node bench/dist/publish.js [RESULTS.json ...]: fills the tables of the docs, draws their plots and writes what is committed of the
// results: without arguments of all that this machine has measured.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { RESULTS } from './committed-form.js'
import { committed, measuredResults, published } from './published.js'
import { installRivals } from './rivals.js'

const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url))

const named = process.argv.slice(2)
// The library that draws is one of them.
installRivals()
const files = named.length > 0 ? named : measuredResults()
const made = published(files, (page) => readFileSync(`${DOCS}${page}`, 'utf8'))
mkdirSync(`${DOCS}plots`, { recursive: true })
for (const [name, text] of made) {
  writeFileSync(`${DOCS}${name}`, text)
  console.log(`docs/${name}`)
}
for (const [name, text] of committed(files)) {
  writeFileSync(`${RESULTS}${name}`, text)
  console.log(`bench/results/${name}`)
}
