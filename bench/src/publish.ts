// node bench/dist/publish.js RESULTS.json [MORE.json ...]: fills the tables of docs/benchmarks.md and draws its plots. The first is
// a run with --sweeps; questions that were asked again, or for the first time, come from the later ones. The results of a study
// fill docs/sliding-window-accuracy.md, those of bench:redis docs/benchmarks-redis.md, and those of
// bench:edge docs/benchmarks-edge.md, and of bench:server docs/benchmarks-server.md, alone or beside the others.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chartSvg } from './chart.js'
import { filled, markdownParts } from './markdown.js'
import { middlewareMarkdownParts } from './middleware/middleware-markdown.js'
import type { MiddlewareResults } from './middleware/middleware-results.js'
import { overKeys, overWorkers } from './plots.js'
import { fleetMarkdownParts } from './redis/fleet-markdown.js'
import { fleetPlots } from './redis/fleet-plots.js'
import type { FleetResults } from './redis/fleet-results.js'
import type { Results } from './results.js'
import { serverMarkdownParts } from './server/server-markdown.js'
import { serverPlots } from './server/server-plots.js'
import type { ServerResults } from './server/server-results.js'
import { STUDIES } from './study/studies.js'
import { tableMarkdown } from './study/study-table.js'

const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url))

type StudyFindings = { readonly study: string }

const files = process.argv
  .slice(2)
  .map((file) => JSON.parse(readFileSync(file, 'utf8')) as Results | FleetResults | MiddlewareResults | ServerResults | StudyFindings)
const [first, ...more] = files.filter((file): file is Results => !('study' in file || 'kind' in file))
if (files.length === 0) {
  console.error('usage: node bench/dist/publish.js RESULTS.json [MORE.json ...]')
  process.exit(2)
}
mkdirSync(`${DOCS}plots`, { recursive: true })
if (first !== undefined) publishRun(more.reduce(askedAgain, first))
for (const file of files) {
  if ('study' in file) publishStudy(file)
  if (!('kind' in file)) continue
  if (file.kind === 'redis') publishFleet(file)
  else if (file.kind === 'server') publishServer(file)
  else fill('benchmarks-edge.md', middlewareMarkdownParts(file))
}

function publishRun(results: Results): void {
  writeFileSync(`${DOCS}plots/over-keys.svg`, chartSvg(overKeys(results)))
  writeFileSync(`${DOCS}plots/over-workers.svg`, chartSvg(overWorkers(results)))
  fill('benchmarks.md', markdownParts(results))
}

function publishFleet(results: FleetResults): void {
  for (const [name, chart] of fleetPlots(results)) writeFileSync(`${DOCS}plots/${name}.svg`, chartSvg(chart))
  fill('benchmarks-redis.md', fleetMarkdownParts(results))
}

function publishServer(results: ServerResults): void {
  for (const [name, chart] of serverPlots(results)) writeFileSync(`${DOCS}plots/${name}.svg`, chartSvg(chart))
  fill('benchmarks-server.md', serverMarkdownParts(results))
}

function publishStudy(findings: StudyFindings): void {
  const study = STUDIES.get(findings.study)
  if (study === undefined) throw new Error(`no study ${findings.study}`)
  writeFileSync(`${DOCS}plots/${study.plotName}.svg`, study.plot(findings))
  fill('sliding-window-accuracy.md', new Map(study.tables(findings).map((table) => [table.name, tableMarkdown(table)])))
}

function fill(page: string, parts: ReadonlyMap<string, string>): void {
  writeFileSync(`${DOCS}${page}`, filled(readFileSync(`${DOCS}${page}`, 'utf8'), parts))
}

function askedAgain(earlier: Results, later: Results): Results {
  const again = (question: string): boolean => later.answers.some((answer) => answer.question === question)
  const answers = earlier.answers.flatMap((answer, index) => {
    if (!again(answer.question)) return [answer]
    const isFirst = earlier.answers.findIndex(({ question }) => question === answer.question) === index
    return isFirst ? later.answers.filter(({ question }) => question === answer.question) : []
  })
  const isNew = (question: string): boolean => !earlier.answers.some((answer) => answer.question === question)
  return { ...earlier, loadAfter: later.loadAfter, answers: [...answers, ...later.answers.filter(({ question }) => isNew(question))] }
}
