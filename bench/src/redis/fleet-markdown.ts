import { machineTable, minuteOf, type Table, tableMarkdown, targetsTable } from '../markdown.js'
import type { FleetResults } from './fleet-results.js'
import { fleetTables } from './fleet-tables.js'
import { fleetVerdicts } from './fleet-verdicts.js'

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
