import { inColumns, type Table } from '../markdown.js'
import { figure, whole } from '../report.js'
import type { Summary } from '../samples.js'
import { type Cell, type CellResult, MOST_CALLERS, SHAPES, type Shape } from './cell.js'
import { PACE_PER_S } from './cells.js'
import { FLEET_CONTENDER_NAMES } from './contenders.js'
import { type FleetResults, resultOf } from './fleet-results.js'
import { TOPOLOGIES, type Topology } from './servers.js'
import { figureOf, latencyOf } from './stint.js'

const KEYS: Readonly<Record<Shape, string>> = { per_user: 'a key for each caller', hot_key: 'one hot key' }
const SERVERS: Readonly<Record<Topology, string>> = { standalone: 'one server', cluster: 'a cluster of 3 + 3' }
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
    title: `${MOST_CALLERS} callers, ${KEYS[shape]}, ${SERVERS[topology]}`,
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
    title: `${whole(PACE_PER_S)} questions a second, from when each was due, ${SERVERS[topology]}`,
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
