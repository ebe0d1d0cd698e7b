import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { inColumns } from 'sluicegate-testkit/markdown-tables.js'
import { type Chart, COLORS, type Line } from '../chart.js'
import type { Machine } from '../machine.js'
import { machineTable, minuteOf, type Table, tableMarkdown, targetsTable } from '../markdown.js'
import type { Verdict } from '../question.js'
import { figure, whole } from '../report.js'
import { ratios, type Summary, summaryOf } from '../samples.js'
import { CALLERS, type Cell, type CellResult, cellName, type FleetRun, MOST_CALLERS, SHAPES, type Shape } from './cell.js'
import { FLEET_CONTENDER_NAMES, type FleetContenderName } from './contenders.js'
import { TOPOLOGIES, type Topology } from './servers.js'
import { FIGURES, type FleetEffort, figureOf, latencyOf } from './stint.js'

/** All cells, and where they were measured: what tables, plots and verdicts are made from. */
export interface FleetResults {
  readonly kind: 'redis'
  readonly finishedAt: string
  readonly machine: Machine
  /** Name and version, such as `Redis 7.0.15`. */
  readonly server: string
  readonly rivals: Readonly<Record<string, string>>
  readonly effort: FleetEffort
  readonly loadBefore: number
  readonly loadAfter: number
  readonly cells: readonly CellResult[]
}

/** A cell's result; undefined when it was not measured. */
function resultOf({ cells }: FleetResults, wanted: Cell): CellResult | undefined {
  return cells.find(({ cell, runs }) => {
    const isIt = cell.contender === wanted.contender && cell.topology === wanted.topology && cell.shape === wanted.shape
    return isIt && cell.callers === wanted.callers && cell.pace === wanted.pace && runs.length > 0
  })
}

const SERVERS: Readonly<Record<Topology, string>> = { standalone: 'one server', cluster: 'cluster' }

/** The targets, each by its median, as far as the cells are there. A ratio is taken between runs of the same round. */
export function fleetVerdicts(results: FleetResults): Verdict[] {
  return TOPOLOGIES.flatMap((topology) => {
    const at = (contender: FleetContenderName, shape: Shape): CellResult | undefined =>
      resultOf(results, { contender, topology, shape, callers: MOST_CALLERS, pace: 0 })
    const leased = at('sluicegate leased', 'per_user')
    const where = SERVERS[topology]
    return [
      ...atLeastTimes(`leased over exact, a key each, ops/s, ${where}`, leased, at('sluicegate exact', 'per_user'), 50),
      ...(leased === undefined ? [] : leasedVerdicts(leased, where)),
      ...atLeastTimes(
        `leased over exact, one hot key, ops/s, ${where}`,
        at('sluicegate leased', 'hot_key'),
        at('sluicegate exact', 'hot_key'),
        100,
      ),
      ...(['per_user', 'hot_key'] as const).flatMap((shape) => exactVerdicts(at, shape, where)),
    ]
  })
}

function leasedVerdicts(leased: CellResult, where: string): Verdict[] {
  const calls = figureOf(leased, 'callsPerAdmitted')
  const use = figureOf(leased, 'leasedBudgetPercent')
  const over = figureOf(leased, 'overGrant')
  return [
    {
      what: `leased, a key each: calls an admitted token, ${where}`,
      target: '<= 0.06',
      measured: calls,
      unit: 'calls',
      met: calls.median <= 0.06,
    },
    {
      what: `leased, a key each: of burst - rate * L + rate * t, ${where}`,
      target: '>= 99 %',
      measured: use,
      unit: '%',
      met: use.median >= 99,
    },
    // One token too many in one run is one too many.
    { what: `leased, a key each: over-grant, ${where}`, target: '0', measured: over, unit: 'tokens', met: over.max === 0 },
  ]
}

function exactVerdicts(
  at: (contender: FleetContenderName, shape: Shape) => CellResult | undefined,
  shape: Shape,
  where: string,
): Verdict[] {
  const keys = shape === 'per_user' ? 'a key each' : 'one hot key'
  const pairs = [
    ['node-redis', at('sluicegate exact', shape), at('rate-limiter-flexible', shape)],
    ['ioredis', at('sluicegate exact, ioredis', shape), at('rate-limiter-flexible, ioredis', shape)],
  ] as const
  return pairs.flatMap(([client, ours, theirs]) =>
    atLeastTimes(`exact over rate-limiter-flexible, both on ${client}, ${keys}, ops/s, ${where}`, ours, theirs, 1.2),
  )
}

function atLeastTimes(what: string, over: CellResult | undefined, under: CellResult | undefined, bound: number): Verdict[] {
  if (over === undefined || under === undefined) return []
  const runs = Math.min(over.runs.length, under.runs.length)
  const opsPerS = (result: CellResult): number[] => result.runs.slice(0, runs).map(FIGURES.opsPerS)
  const measured = summaryOf(ratios(opsPerS(over), opsPerS(under)))
  return [{ what, target: `>= ${bound}`, measured, unit: 'x', met: measured.median >= bound }]
}

/** On one client, so that the lines differ in nothing else. */
const DRAWN: readonly FleetContenderName[] = [
  'sluicegate leased',
  'sluicegate exact',
  'rate-limiter-flexible',
  'batch borrow',
  "Lua, server's clock",
  'MULTI/EXEC, racy',
  'WATCH/MULTI/EXEC',
]
const MORE_COLORS = ['#7c5cc4', '#a08c2c']

/** Decisions a second over the number of callers: a plot for each kind of server and of keys, by the name of its file. */
export function fleetPlots(results: FleetResults): ReadonlyMap<string, Chart> {
  const plots = TOPOLOGIES.flatMap((topology) =>
    SHAPES.map((shape): [string, Chart] => [`redis-${topology}-${shape.replace('_', '-')}`, overCallers(results, topology, shape)]),
  )
  return new Map(plots.filter(([, { lines }]) => lines.length > 0))
}

function overCallers(results: FleetResults, topology: Topology, shape: Shape): Chart {
  const lines = DRAWN.flatMap((contender, index): Line[] => {
    const points = CALLERS.flatMap((callers) => {
      const result = resultOf(results, { contender, topology, shape, callers, pace: 0 })
      if (result === undefined) return []
      const { median, lowerQuartile, upperQuartile } = figureOf(result, 'opsPerS')
      return [{ x: String(callers), y: median, low: lowerQuartile, high: upperQuartile }]
    })
    return points.length === CALLERS.length ? [{ name: contender, color: [...COLORS, ...MORE_COLORS][index] as string, points }] : []
  })
  const keys = shape === 'hot_key' ? 'one hot key' : 'a key for each caller'
  const servers = topology === 'cluster' ? 'a cluster of three primaries' : 'one server'
  const title = `Decisions a second, ${keys}, ${servers}`
  const { machine } = results
  const subtitle = `Median and quartiles, node-redis. ${machine.cpu}, ${machine.cores} cores for load and servers, Node ${machine.node.split(' ')[0]}, ${results.finishedAt.slice(0, 10)}`
  return { title, subtitle, xName: 'callers', yName: 'decisions a second', yScale: 'log', lines }
}

/** Questions a second where they come at a steady pace: fewer than most contenders can answer, and 39 a second for each of 256 keys. */
const PACE_PER_S = 10_000

/** What is measured side by side: cells that differ only in who decides. */
export function cellGroups(
  topology: Topology,
  contenders: readonly FleetContenderName[] = FLEET_CONTENDER_NAMES,
): readonly (readonly Cell[])[] {
  return SHAPES.flatMap((shape) => {
    const closed = CALLERS.map((callers) => ({ topology, shape, callers, pace: 0 }))
    const paced = { topology, shape, callers: MOST_CALLERS, pace: PACE_PER_S }
    return [...closed, paced].map((setting) => contenders.map((contender) => ({ contender, ...setting })))
  })
}

/** A file for each cell, written after each run: what was interrupted goes on where it stopped. Other cells are those of the last results. */
export class CellFiles {
  private readonly folder: string
  private readonly saved: ReadonlyMap<string, CellResult>

  /** @param resultsFile of runs that came to their end; it need not exist. */
  constructor(folder: string, resultsFile: string) {
    this.folder = folder
    const { cells } = existsSync(resultsFile) ? (JSON.parse(readFileSync(resultsFile, 'utf8')) as FleetResults) : { cells: [] }
    this.saved = new Map(cells.map((result) => [cellName(result.cell), result]))
    mkdirSync(folder, { recursive: true })
  }

  read(cell: Cell): CellResult {
    const file = this.fileOf(cell)
    return existsSync(file)
      ? (JSON.parse(readFileSync(file, 'utf8')) as CellResult)
      : (this.saved.get(cellName(cell)) ?? { cell, runs: [] })
  }

  add(cell: Cell, run: FleetRun): void {
    const result: CellResult = { cell, runs: [...this.read(cell).runs, run] }
    writeFileSync(this.fileOf(cell), `${JSON.stringify(result)}\n`)
  }

  private fileOf(cell: Cell): string {
    return `${this.folder}/${cellName(cell)}.json`
  }
}

const KEYS: Readonly<Record<Shape, string>> = { per_user: 'a key for each caller', hot_key: 'one hot key' }
const SERVER_TITLES: Readonly<Record<Topology, string>> = { standalone: 'one server', cluster: 'a cluster of 3 + 3' }
const PERCENTILES = {
  p50: (result: CellResult): string => duration(latencyOf(result, 'all', 'p50Ns')),
  p99: (result: CellResult): string => duration(latencyOf(result, 'all', 'p99Ns')),
  'p99.9': (result: CellResult): string => duration(latencyOf(result, 'all', 'p999Ns')),
}

/** Every table of a run, by the name of its place in the page. What was not measured is left out. */
export function fleetTables(results: FleetResults): Table[] {
  const ofTopology = TOPOLOGIES.flatMap((topology) => [
    ...SHAPES.map((shape) => judgedTable(results, topology, shape)),
    pacedTable(results, topology),
  ])
  return ofTopology.filter(({ rows }) => rows.length > 0)
}

/** Everything at 256 callers. */
function judgedTable(results: FleetResults, topology: Topology, shape: Shape): Table {
  const cells = measured(results, { topology, shape, callers: MOST_CALLERS, pace: 0 })
  return {
    name: `${topology}-${shape}`,
    title: `${MOST_CALLERS} callers, ${KEYS[shape]}, ${SERVER_TITLES[topology]}`,
    ...inColumns(cells, {
      '': ({ cell }) => cell.contender,
      'decisions/s': (result) => whole(figureOf(result, 'opsPerS').median),
      'min..max': (result) => `${whole(figureOf(result, 'opsPerS').min)}..${whole(figureOf(result, 'opsPerS').max)}`,
      'calls a request': (result) => share(figureOf(result, 'callsPerRequest').median),
      'calls an admitted token': (result) => share(figureOf(result, 'callsPerAdmitted').median),
      'budget used': (result) => `${figure(figureOf(result, 'budgetPercent').median)} %`,
      'over-grant': (result) => whole(figureOf(result, 'overGrant').max),
      'without store': (result) => whole(figureOf(result, 'withoutStore').max),
      ...PERCENTILES,
    }),
  }
}

/** A steady pace, timed from when each question was due. */
function pacedTable(results: FleetResults, topology: Topology): Table {
  const cells = SHAPES.flatMap((shape) => measured(results, { topology, shape, callers: MOST_CALLERS, pace: PACE_PER_S }))
  return {
    name: `${topology}-paced`,
    title: `${whole(PACE_PER_S)} questions a second, from when each was due, ${SERVER_TITLES[topology]}`,
    ...inColumns(cells, {
      '': ({ cell }) => cell.contender,
      keys: ({ cell }) => KEYS[cell.shape],
      'answers/s': (result) => whole(figureOf(result, 'opsPerS').median),
      'calls a request': (result) => share(figureOf(result, 'callsPerRequest').median),
      ...PERCENTILES,
      longest: (result) => duration(latencyOf(result, 'all', 'maxNs')),
    }),
  }
}

function measured(results: FleetResults, setting: Omit<Cell, 'contender'>): CellResult[] {
  return FLEET_CONTENDER_NAMES.flatMap((contender) => resultOf(results, { contender, ...setting }) ?? [])
}

function duration(ns: Summary | undefined): string {
  if (ns === undefined) return '-'
  const { median } = ns
  if (median < 1e3) return `${figure(median)} ns`
  return median < 1e6 ? `${figure(median / 1e3)} µs` : `${figure(median / 1e6)} ms`
}

/** Calls a request: far below one where they are few. */
function share(value: number): string {
  if (!Number.isFinite(value)) return '-'
  return value.toFixed(value >= 0.1 ? 2 : value >= 0.01 ? 3 : 5)
}

/** The parts of the page about the fleet that come out of a run, by the names of their places in it. */
export function fleetMarkdownParts(results: FleetResults): ReadonlyMap<string, string> {
  const paced = fleetTables(results).find(({ name }) => name === 'standalone-paced')
  return new Map([
    ['redis-machine', machineTable(results, machineRows(results), ': the servers and the load share them')],
    ['redis-targets', targetsTable(fleetVerdicts(results))],
    ...(paced === undefined ? [] : [[paced.name, tableMarkdown(onPage(paced))] as const]),
  ])
}

/** Of the steady pace one hot key alone, without columns that stay in the results. */
function onPage(each: Table): Table {
  const left = each.head.flatMap((name, column) => (OFF_PAGE.has(name) ? [] : [column]))
  const cells = (row: readonly string[]): string[] => left.map((column) => row[column] ?? '')
  const rows = each.rows.filter((row) => !row.includes('a key for each caller'))
  return { ...each, head: cells(each.head), rows: rows.map(cells) }
}

const OFF_PAGE: ReadonlySet<string> = new Set(['calls a request', 'p99.9', 'keys'])

function machineRows({ finishedAt, server, rivals, effort }: FleetResults): string[][] {
  const clients = ['@redis/client', 'ioredis', 'rate-limiter-flexible'].map((name) => `${name} ${rivals[name]}`)
  const { runs, longMs, shortMs } = effort
  return [
    ['server', `${server}, on loopback, nothing kept on disk`],
    ['clients and rivals', clients.join(', ')],
    ['run', `finished ${minuteOf(finishedAt)}, ${runs} runs of ${longMs / 1000} s at 256 callers, of ${shortMs / 1000} s elsewhere`],
  ]
}
