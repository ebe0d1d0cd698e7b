import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { ratioOf, type Summary } from 'sluicegate-testkit/samples.js'
import { type Chart, chartSvg, type Line, measuredOn, pointOf } from '../chart.js'
import type { Machine } from '../machine.js'
import { type Claim, claim, claimsTable, machineTable, type Report } from '../report.js'
import { figure, minuteOf, type Table, tableOf, whole } from '../table.js'
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
function fleetClaims(results: FleetResults): Claim[] {
  return TOPOLOGIES.flatMap((topology) => {
    const at = (contender: FleetContenderName, shape: Shape): CellResult | undefined =>
      resultOf(results, { contender, topology, shape, callers: MOST_CALLERS, pace: 0 })
    const where = SERVERS[topology]
    const over = (what: string, ours: FleetContenderName, theirs: FleetContenderName, shape: Shape, times: number): Claim[] =>
      timesClaim(
        `${what}, ${shape === 'per_user' ? 'a key each' : 'one hot key'}, ops/s, ${where}`,
        at(ours, shape),
        at(theirs, shape),
        times,
      )
    const leased = at('sluicegate leased', 'per_user')
    return [
      ...over('leased over exact', 'sluicegate leased', 'sluicegate exact', 'per_user', 50),
      ...(leased === undefined ? [] : leasedClaims(leased, where)),
      ...over('leased over exact', 'sluicegate leased', 'sluicegate exact', 'hot_key', 100),
      ...SHAPES.flatMap((shape) => [
        ...over('exact over rate-limiter-flexible, both on node-redis', 'sluicegate exact', 'rate-limiter-flexible', shape, 1.2),
        ...over(
          'exact over rate-limiter-flexible, both on ioredis',
          'sluicegate exact, ioredis',
          'rate-limiter-flexible, ioredis',
          shape,
          1.2,
        ),
      ]),
    ]
  })
}

function leasedClaims(leased: CellResult, where: string): Claim[] {
  const over = figureOf(leased, 'overGrant')
  return [
    claim(`leased, a key each: calls an admitted token, ${where}`, figureOf(leased, 'callsPerAdmitted'), '<= 0.06', 'calls'),
    claim(`leased, a key each: of burst - rate * L + rate * t, ${where}`, figureOf(leased, 'leasedBudgetPercent'), '>= 99 %'),
    // One token too many in one run is one too many.
    { what: `leased, a key each: over-grant, ${where}`, target: '0', measured: over, unit: 'tokens', met: over.max === 0 },
  ]
}

function timesClaim(what: string, over: CellResult | undefined, under: CellResult | undefined, bound: number): Claim[] {
  if (over === undefined || under === undefined) return []
  const runs = Math.min(over.runs.length, under.runs.length)
  const opsPerS = (result: CellResult): number[] => result.runs.slice(0, runs).map(FIGURES.opsPerS)
  return [claim(what, ratioOf(opsPerS(over), opsPerS(under)), `>= ${bound}`)]
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

/** Decisions a second over the number of callers: a plot for each kind of server and of keys, by the name of its file. */
function fleetPlots(results: FleetResults): NonNullable<Report['plots']> {
  const charts = TOPOLOGIES.flatMap((topology) =>
    SHAPES.map((shape) => [`redis-${topology}-${shape.replace('_', '-')}`, overCallers(results, topology, shape)] as const),
  )
  return Object.fromEntries(charts.filter(([, { lines }]) => lines.length > 0).map(([name, chart]) => [name, () => chartSvg(chart)]))
}

function overCallers(results: FleetResults, topology: Topology, shape: Shape): Chart {
  const lines = DRAWN.flatMap((contender): Line[] => {
    const points = CALLERS.flatMap((callers) => {
      const result = resultOf(results, { contender, topology, shape, callers, pace: 0 })
      return result === undefined ? [] : [pointOf(String(callers), figureOf(result, 'opsPerS'))]
    })
    return points.length === CALLERS.length ? [{ name: contender, points }] : []
  })
  const servers = topology === 'cluster' ? 'a cluster of three primaries' : 'one server'
  const title = `Decisions a second, ${KEYS[shape]}, ${servers}`
  const subtitle = `Median and quartiles, node-redis. ${measuredOn(results.machine, results.finishedAt, ' for load and servers')}`
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

/** What a run says. What was not measured is left out. */
export function fleetReport(results: FleetResults): Report {
  const { finishedAt, server, rivals, effort } = results
  const rows = {
    server: `${server}, on loopback, nothing kept on disk`,
    'clients and rivals': ['@redis/client', 'ioredis', 'rate-limiter-flexible'].map((name) => `${name} ${rivals[name]}`).join(', '),
    run: `finished ${minuteOf(finishedAt)}, ${effort.runs} runs of ${effort.longMs / 1000} s at 256 callers, of ${effort.shortMs / 1000} s elsewhere`,
  }
  return {
    pages: ['benchmarks-redis.md'],
    tables: [
      machineTable('redis-machine', results, rows, ': the servers and the load share them'),
      claimsTable('redis-targets', fleetClaims(results)),
      ...TOPOLOGIES.flatMap((topology) => [...SHAPES.map((shape) => judgedTable(results, topology, shape)), pacedTable(results, topology)]),
    ],
    plots: fleetPlots(results),
  }
}

/** Everything at 256 callers. */
function judgedTable(results: FleetResults, topology: Topology, shape: Shape): Table {
  const name = `${topology}-${shape}`
  const title = `${MOST_CALLERS} callers, ${KEYS[shape]}, ${SERVER_TITLES[topology]}`
  const offPage = { columns: ['min..max', 'calls a request', 'without store', 'p99.9'] }
  return tableOf({ name, title, offPage }, measured(results, { topology, shape, callers: MOST_CALLERS, pace: 0 }), {
    '': ({ cell }) => cell.contender,
    'decisions/s': (result) => whole(figureOf(result, 'opsPerS').median),
    'min..max': (result) => `${whole(figureOf(result, 'opsPerS').min)}..${whole(figureOf(result, 'opsPerS').max)}`,
    'calls a request': (result) => share(figureOf(result, 'callsPerRequest').median),
    'calls an admitted token': (result) => share(figureOf(result, 'callsPerAdmitted').median),
    'budget used': (result) => `${figure(figureOf(result, 'budgetPercent').median)} %`,
    'over-grant': (result) => whole(figureOf(result, 'overGrant').max),
    'without store': (result) => whole(figureOf(result, 'withoutStore').max),
    ...PERCENTILES,
  })
}

/** A steady pace, timed from when each question was due; the page has one hot key alone, without columns that stay in the results. */
function pacedTable(results: FleetResults, topology: Topology): Table {
  const cells = SHAPES.flatMap((shape) => measured(results, { topology, shape, callers: MOST_CALLERS, pace: PACE_PER_S }))
  const name = `${topology}-paced`
  const title = `${whole(PACE_PER_S)} questions a second, from when each was due, ${SERVER_TITLES[topology]}`
  const offPage = { columns: ['calls a request', 'p99.9', 'keys'], rows: (row: readonly string[]) => row.includes(KEYS.per_user) }
  return tableOf({ name, title, offPage }, cells, {
    '': ({ cell }) => cell.contender,
    keys: ({ cell }) => KEYS[cell.shape],
    'answers/s': (result) => whole(figureOf(result, 'opsPerS').median),
    'calls a request': (result) => share(figureOf(result, 'callsPerRequest').median),
    ...PERCENTILES,
    longest: (result) => duration(latencyOf(result, 'all', 'maxNs')),
  })
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
