// node bench/dist/publish.js [RESULTS.json ...]: fills the tables of the docs and draws their plots; without arguments from all results that are committed.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { committedResults, published } from './published.js'
import { installRivals } from './rivals.js'

const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url))

const named = process.argv.slice(2)
// The library that draws is one of them.
installRivals()
const made = published(named.length > 0 ? named : committedResults(), (page) => readFileSync(`${DOCS}${page}`, 'utf8'))
mkdirSync(`${DOCS}plots`, { recursive: true })
for (const [name, text] of made) {
  writeFileSync(`${DOCS}${name}`, text)
  console.log(`docs/${name}`)
}
