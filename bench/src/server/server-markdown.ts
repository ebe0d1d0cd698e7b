import { table, targetsTable } from '../markdown.js'
import { type StudyTable, tableMarkdown } from '../study/study-table.js'
import type { ServerResults } from './server-results.js'
import { serverTables } from './server-tables.js'
import { serverVerdicts } from './server-verdicts.js'

/** The parts of the page about the service that come out of a run, by the names of their places in it. */
export function serverMarkdownParts(results: ServerResults): ReadonlyMap<string, string> {
  return new Map([
    ['server-machine', machineTable(results)],
    ['server-targets', targetsTable(serverVerdicts(results))],
    ...serverTables(results).map((each): [string, string] => [each.name, tableMarkdown(onPage(each))]),
  ])
}

/** Of the rates some rows, without what the others tell; all are in the results. */
function onPage(each: StudyTable): StudyTable {
  if (!each.name.startsWith('server-rates-')) return each
  const left = each.head.flatMap((name, column) => (['of the capacity', 'errors'].includes(name) ? [] : [column]))
  const cells = (row: readonly string[]): string[] => left.map((column) => row[column] ?? '')
  return { ...each, head: cells(each.head), rows: each.rows.filter(([rate = '']) => !/^(25|75|150|300) %$/.test(rate)).map(cells) }
}

function machineTable({ startedAt, machine, effort, loadBefore, loadAfter }: ServerResults): string {
  const { http, grpc, resp, rates } = effort
  return table(
    ['', ''],
    [
      ['processor', `${machine.cpu}, ${machine.cores} cores (virtual) for generators and servers, ${machine.memoryGiB} GiB`],
      ['system', `${machine.os}, ${machine.kernel}`],
      ['Node', machine.node],
      [
        'run',
        `${startedAt.slice(0, 16).replace('T', ' ')} UTC; HTTP ${http.rounds} rounds of ${http.seconds} s, gRPC ${grpc.rounds} of ${grpc.calls} calls, ` +
          `RESP ${resp.rounds} of ${resp.requests} requests, rates ${rates.rounds} of ${rates.seconds} s`,
      ],
      ['load average', `${loadBefore} before, ${loadAfter} after`],
    ],
  )
}
