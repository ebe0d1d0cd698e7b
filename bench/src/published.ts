import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { accuracyTable, costTable, type GateResults } from 'sluicegate-testkit/gate/gate-tables.js'
import type { ChaosResults } from '../../lab/dist/chaos/chaos-results.js'
import type { LabFiles } from '../../lab/dist/saved-runs.js'
import { chaosMarkdownParts, recoveriesOf } from './chaos/chaos-markdown.js'
import { type Chart, COLORS, chartSvg, type Line, overTimeSvg, panelsSvg } from './chart.js'
import { committedForm, RAW, RESULTS } from './committed-form.js'
import {
  comparedWays,
  labFigures,
  labSoak,
  oceanFigures,
  oceanPanels,
  scenarioPanels,
  soakOverTime,
  waysOverTime,
} from './lab/lab-markdown.js'
import { filled, machineTable, markdownParts, minuteOf, type Table, table, tableMarkdown, targetsTable } from './markdown.js'
import type { Measurement } from './measure.js'
import { FRAMEWORKS, type Framework, type MiddlewareSetting, RIVALS, type Side } from './middleware/middleware-settings.js'
import { addedBy, figureOf, type MiddlewareResults, middlewareTables, middlewareVerdicts, runsOf } from './middleware/middleware-tables.js'
import { type PostgresResults, postgresMarkdownParts } from './postgres/postgres-results.js'
import { of } from './question.js'
import { KEY_COUNTS, SWEPT, sweepName, WORKER_COUNTS, workersName } from './questions.js'
import type { FleetResults } from './redis/fleet-report.js'
import { fleetMarkdownParts, fleetPlots } from './redis/fleet-report.js'
import type { Results } from './report.js'
import type { Summary } from './samples.js'
import type { ServerResults } from './server/server-tables.js'
import { serverMarkdownParts, serverPlots } from './server/server-tables.js'
import { type RegionsResults, type ReplayResults, replayTable, type WorkersResults, warmTable, workersTable } from './small-tables.js'

/** Nanoseconds a decision over the number of keys. */
function overKeys(results: Results): Chart {
  const measurements = measurementsOf(results, 'keys-sweep')
  const lines = SWEPT.map((contender, index): Line => {
    const points = KEY_COUNTS.map((keys) => {
      const { ns } = of(measurements, sweepName(contender, keys))
      return { x: keys.toLocaleString('en'), y: ns.median, low: ns.lowerQuartile, high: ns.upperQuartile }
    })
    return { name: contender, color: COLORS[index] as string, points }
  })
  const title = 'Nanoseconds a decision over the number of keys'
  const subtitle = `Keys in random order, one thread, median and quartiles. ${where(results)}`
  return { title, subtitle, xName: 'keys', yName: 'ns a decision', yScale: 'log', lines }
}

/** Decisions a second over the number of worker threads. */
function overWorkers(results: Results): Chart {
  const measurements = measurementsOf(results, 'workers-sweep')
  const kinds = [
    ['lock-free', 'compare-and-swap (Sluicegate)'],
    ['mutex', 'the same under a mutex (Atomics.wait)'],
  ] as const
  const lines = kinds.map(([store, name], index): Line => {
    const points = WORKER_COUNTS.map((workers) => {
      const { ns } = of(measurements, workersName(store, workers))
      return { x: String(workers), y: 1e3 / ns.median, low: 1e3 / ns.upperQuartile, high: 1e3 / ns.lowerQuartile }
    })
    return { name, color: COLORS[index * 3] as string, points }
  })
  const title = 'Decisions a second on one hot key'
  const subtitle = `All workers together, bound key, coarse clock. ${where(results)}`
  return { title, subtitle, xName: 'worker threads', yName: 'million a second', yScale: 'value', lines }
}

function measurementsOf({ answers }: Results, question: string): readonly Measurement[] {
  const found = answers.find((answer) => answer.question === question)
  if (found === undefined) throw new Error(`no ${question} in these results: run the benchmarks with --sweeps`)
  return found.measurements
}

function where({ machine, startedAt }: Results): string {
  return `${machine.cpu}, ${machine.cores} cores, Node ${machine.node.split(' ')[0]}, ${startedAt.slice(0, 10)}`
}

const NS_PER_US = 1_000

/** What each side adds to a request that passes, and what a denied one costs, by framework. */
function middlewarePlots(results: MiddlewareResults): ReadonlyMap<string, Chart> {
  return new Map([
    ['middleware-allow', chartOf(results, 'allow')],
    ['middleware-deny', chartOf(results, 'deny')],
  ])
}

function chartOf(results: MiddlewareResults, outcome: MiddlewareSetting['outcome']): Chart {
  const { cpu, cores, node } = results.machine
  const line = (side: Side, index: number): Line => ({
    name: side === 'rival' ? 'the usual limiter of the framework' : 'Sluicegate',
    color: COLORS[index] as string,
    points: FRAMEWORKS.map((framework) => ({ x: framework, ...microseconds(summaryFor(results, framework, outcome, side)) })),
  })
  return {
    title: outcome === 'allow' ? 'Added to a request that passes' : 'A request that is denied, whole',
    subtitle: `One IPv4 address, same headers, median and quartiles. ${cpu}, ${cores} cores, Node ${node.split(' ')[0]}, ${results.startedAt.slice(0, 10)}`,
    xName: FRAMEWORKS.map((framework) => `${framework}: ${RIVALS[framework]}`).join(', '),
    yName: 'µs',
    yScale: 'value',
    hasNoLines: true,
    lines: (['sluicegate', 'rival'] as const).map(line),
  }
}

function summaryFor({ added }: MiddlewareResults, framework: Framework, outcome: MiddlewareSetting['outcome'], side: Side): Summary {
  const runs = runsOf(added, { framework, options: 'same', outcome, clients: 'one' })
  const ns = (found: { readonly ns: number }): number => found.ns
  return outcome === 'allow' ? addedBy(runs, side, ns) : figureOf(runs, side, ns)
}

function microseconds({ median, lowerQuartile, upperQuartile }: Summary): { y: number; low: number; high: number } {
  return { y: median / NS_PER_US, low: lowerQuartile / NS_PER_US, high: upperQuartile / NS_PER_US }
}

/** The parts of the page about the middleware that come out of a run, by the names of their places in it. */
function middlewareMarkdownParts(results: MiddlewareResults): ReadonlyMap<string, string> {
  const tables = middlewareTables(results)
  return new Map([
    ['middleware-machine', machineTable(results, machineRows(results))],
    ['middleware-targets', targetsTable(middlewareVerdicts(results))],
    ['middleware-added', addedTable(tables)],
    ...tables
      .filter(({ name }) => name === 'middleware-sockets')
      .map((each): [string, string] => [each.name, tableMarkdown({ ...each, rows: each.rows.filter(isShown) })]),
  ])
}

/** The most used settings of all frameworks: those with the same headers on both sides, and of Express all. */
function isShown([name = '']: readonly string[]): boolean {
  return name.startsWith('express:') || !/defaults|mapped|IPv6/.test(name)
}

/** What a request that passes, or is denied, costs with each framework; the spread is that of the ratio. */
function addedTable(tables: readonly Table[]): string {
  const rows = tables.flatMap(({ name, rows }) => {
    const framework = /^middleware-(\w+)-(allow|deny)$/.exec(name)?.[1]
    if (framework === undefined) return []
    return rows.map(([setting, ours = '', , theirs = '', , ratio = '', spread = '', alone = '']) => [
      `${framework}: ${setting}`,
      ours,
      theirs,
      ratio,
      spread,
      alone,
    ])
  })
  const head = ['ns', 'sluicegate', 'rival', 'ratio', 'quartiles', 'the app']
  return table(head, rows.filter(isShown))
}

function machineRows({ startedAt, rivals, effort }: MiddlewareResults): string[][] {
  const versions = (names: readonly string[]): string => names.map((name) => `${name} ${rivals[name]}`).join(', ')
  const { added, allocationRuns, sockets } = effort
  return [
    ['frameworks', versions([...FRAMEWORKS, '@hono/node-server'])],
    ['rivals', versions(FRAMEWORKS.map((framework) => RIVALS[framework]))],
    [
      'run',
      `${minuteOf(startedAt)}; without sockets ${added.repeats} repeats in each of ${added.lives} processes; ` +
        `allocations in ${allocationRuns} processes each; over sockets ${sockets.runs} runs of ${sockets.ms} ms`,
    ],
  ]
}

/** The delay of verdicts beside the stated one, and the error of counts beside its bound, by the names of the plots' files. */
function gatePlots({ runs, where }: GateResults): ReadonlyMap<string, Chart> {
  return new Map([
    [
      'gate-delay',
      {
        title: 'Delay of a verdict after the threshold is exceeded',
        subtitle: `Median, up to the longest. ${where}`,
        xName: 'run',
        yName: 'ms',
        yScale: 'value',
        hasNoLines: true,
        lines: [
          {
            name: 'measured',
            color: COLORS[0] as string,
            points: runs.map(({ name, result: { delaysMs } }) => ({
              x: name,
              y: delaysMs.median,
              low: delaysMs.median,
              high: delaysMs.most,
            })),
          },
          { name: 'stated', color: COLORS[1] as string, points: runs.map(({ name, result }) => exactly(name, result.statedDelayMs)) },
        ],
      },
    ],
    [
      'gate-error',
      {
        title: 'Error of a count, in requests',
        subtitle: `Mean, up to the largest. ${where}`,
        xName: 'run',
        yName: 'requests',
        yScale: 'log',
        hasNoLines: true,
        lines: [
          {
            name: 'measured',
            color: COLORS[0] as string,
            points: runs.map(({ name, result: { error } }) => ({ x: name, y: error.mean, low: error.mean, high: error.most })),
          },
          { name: 'bound', color: COLORS[1] as string, points: runs.map(({ name, result }) => exactly(name, result.error.bound)) },
        ],
      },
    ],
  ])
}

function exactly(x: string, y: number): { x: string; y: number; low: number; high: number } {
  return { x, y, low: y, high: y }
}

type Subjects = ChaosResults['failover']['subjects']

/** How long after a kill the store decided about every key again, by the name of the plot's file. */
function chaosPlots({ node, failover, sentinel, mixed }: ChaosResults): ReadonlyMap<string, Chart> {
  return new Map([
    [
      'chaos-recovery',
      recovery('client and mode', `${failover.failovers} failovers of a cluster, ${sentinel.failovers} by Sentinel; Node ${node}`, [
        lineOf('cluster', 0, failover.subjects),
        lineOf('Sentinel', 1, sentinel.subjects),
      ]),
    ],
    [
      'chaos-mixed',
      recovery('settings side by side', `${mixed.failovers} failovers of a cluster, ${mixed.date}; Node ${node}`, [
        lineOf('cluster', 0, mixed.subjects),
      ]),
    ],
  ])
}

function recovery(xName: string, measured: string, lines: readonly Line[]): Chart {
  return {
    title: 'Time from a kill until the store decides about every key',
    subtitle: `Median, least and most of ${measured}`,
    xName,
    yName: 'ms',
    yScale: 'value',
    hasNoLines: true,
    lines,
  }
}

function lineOf(name: string, color: number, subjects: Subjects): Line {
  const points = subjects.map((subject) => {
    const { least, median, most } = recoveriesOf(subject)
    return { x: subject.name, y: median, low: least, high: most }
  })
  return { name, color: COLORS[color] as string, points }
}

/** What measures the results of a file. */
const COMMANDS: Readonly<Record<string, string>> = {
  'in-process': 'npm run bench -- --sweeps',
  algorithms: 'npm run bench -- --algorithms',
  middleware: 'npm run bench:edge',
  gate: 'npm run prove:gate -- --save',
  ...Object.fromEntries(['redis', 'server', 'regions', 'replay', 'workers'].map((name) => [name, `npm run bench:${name}`])),
}
const LAB_RESULTS = fileURLToPath(new URL('../../lab/results/', import.meta.url))

/** The files of the lab, each with its name. */
type LabResults = { [Name in keyof LabFiles]: LabFiles[Name] & { readonly kind: Name } }[keyof LabFiles]

type AnyResults =
  | LabResults
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
  return [
    ...names.sort().map((name) => `${RAW}${name}`),
    `${RESULTS}postgres.json`,
    ...readdirSync(LAB_RESULTS)
      .sort()
      .map((name) => `${LAB_RESULTS}${name}`),
  ]
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
      } else if (each.kind === 'lab') {
        plot('lab-scenarios', panelsSvg('Rate against budget while parts of the system fail', each.where, scenarioPanels(each)))
        fill('lab.md', new Map([['lab-figures', labFigures(each)]]))
      } else if (each.kind === 'ocean') {
        plot('lab-ocean', panelsSvg('Rate of three regions against their one budget', each.where, oceanPanels(each)))
        fill('lab.md', new Map([['lab-ocean', oceanFigures(each)]]))
      } else if (each.kind === 'soak') {
        plot('lab-soak', overTimeSvg(soakOverTime(each)))
        fill('lab.md', new Map([['lab-soak', labSoak(each)]]))
      } else if (each.kind === 'ocean-soak') {
        fill('lab.md', new Map([['lab-ocean-soak', labSoak(each)]]))
      } else if (each.kind === 'many-servers') {
        plot('many-servers', overTimeSvg(waysOverTime(each)))
        fill('many-servers.md', new Map([['ways', comparedWays(each)]]))
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
