import { figure } from '../report.js'
import type { Summary } from '../samples.js'
import type { StudyTable } from '../study/study-table.js'
import { CALLERS, type Cell, type CellResult, MOST_CALLERS, SHAPES, type Shape } from './cell.js'
import { PACE_PER_S } from './cells.js'
import { FLEET_CONTENDER_NAMES, type FleetContenderName } from './contenders.js'
import { type FleetResults, resultOf } from './fleet-results.js'
import { TOPOLOGIES, type Topology } from './place.js'
import { figureOf, latencyOf } from './run-figures.js'

const KEYS: Readonly<Record<Shape, string>> = { per_user: 'a key for each caller', hot_key: 'one hot key' }
const SERVERS: Readonly<Record<Topology, string>> = { standalone: 'one server', cluster: 'a cluster of 3 + 3' }
const PERCENTILES = ['p50Ns', 'p99Ns', 'p999Ns'] as const

/** Every table of a run, by the name of its place in the page. What was not measured is left out. */
export function fleetTables(results: FleetResults): StudyTable[] {
  const ofTopology = TOPOLOGIES.flatMap((topology) => [
    ...SHAPES.map((shape) => judgedTable(results, topology, shape)),
    callersTable(results, topology),
    apartTable(results, topology),
    pacedTable(results, topology),
  ])
  return [...ofTopology, ratioTable(results)].filter(({ rows }) => rows.length > 0)
}

/** Everything at 256 callers. */
function judgedTable(results: FleetResults, topology: Topology, shape: Shape): StudyTable {
  const head = [
    '',
    'ns/op',
    'min .. max',
    'ops/s',
    'calls a request',
    'calls an admitted token',
    'budget used',
    'over-grant',
    'without store',
    ...heads(''),
  ]
  const rows = measured(results, { topology, shape, callers: MOST_CALLERS, pace: 0 }).map((result) => {
    const nsPerOp = figureOf(result, 'nsPerOp')
    return [
      result.cell.contender,
      figure(nsPerOp.median),
      range(nsPerOp),
      thousands(figureOf(result, 'opsPerS').median),
      share(figureOf(result, 'callsPerRequest').median),
      share(figureOf(result, 'callsPerAdmitted').median),
      `${figure(figureOf(result, 'budgetPercent').median)} %`,
      thousands(figureOf(result, 'overGrant').max),
      thousands(figureOf(result, 'withoutStore').max),
      ...percentiles(result, 'all'),
    ]
  })
  return { name: `${topology}-${shape}`, title: `${MOST_CALLERS} callers, ${KEYS[shape]}, ${SERVERS[topology]}`, head, rows }
}

/** Decisions a second over the number of callers. */
function callersTable(results: FleetResults, topology: Topology): StudyTable {
  const rows = SHAPES.flatMap((shape) =>
    FLEET_CONTENDER_NAMES.map((contender) => {
      const cells = CALLERS.map((callers) => resultOf(results, { contender, topology, shape, callers, pace: 0 }))
      const figures = cells.map((result) => (result === undefined ? '' : thousands(figureOf(result, 'opsPerS').median)))
      return [contender, KEYS[shape], ...figures]
    }),
  )
  const head = ['', 'keys', ...CALLERS.map((callers) => `${callers} caller${callers === 1 ? '' : 's'}`)]
  return { name: `${topology}-callers`, title: `Decisions a second, ${SERVERS[topology]}`, head, rows: withFigures(rows, 2) }
}

/** Admits and denials apart, at 256 callers. */
function apartTable(results: FleetResults, topology: Topology): StudyTable {
  const rows = SHAPES.flatMap((shape) =>
    measured(results, { topology, shape, callers: MOST_CALLERS, pace: 0 }).map((result) => {
      const { median: admittedPerS } = figureOf(result, 'admittedPerS')
      const { median: opsPerS } = figureOf(result, 'opsPerS')
      const counts = [thousands(admittedPerS), thousands(opsPerS - admittedPerS)]
      return [result.cell.contender, KEYS[shape], ...counts, ...percentiles(result, 'admits'), ...percentiles(result, 'denials')]
    }),
  )
  const head = ['', 'keys', 'admits/s', 'denials/s', ...heads('admit '), ...heads('denial ')]
  return { name: `${topology}-apart`, title: `Admits and denials apart, ${MOST_CALLERS} callers, ${SERVERS[topology]}`, head, rows }
}

/** A steady pace, timed from when each question was due. */
function pacedTable(results: FleetResults, topology: Topology): StudyTable {
  const rows = SHAPES.flatMap((shape) =>
    measured(results, { topology, shape, callers: MOST_CALLERS, pace: PACE_PER_S }).map((result) => {
      const calls = share(figureOf(result, 'callsPerRequest').median)
      const longest = latencyOf(result, 'all', 'maxNs')
      return [
        result.cell.contender,
        KEYS[shape],
        thousands(figureOf(result, 'opsPerS').median),
        calls,
        ...percentiles(result, 'all'),
        duration(longest),
      ]
    }),
  )
  const head = ['', 'keys', 'answers/s', 'calls a request', ...heads(''), 'longest']
  const pace = thousands(PACE_PER_S)
  return { name: `${topology}-paced`, title: `${pace} questions a second, from when each was due, ${SERVERS[topology]}`, head, rows }
}

/** The cluster over the one server, at 256 callers. */
function ratioTable(results: FleetResults): StudyTable {
  const rows = FLEET_CONTENDER_NAMES.map((contender) => [contender, ...SHAPES.flatMap((shape) => ratioCells(results, contender, shape))])
  const head = ['', ...SHAPES.flatMap((shape) => [`${KEYS[shape]}: ops/s`, 'p99'])]
  return { name: 'cluster-ratio', title: `A cluster over one server, ${MOST_CALLERS} callers`, head, rows: withFigures(rows, 1) }
}

function ratioCells(results: FleetResults, contender: FleetContenderName, shape: Shape): string[] {
  const [single, cluster] = TOPOLOGIES.map((topology) => resultOf(results, { contender, topology, shape, callers: MOST_CALLERS, pace: 0 }))
  if (single === undefined || cluster === undefined) return ['', '']
  const over = (a: Summary | undefined, b: Summary | undefined): string => (a && b ? `${figure(a.median / b.median)} ×` : '')
  return [
    over(figureOf(cluster, 'opsPerS'), figureOf(single, 'opsPerS')),
    over(latencyOf(cluster, 'all', 'p99Ns'), latencyOf(single, 'all', 'p99Ns')),
  ]
}

function measured(results: FleetResults, setting: Omit<Cell, 'contender'>): CellResult[] {
  return FLEET_CONTENDER_NAMES.flatMap((contender) => resultOf(results, { contender, ...setting }) ?? [])
}

/** Rows in which something stands after the first columns. */
function withFigures(rows: readonly string[][], names: number): string[][] {
  return rows.filter((row) => row.slice(names).some((cell) => cell !== ''))
}

function heads(of: string): string[] {
  return ['p50', 'p99', 'p99.9'].map((percentile) => `${of}${percentile}`)
}

function percentiles(result: CellResult, of: 'all' | 'admits' | 'denials'): string[] {
  return PERCENTILES.map((name) => duration(latencyOf(result, of, name)))
}

function duration(ns: Summary | undefined): string {
  if (ns === undefined) return '-'
  const { median } = ns
  if (median < 1e3) return `${figure(median)} ns`
  return median < 1e6 ? `${figure(median / 1e3)} µs` : `${figure(median / 1e6)} ms`
}

function range({ min, max }: Summary): string {
  return `${figure(min)} .. ${figure(max)}`
}

/** Calls a request: far below one where they are few. */
function share(value: number): string {
  if (!Number.isFinite(value)) return '-'
  return value.toFixed(value >= 0.1 ? 2 : value >= 0.01 ? 3 : 5)
}

function thousands(value: number): string {
  return Math.round(value).toLocaleString('en')
}
