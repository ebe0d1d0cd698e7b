import type { FailoverReport } from './failover.js'
import type { ResizeReport } from './resize.js'
import { LOCAL_SHARE, RATE } from './subject.js'

/** What a run found. */
export interface ChaosResults {
  readonly node: string
  readonly failover: FailoverReport
  readonly sentinel: FailoverReport
  readonly resize: ResizeReport
}

/** The part of docs/outages.md that a run fills. */
export function chaosTable({ node, failover, sentinel, resize }: ChaosResults): string {
  return [
    `One run on the build machine (2 shared cores, Node ${node}), node timeout 1 s, ${RATE.limit}/s and burst ${RATE.burst} a key, share ${LOCAL_SHARE}. ${failover.failovers} failovers of a 3+3`,
    `cluster under load, ${sentinel.failovers} by Sentinel. Recovered is when the store decided about every key again, from the kill on, least, median and most;`,
    `over is the worst key in its worst interval, over all failovers: ${Math.round(failover.allowedOver)} tokens were allowed in the cluster, ${Math.round(sentinel.allowedOver)} by Sentinel.`,
    '',
    '| | takes | admitted | errors | slowest answer, ms | decided without the store | over | over, with the share | recovered, ms |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
    ...failover.subjects.map((subject) => rowOf('cluster', subject)),
    ...sentinel.subjects.map((subject) => rowOf('Sentinel', subject)),
    '',
    `A fourth primary that gets ${resize.slots} slots under load, gives them back and leaves (${resize.seconds} s):`,
    '',
    '| | takes | errors | calls given up | slowest answer, ms | keys charged wrongly |',
    '| --- | --- | --- | --- | --- | --- |',
    ...resize.clients.map(
      ({ name, takes, errors, failures, slowestMs, wrongKeys }) =>
        `| ${name} | ${takes} | ${errors} | ${failures} | ${slowestMs} | ${wrongKeys} |`,
    ),
  ].join('\n')
}

/** The page with the part filled anew. */
export function withTable(page: string, table: string): string {
  const filled = page.replace(/<!-- chaos -->\n[\s\S]*?<!-- \/chaos -->/, () => `<!-- chaos -->\n\n${table}\n\n<!-- /chaos -->`)
  if (!filled.includes(table)) throw new Error('the page has no part between <!-- chaos --> and <!-- /chaos -->')
  return filled
}

function rowOf(
  where: string,
  { name, takes, admitted, errors, slowestMs, outageDecisions, over, overWithShare, recoveryMs }: FailoverReport['subjects'][number],
): string {
  const sorted = [...recoveryMs].sort((a, b) => a - b)
  const recovered = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)].join(', ')
  return `| ${where}, ${name} | ${takes} | ${admitted} | ${errors} | ${slowestMs} | ${outageDecisions} | ${over} | ${overWithShare} | ${recovered} |`
}
