import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { accuracyTable, costTable, type GateResults } from 'sluicegate-testkit/gate/gate-tables.js'
import type { ChaosResults } from '../../lab/dist/chaos/main.js'
import { chaosReport } from './chaos/chaos-report.js'
import { chartSvg } from './chart.js'
import { committedForm, RAW, RESULTS } from './committed-form.js'
import { inProcessReport, type Results } from './in-process-report.js'
import { type LabResults, labReport } from './lab/lab-report.js'
import { type MiddlewareResults, middlewareReport } from './middleware/middleware-report.js'
import { type PostgresResults, postgresReport } from './postgres/postgres-results.js'
import { type FleetResults, fleetReport } from './redis/fleet-report.js'
import { pageWith, type Report } from './report.js'
import { type ServerResults, serverReport } from './server/server-report.js'
import { type RegionsResults, type ReplayResults, regionsReport, replayReport, type WorkersResults, workersReport } from './small-tables.js'

/** The delay of verdicts beside the stated one, and the error of counts beside its bound. */
function gateReport(results: GateResults): Report {
  const { runs, where } = results
  type Result = (typeof runs)[number]['result']
  const chart =
    (title: string, yName: string, yScale: 'value' | 'log', bound: string, of: (result: Result) => readonly [number, number, number]) =>
    () => {
      const points = (at: (values: readonly [number, number, number]) => readonly [number, number]) =>
        runs.map(({ name, result }) => {
          const [low, high] = at(of(result))
          return { x: name, y: low, low, high }
        })
      const lines = [
        { name: 'measured', points: points(([usual, most]) => [usual, most]) },
        { name: bound, points: points(([, , stated]) => [stated, stated]) },
      ]
      return chartSvg({
        title,
        subtitle: `${yName === 'ms' ? 'Median, up to the longest' : 'Mean, up to the largest'}. ${where}`,
        xName: 'run',
        yName,
        yScale,
        hasNoLines: true,
        lines,
      })
    }
  return {
    pages: ['gate.md'],
    tables: [],
    texts: { 'gate-accuracy': accuracyTable(runs), 'gate-costs': costTable(results) },
    plots: {
      'gate-delay': chart('Delay of a verdict after the threshold is exceeded', 'ms', 'value', 'stated', ({ delaysMs, statedDelayMs }) => [
        delaysMs.median,
        delaysMs.most,
        statedDelayMs,
      ]),
      'gate-error': chart('Error of a count, in requests', 'requests', 'log', 'bound', ({ error }) => [
        error.mean,
        error.most,
        error.bound,
      ]),
    },
  }
}

/** What is said of the results of each kind. */
const REPORTS: { readonly [Kind in AnyResults['kind']]: (results: Extract<AnyResults, { readonly kind: Kind }>) => Report } = {
  redis: fleetReport,
  server: serverReport,
  middleware: middlewareReport,
  gate: gateReport,
  postgres: postgresReport,
  workers: workersReport,
  replay: replayReport,
  regions: regionsReport,
  chaos: chaosReport,
  lab: labReport,
  soak: labReport,
  ocean: labReport,
  'ocean-soak': labReport,
  'many-servers': labReport,
}

type AnyResults =
  | LabResults
  | FleetResults
  | MiddlewareResults
  | ServerResults
  | ChaosResults
  | PostgresResults
  | GateResults
  | RegionsResults
  | ReplayResults
  | WorkersResults

/** What measures the results of a file. */
const COMMANDS: Readonly<Record<string, string>> = {
  'in-process': 'npm run bench -- --sweeps',
  algorithms: 'npm run bench -- --algorithms',
  middleware: 'npm run bench:edge',
  gate: 'npm run prove:gate -- --save',
  ...Object.fromEntries(['redis', 'server', 'regions', 'replay', 'workers'].map((name) => [name, `npm run bench:${name}`])),
}
const LAB_RESULTS = fileURLToPath(new URL('../../lab/results/', import.meta.url))

/** The files of results that this machine measured, and those that are committed whole. */
export function measuredResults(): readonly string[] {
  const filesIn = (folder: string): string[] =>
    existsSync(folder)
      ? readdirSync(folder)
          .filter((name) => name.endsWith('.json'))
          .sort()
          .map((name) => `${folder}${name}`)
      : []
  return [...filesIn(RAW), `${RESULTS}postgres.json`, ...filesIn(LAB_RESULTS)]
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
 * --sweeps.
 *
 * @param pageText the text of a page as it is, with places for tables.
 */
export function published(files: readonly string[], pageText: (page: string) => string): ReadonlyMap<string, string> {
  const results = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as AnyResults | Results)
  const [first, ...later] = results.filter((each): each is Results => !('kind' in each))
  const others = results.flatMap((each) => ('kind' in each ? [(REPORTS[each.kind] as (of: AnyResults) => Report)(each)] : []))
  const made = new Map<string, string>()
  for (const report of [...(first === undefined ? [] : [inProcessReport(first, later)]), ...others]) {
    for (const [name, svg] of Object.entries(report.plots ?? {})) made.set(`plots/${name}.svg`, svg())
    for (const page of report.pages) made.set(page, pageWith(made.get(page) ?? pageText(page), report))
  }
  return made
}
