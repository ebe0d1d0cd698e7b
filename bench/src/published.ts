import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { accuracyTable, costTable, type GateResults } from 'sluicegate-testkit/gate/gate-tables.js'
import type { ChaosResults } from '../../chaos/dist/chaos-results.js'
import { RAW, RESULTS } from './bench-command.js'
import { chaosMarkdownParts } from './chaos/chaos-markdown.js'
import { chaosPlots } from './chaos/chaos-plots.js'
import { chartSvg } from './chart.js'
import { committedForm } from './committed-form.js'
import { gatePlots } from './gate/gate-plots.js'
import { filled, markdownParts } from './markdown.js'
import { middlewareMarkdownParts } from './middleware/middleware-markdown.js'
import { middlewarePlots } from './middleware/middleware-plot.js'
import type { MiddlewareResults } from './middleware/middleware-results.js'
import { overKeys, overWorkers } from './plots.js'
import { type PostgresResults, postgresMarkdownParts } from './postgres/postgres-results.js'
import { fleetMarkdownParts } from './redis/fleet-markdown.js'
import { fleetPlots } from './redis/fleet-plots.js'
import type { FleetResults } from './redis/fleet-results.js'
import { type RegionsResults, warmTable } from './regions/regions-results.js'
import type { ReplayResults } from './replay/replay-results.js'
import { replayTable } from './replay/replay-table.js'
import type { Results } from './results.js'
import { serverMarkdownParts } from './server/server-markdown.js'
import { serverPlots } from './server/server-plots.js'
import type { ServerResults } from './server/server-results.js'
import { tableMarkdown } from './tables.js'
import { type WorkersResults, workersTable } from './workers/workers-results.js'

/** What measures the results of a file. */
const COMMANDS: Readonly<Record<string, string>> = {
  'in-process': 'npm run bench -- --sweeps',
  algorithms: 'npm run bench -- --algorithms',
  middleware: 'npm run bench:edge',
  gate: 'npm run prove:gate -- --save',
  ...Object.fromEntries(['redis', 'server', 'regions', 'replay', 'workers'].map((name) => [name, `npm run bench:${name}`])),
}
const CHAOS_RESULTS = fileURLToPath(new URL('../../chaos/results/chaos.json', import.meta.url))

type AnyResults =
  | Results
  | FleetResults
  | MiddlewareResults
  | ServerResults
  | ChaosResults
  | PostgresResults
  | GateResults
  | RegionsResults
  | ReplayResults
  | WorkersResults

/** The files of results that this machine measured, and those that are committed whole. */
export function measuredResults(): readonly string[] {
  const names = existsSync(RAW) ? readdirSync(RAW).filter((name) => name.endsWith('.json')) : []
  return [...names.sort().map((name) => `${RAW}${name}`), `${RESULTS}postgres.json`, CHAOS_RESULTS]
}

/** The committed form of files of raw results, by name. */
export function committed(files: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    files
      .filter((file) => file.startsWith(RAW))
      .map((file) => [basename(file), committedForm(JSON.parse(readFileSync(file, 'utf8')), COMMANDS[basename(file, '.json')] ?? '')]),
  )
}

/**
 * The pages and plots made of files of results, by their paths in `docs`. Results of `npm run bench` may be more than one: the first is a run with
 * --sweeps; questions that were asked again, or for the first time, come from the later ones.
 *
 * @param pageText the text of a page as it is, with places for tables.
 */
export function published(files: readonly string[], pageText: (page: string) => string): ReadonlyMap<string, string> {
  const made = new Map<string, string>()
  const plot = (name: string, svg: string): void => void made.set(`plots/${name}.svg`, svg)
  const fill = (page: string, parts: ReadonlyMap<string, string>): void =>
    void made.set(page, filled(made.get(page) ?? pageText(page), parts))
  const results = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as AnyResults)
  const [first, ...more] = results.filter((each): each is Results => !('kind' in each))
  if (first !== undefined) {
    const run = more.reduce(askedAgain, first)
    plot('over-keys', chartSvg(overKeys(run)))
    plot('over-workers', chartSvg(overWorkers(run)))
    fill('benchmarks.md', markdownParts(run))
  }
  for (const each of results) {
    if ('kind' in each) {
      if (each.kind === 'redis') {
        for (const [name, chart] of fleetPlots(each)) plot(name, chartSvg(chart))
        fill('benchmarks-redis.md', fleetMarkdownParts(each))
      } else if (each.kind === 'server') {
        for (const [name, chart] of serverPlots(each)) plot(name, chartSvg(chart))
        for (const page of ['benchmarks-server.md', '../README.md']) fill(page, serverMarkdownParts(each))
      } else if (each.kind === 'gate') {
        for (const [name, chart] of gatePlots(each)) plot(name, chartSvg(chart))
        fill(
          'gate.md',
          new Map([
            ['gate-accuracy', accuracyTable(each.runs)],
            ['gate-costs', costTable(each)],
          ]),
        )
      } else if (each.kind === 'postgres') {
        fill('postgres.md', postgresMarkdownParts(each))
      } else if (each.kind === 'workers') {
        const table = workersTable(each)
        fill('benchmarks-edge.md', new Map([[table.name, tableMarkdown(table)]]))
      } else if (each.kind === 'replay' || each.kind === 'regions') {
        const table = each.kind === 'replay' ? replayTable(each) : warmTable(each)
        fill(`${each.kind}.md`, new Map([[table.name, tableMarkdown(table)]]))
      } else if (each.kind === 'chaos') {
        for (const [name, chart] of chaosPlots(each)) plot(name, chartSvg(chart))
        fill('chaos.md', chaosMarkdownParts(each))
      } else {
        for (const [name, chart] of middlewarePlots(each)) plot(name, chartSvg(chart))
        fill('benchmarks-edge.md', middlewareMarkdownParts(each))
      }
    }
  }
  return made
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
