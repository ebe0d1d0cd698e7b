import { filledPage, inColumns, markdownTable } from 'sluicegate-testkit/markdown-tables.js'
import type { SimulatedPhase } from './simulated-regions.js'
import { type SimulatedCell, TARGETS } from './use-grid.js'

/** docs/scale.md with what leases admit and cost beside exact mode. */
export function filledScale(page: string, cells: readonly SimulatedCell[]): string {
  const tables = [
    ['grid', gridTable(cells)],
    ['targets', targetsTable(cells)],
  ] as const
  return filledPage(page, 'use', new Map(tables))
}

/** docs/regions.md with what regions use of a limit. */
export function filledRegions(page: string, phases: readonly SimulatedPhase[]): string {
  const texts = phases.map(({ name, use, calls }) => {
    const when = name === 'below' ? 'at 0.9 x' : 'after the shift'
    return `${when} use ${(100 * use).toFixed(0)} %, ${calls.toFixed(2)} calls a second and region`
  })
  return filledPage(page, 'simulated', new Map([['regions', `In virtual time, 60 and 120 s: ${texts.join('; ')}.`]]))
}

/** By requests a lease: the worst cell of each figure. */
function gridTable(grid: readonly SimulatedCell[]): string {
  const requests = [...new Set(grid.map(({ requestsPerLease }) => requestsPerLease))].sort((a, b) => a - b)
  const rows = requests.map((each) => grid.filter(({ requestsPerLease }) => requestsPerLease === each))
  const leastOf = (own: readonly SimulatedCell[], of: (demand: number) => boolean): string => {
    const shares = own.filter(({ demand }) => of(demand)).map(({ share }) => share)
    return shares.length === 0 ? '' : percent(Math.min(1, ...shares))
  }
  const table = inColumns(rows, {
    'requests a lease': (own) => String(own[0]?.requestsPerLease),
    cells: (own) => String(own.length),
    'admitted of exact, %, demand below 1': (own) => leastOf(own, (demand) => demand < 1),
    'demand 1 to 2': (own) => leastOf(own, (demand) => demand >= 1 && demand <= 2),
    'demand 10': (own) => leastOf(own, (demand) => demand === 10),
    'calls a request: mean': (own) => (own.reduce((sum, { callsPerRequest }) => sum + callsPerRequest, 0) / own.length).toFixed(2),
    most: (own) => Math.max(...own.map(({ callsPerRequest }) => callsPerRequest)).toFixed(2),
    'calls a token: most': (own) => Math.max(...own.map(({ callsPerToken }) => callsPerToken)).toFixed(1),
  })
  return markdownTable(table.head, table.rows)
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

/** Of columns whose head has the sign. */
function percent(share: number): string {
  return (100 * share).toFixed(1)
}
