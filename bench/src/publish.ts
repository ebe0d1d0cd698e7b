// node bench/dist/publish.js RESULTS.json [MORE.json ...]: fills the tables of docs/benchmarks.md and draws its plots. The first is
// a run with --sweeps; questions that were asked again, or for the first time, come from the later ones. The results of a study
// fill docs/sliding-window-accuracy.md, alone or beside the others.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chartSvg } from './chart.js'
import { filled, markdownParts } from './markdown.js'
import { overKeys, overWorkers } from './plots.js'
import type { Results } from './results.js'
import { STUDIES } from './study/studies.js'
import { tableMarkdown } from './study/study-table.js'

const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url))

type StudyFindings = { readonly study: string }

const files = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, 'utf8')) as Results | StudyFindings)
const [first, ...more] = files.filter((file): file is Results => !('study' in file))
if (files.length === 0) {
  console.error('usage: node bench/dist/publish.js RESULTS.json [MORE.json ...]')
  process.exit(2)
}
mkdirSync(`${DOCS}plots`, { recursive: true })
if (first !== undefined) publishRun(more.reduce(askedAgain, first))
for (const findings of files) if ('study' in findings) publishStudy(findings)

function publishRun(results: Results): void {
  writeFileSync(`${DOCS}plots/over-keys.svg`, chartSvg(overKeys(results)))
  writeFileSync(`${DOCS}plots/over-workers.svg`, chartSvg(overWorkers(results)))
  fill('benchmarks.md', markdownParts(results))
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
