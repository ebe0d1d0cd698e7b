// node bench/dist/publish.js RESULTS.json [MORE.json ...]: fills the tables of docs/benchmarks.md and draws its plots. The first is
// a run with --sweeps; whole questions that were asked again come from the later ones.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chartSvg } from './chart.js'
import { filled, markdownParts } from './markdown.js'
import { overKeys, overWorkers } from './plots.js'
import type { Results } from './results.js'

const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url))

const [first, ...more] = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, 'utf8')) as Results)
if (first === undefined) {
  console.error('usage: node bench/dist/publish.js RESULTS.json [MORE.json ...]')
  process.exit(2)
}
const results = more.reduce(askedAgain, first)
mkdirSync(`${DOCS}plots`, { recursive: true })
writeFileSync(`${DOCS}plots/over-keys.svg`, chartSvg(overKeys(results)))
writeFileSync(`${DOCS}plots/over-workers.svg`, chartSvg(overWorkers(results)))
const page = `${DOCS}benchmarks.md`
writeFileSync(page, filled(readFileSync(page, 'utf8'), markdownParts(results)))

function askedAgain(earlier: Results, later: Results): Results {
  const again = (question: string): boolean => later.answers.some((answer) => answer.question === question)
  const answers = earlier.answers.flatMap((answer, index) => {
    if (!again(answer.question)) return [answer]
    const isFirst = earlier.answers.findIndex(({ question }) => question === answer.question) === index
    return isFirst ? later.answers.filter(({ question }) => question === answer.question) : []
  })
  return { ...earlier, loadAfter: later.loadAfter, answers }
}
