import { table, targetsTable } from '../markdown.js'
import { tableMarkdown } from '../study/study-table.js'
import type { EdgeResults } from './edge-results.js'
import { FRAMEWORKS, RIVALS } from './edge-setting.js'
import { edgeTables } from './edge-tables.js'
import { edgeVerdicts } from './edge-verdicts.js'

/** The parts of the page about the edge that come out of a run, by the names of their places in it. */
export function edgeMarkdownParts(results: EdgeResults): ReadonlyMap<string, string> {
  const tables = edgeTables(results).map((each): [string, string] => [each.name, tableMarkdown(each)])
  return new Map([['edge-machine', machineTable(results)], ['edge-targets', targetsTable(edgeVerdicts(results))], ...tables])
}

function machineTable({ startedAt, machine, rivals, effort, loadBefore, loadAfter }: EdgeResults): string {
  const versions = (names: readonly string[]): string => names.map((name) => `${name} ${rivals[name]}`).join(', ')
  const { added, allocationRuns, sockets } = effort
  return table(
    ['', ''],
    [
      ['processor', `${machine.cpu}, ${machine.cores} cores (virtual), ${machine.memoryGiB} GiB`],
      ['system', `${machine.os}, ${machine.kernel}`],
      ['Node', machine.node],
      ['frameworks', versions([...FRAMEWORKS, '@hono/node-server'])],
      ['rivals', versions(FRAMEWORKS.map((framework) => RIVALS[framework]))],
      [
        'run',
        `${startedAt.slice(0, 16).replace('T', ' ')} UTC; without sockets ${added.repeats} repeats in each of ${added.lives} processes; ` +
          `allocations in ${allocationRuns} processes each; over sockets ${sockets.runs} runs of ${sockets.ms} ms`,
      ],
      ['load average', `${loadBefore} before, ${loadAfter} after`],
    ],
  )
}
