import { filledPage, markdownTable } from 'sluicegate-testkit/markdown-tables.js'
import { columnTable } from '../column-table.js'
import type { MeasuredCell } from './measured-use.js'
import { type SimulatedCell, TARGETS } from './use-grid.js'

/** What leases admit and cost beside exact mode: simulated, and measured with real processes. */
export interface UseResults {
  readonly grid: readonly SimulatedCell[]
  readonly measured?: MeasuredUse | undefined
  /** The same over `node:cluster`. */
  readonly cluster?: MeasuredUse | undefined
}

/** Cells with real processes, where and for how long each was measured. */
export interface MeasuredUse {
  readonly where: string
  readonly seconds: number
  readonly cells: readonly MeasuredCell[]
}

/** docs/scale.md with these tables made anew. */
export function filledUse(page: string, results: UseResults): string {
  return filledPage(page, 'use', useTables(results))
}

/** The tables, by the names of their places. */
function useTables({ grid, measured, cluster }: UseResults): ReadonlyMap<string, string> {
  const tables = new Map([
    ['grid', gridTable(grid)],
    ['targets', targetsTable(grid)],
  ])
  if (measured !== undefined)
    tables.set(
      'measured',
      `${measuredTable(measured.cells, cluster?.cells)}

${whereText(measured, cluster)}`,
    )
  return tables
}

/** By requests a lease: the worst cell of each figure. */
function gridTable(grid: readonly SimulatedCell[]): string {
  const requests = [...new Set(grid.map(({ requestsPerLease }) => requestsPerLease))].sort((a, b) => a - b)
  const rows = requests.map((each) => grid.filter(({ requestsPerLease }) => requestsPerLease === each))
  const leastOf = (own: readonly SimulatedCell[], of: (demand: number) => boolean): string => {
    const shares = own.filter(({ demand }) => of(demand)).map(({ share }) => share)
    return shares.length === 0 ? '' : percent(Math.min(1, ...shares))
  }
  return columnTable(rows, {
    'requests a lease': (own) => String(own[0]?.requestsPerLease),
    cells: (own) => String(own.length),
    'admitted of exact, %, demand below 1': (own) => leastOf(own, (demand) => demand < 1),
    'demand 1 to 2': (own) => leastOf(own, (demand) => demand >= 1 && demand <= 2),
    'demand 10': (own) => leastOf(own, (demand) => demand === 10),
    'calls a request: mean': (own) => (own.reduce((sum, { callsPerRequest }) => sum + callsPerRequest, 0) / own.length).toFixed(2),
    most: (own) => Math.max(...own.map(({ callsPerRequest }) => callsPerRequest)).toFixed(2),
    'calls a token: most': (own) => Math.max(...own.map(({ callsPerToken }) => callsPerToken)).toFixed(1),
  })
}

function targetsTable(grid: readonly SimulatedCell[]): string {
  const rows = TARGETS.map(({ name, applies, holds }) => {
    const own = grid.filter(applies)
    const missed = own.filter((cell) => !holds(cell))
    return [name, String(own.length), missed.length === 0 ? 'all' : `all but ${missed.length}`, whereMissed(missed)]
  })
  return markdownTable(['target', 'cells', 'hold', 'missed at'], rows)
}

function whereMissed(missed: readonly SimulatedCell[]): string {
  const valuesOf = (of: (cell: SimulatedCell) => string | number): string => [...new Set(missed.map(of))].join(', ')
  if (missed.length === 0) return ''
  const sorted = [...missed].sort((a, b) => a.requestsPerLease - b.requestsPerLease)
  const [first, last] = [sorted[0], sorted.at(-1)].map((cell) => cell?.requestsPerLease)
  const requests = first === last ? `${first}` : `${first} to ${last}`
  return `${requests} requests a lease; ${valuesOf(({ arrivals }) => arrivals)}`
}

/** The fewest and the most nodes; the saved results have those between. */
function measuredTable(cells: readonly MeasuredCell[], overCluster: readonly MeasuredCell[] = []): string {
  const head = [
    ...['nodes', 'requests a lease', 'demand / limit', 'exact admits, %', 'leases, % of that', 'calls a request'],
    ...['99 %, exact, ms', '99 %, leases, ms', '`node:cluster`: leases, % of exact', 'messages a request'],
  ]
  const counts = cells.map(({ nodes }) => nodes)
  const shown = cells.filter(
    ({ nodes, requestsPerLease }) => (nodes === Math.min(...counts) || nodes === Math.max(...counts)) && requestsPerLease !== 2,
  )
  const ofCluster = (like: MeasuredCell): readonly string[] => {
    const isLike = (cell: MeasuredCell): boolean =>
      cell.nodes === like.nodes && cell.requestsPerLease === like.requestsPerLease && cell.demand === like.demand
    const found = overCluster.find(isLike)
    return found === undefined ? ['', ''] : [shareText(found), found.callsPerRequest.toFixed(3)]
  }
  const rows = shown.map((cell) => [
    ...[cell.nodes, cell.requestsPerLease, cell.demand].map(String),
    percent(cell.exactAdmitted / cell.requests),
    shareText(cell),
    cell.callsPerRequest.toFixed(3),
    cell.exactP99Ms.toFixed(1),
    cell.leasedP99Ms.toFixed(1),
    ...ofCluster(cell),
  ])
  return markdownTable(head, rows)
}

function shareText({ leasedAdmitted, exactAdmitted }: MeasuredCell): string {
  return percent(leasedAdmitted / exactAdmitted)
}

function whereText(measured: MeasuredUse, cluster: MeasuredUse | undefined): string {
  const text = `${measured.where}, ${measured.seconds} s a row`
  return cluster === undefined ? `${text}.` : `${text}; \`node:cluster\`: ${cluster.where}, ${cluster.seconds} s.`
}

/** Of columns whose head has the sign. */
function percent(share: number): string {
  return (100 * share).toFixed(1)
}
