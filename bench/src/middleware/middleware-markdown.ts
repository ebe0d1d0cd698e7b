import { machineTable, minuteOf, table, targetsTable } from '../markdown.js'
import { type Table, tableMarkdown } from '../tables.js'
import type { MiddlewareResults } from './middleware-results.js'
import { FRAMEWORKS, RIVALS } from './middleware-setting.js'
import { middlewareTables } from './middleware-tables.js'
import { middlewareVerdicts } from './middleware-verdicts.js'

/** The parts of the page about the middleware that come out of a run, by the names of their places in it. */
export function middlewareMarkdownParts(results: MiddlewareResults): ReadonlyMap<string, string> {
  const tables = middlewareTables(results)
  return new Map([
    ['middleware-machine', machineTable(results, machineRows(results))],
    ['middleware-targets', targetsTable(middlewareVerdicts(results))],
    ['middleware-added', addedTable(tables)],
    ...tables
      .filter(({ name }) => name === 'middleware-sockets')
      .map((each): [string, string] => [each.name, tableMarkdown({ ...each, rows: each.rows.filter(isShown) })]),
  ])
}

/** The most used settings of all frameworks: those with the same headers on both sides, and of Express all. */
function isShown([name = '']: readonly string[]): boolean {
  return name.startsWith('express:') || !/defaults|mapped|IPv6/.test(name)
}

/** What a request that passes, or is denied, costs with each framework; the spread is that of the ratio. */
function addedTable(tables: readonly Table[]): string {
  const rows = tables.flatMap(({ name, rows }) => {
    const framework = /^middleware-(\w+)-(allow|deny)$/.exec(name)?.[1]
    if (framework === undefined) return []
    return rows.map(([setting, ours = '', , theirs = '', , ratio = '', spread = '', alone = '']) => [
      `${framework}: ${setting}`,
      ours,
      theirs,
      ratio,
      spread,
      alone,
    ])
  })
  const head = ['ns', 'sluicegate', 'rival', 'ratio', 'quartiles', 'the app']
  return table(head, rows.filter(isShown))
}

function machineRows({ startedAt, rivals, effort }: MiddlewareResults): string[][] {
  const versions = (names: readonly string[]): string => names.map((name) => `${name} ${rivals[name]}`).join(', ')
  const { added, allocationRuns, sockets } = effort
  return [
    ['frameworks', versions([...FRAMEWORKS, '@hono/node-server'])],
    ['rivals', versions(FRAMEWORKS.map((framework) => RIVALS[framework]))],
    [
      'run',
      `${minuteOf(startedAt)}; without sockets ${added.repeats} repeats in each of ${added.lives} processes; ` +
        `allocations in ${allocationRuns} processes each; over sockets ${sockets.runs} runs of ${sockets.ms} ms`,
    ],
  ]
}
