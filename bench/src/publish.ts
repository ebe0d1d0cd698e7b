// node bench/dist/publish.js RESULTS.json: fills the tables of docs/benchmarks.md and draws its plots from a run with --sweeps.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chartSvg } from './chart.js'
import { filled, markdownParts } from './markdown.js'
import { overKeys, overWorkers } from './plots.js'
import type { Results } from './results.js'

const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url))

const [file] = process.argv.slice(2)
if (file === undefined) {
  console.error('usage: node bench/dist/publish.js RESULTS.json')
  process.exit(2)
}
const results = JSON.parse(readFileSync(file, 'utf8')) as Results
mkdirSync(`${DOCS}plots`, { recursive: true })
writeFileSync(`${DOCS}plots/over-keys.svg`, chartSvg(overKeys(results)))
writeFileSync(`${DOCS}plots/over-workers.svg`, chartSvg(overWorkers(results)))
const page = `${DOCS}benchmarks.md`
writeFileSync(page, filled(readFileSync(page, 'utf8'), markdownParts(results)))
