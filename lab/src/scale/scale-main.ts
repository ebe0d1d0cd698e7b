import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { MeasuredNodes } from './measured-nodes.js'
import { filledScale, scalePlots, scaleTables } from './scale-page.js'
import { type ScaleResults, scaleRun } from './scale-run.js'

const USAGE = `npm run lab:scale -- [--render]

Measures small runs on a real server, simulates the same and larger ones, prints the tables, and writes lab/results/scale.json,
docs/scale.md and its plots. With --render it writes page and plots from the results of the last run.`

const PAGE = new URL('../../../docs/scale.md', import.meta.url)
const PLOTS = new URL('../../../docs/plots/', import.meta.url)
const RESULTS = new URL('../../results/scale.json', import.meta.url)

const [option, ...others] = process.argv.slice(2)
if (others.length > 0 || (option !== undefined && option !== '--render')) {
  console.error(USAGE)
  process.exitCode = option === '--help' ? 0 : 2
} else {
  const results = option === '--render' ? (JSON.parse(readFileSync(RESULTS, 'utf8')) as ScaleResults) : await writtenRun()
  for (const [name, table] of scaleTables(results)) console.log(`\n${name}\n\n${table}`)
  writeFileSync(PAGE, filledScale(readFileSync(PAGE, 'utf8'), results))
  for (const [name, svg] of scalePlots(results)) writeFileSync(new URL(name, PLOTS), svg)
}

async function writtenRun(): Promise<ScaleResults> {
  await using nodes = await MeasuredNodes.start()
  const results = await scaleRun(nodes, (what) => console.error(what))
  mkdirSync(new URL('.', RESULTS), { recursive: true })
  const text = JSON.stringify(results, (_, value) => (typeof value === 'number' ? rounded(value) : value), 1)
  writeFileSync(RESULTS, `${text}\n`)
  // As `--render` will read it.
  return JSON.parse(text) as ScaleResults
}

function rounded(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(6))
}
