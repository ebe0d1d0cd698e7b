import { figure, whole } from '../report.js'
import type { Summary } from '../samples.js'
import type { StudyTable } from '../study/study-table.js'
import { type Cell, type CellResult, MOST_CALLERS, SHAPES, type Shape } from './cell.js'
import { PACE_PER_S } from './cells.js'
import { FLEET_CONTENDER_NAMES } from './contenders.js'
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
    pacedTable(results, topology),
  ])
  return ofTopology.filter(({ rows }) => rows.length > 0)
}

/** Everything at 256 callers. */
function judgedTable(results: FleetResults, topology: Topology, shape: Shape): StudyTable {
  const head = [
    '',
    'decisions/s',
    'min..max',
    'calls a request',
    'calls an admitted token',
    'budget used',
    'over-grant',
    'without store',
    'p50',
    'p99',
    'p99.9',
  ]
  const rows = measured(results, { topology, shape, callers: MOST_CALLERS, pace: 0 }).map((result) => {
    const opsPerS = figureOf(result, 'opsPerS')
    return [
      result.cell.contender,
      whole(opsPerS.median),
      `${whole(opsPerS.min)}..${whole(opsPerS.max)}`,
      share(figureOf(result, 'callsPerRequest').median),
      share(figureOf(result, 'callsPerAdmitted').median),
      `${figure(figureOf(result, 'budgetPercent').median)} %`,
      whole(figureOf(result, 'overGrant').max),
      whole(figureOf(result, 'withoutStore').max),
      ...percentiles(result),
    ]
  })
  return { name: `${topology}-${shape}`, title: `${MOST_CALLERS} callers, ${KEYS[shape]}, ${SERVERS[topology]}`, head, rows }
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
        whole(figureOf(result, 'opsPerS').median),
        calls,
        ...percentiles(result),
        duration(longest),
      ]
    }),
  )
  const head = ['', 'keys', 'answers/s', 'calls a request', 'p50', 'p99', 'p99.9', 'longest']
  const pace = whole(PACE_PER_S)
  return { name: `${topology}-paced`, title: `${pace} questions a second, from when each was due, ${SERVERS[topology]}`, head, rows }
}

function measured(results: FleetResults, setting: Omit<Cell, 'contender'>): CellResult[] {
  return FLEET_CONTENDER_NAMES.flatMap((contender) => resultOf(results, { contender, ...setting }) ?? [])
}

function percentiles(result: CellResult): string[] {
  return PERCENTILES.map((name) => duration(latencyOf(result, 'all', name)))
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
