import { table, targetsTable } from '../markdown.js'
import { type StudyTable, tableMarkdown } from '../study/study-table.js'
import type { FleetResults } from './fleet-results.js'
import { fleetTables } from './fleet-tables.js'
import { fleetVerdicts } from './fleet-verdicts.js'

/** The parts of the page about the fleet that come out of a run, by the names of their places in it. */
export function fleetMarkdownParts(results: FleetResults): ReadonlyMap<string, string> {
  const tables = fleetTables(results).map((each): [string, string] => [each.name, tableMarkdown(onPage(each))])
  return new Map([['redis-machine', machineTable(results)], ['redis-targets', targetsTable(fleetVerdicts(results))], ...tables])
}

/** Without columns that stay in the results, and of the steady pace one hot key alone. */
function onPage(each: StudyTable): StudyTable {
  const left = each.head.flatMap((name, column) => (OFF_PAGE.has(name) ? [] : [column]))
  const cells = (row: readonly string[]): string[] => left.map((column) => row[column] ?? '')
  const rows = each.rows.filter((row) => !(each.name.endsWith('-paced') && row.includes('a key for each caller')))
  return { ...each, head: cells(each.head), rows: rows.map(cells) }
}

const OFF_PAGE: ReadonlySet<string> = new Set(['min..max', 'calls a request', 'without store', 'p99.9', 'keys'])

function machineTable({ finishedAt, machine, server, rivals, effort, loadBefore, loadAfter }: FleetResults): string {
  const clients = ['@redis/client', 'ioredis', 'rate-limiter-flexible'].map((name) => `${name} ${rivals[name]}`)
  const { runs, longMs, shortMs } = effort
  return table(
    ['', ''],
    [
      ['processor', `${machine.cpu}, ${machine.cores} cores (virtual), ${machine.memoryGiB} GiB: the servers and the load share them`],
      ['system', `${machine.os}, ${machine.kernel}`],
      ['Node', machine.node],
      ['server', `${server}, on loopback, nothing kept on disk`],
      ['clients and rivals', clients.join(', ')],
      [
        'run',
        `finished ${finishedAt.slice(0, 16).replace('T', ' ')} UTC, ${runs} runs of ${longMs / 1000} s at 256 callers, of ${shortMs / 1000} s elsewhere`,
      ],
      ['load average', `${loadBefore} before, ${loadAfter} after`],
    ],
  )
}
