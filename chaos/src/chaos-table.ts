import type { FailoverReport } from './failover.js'
import type { ResizeReport } from './resize.js'
import { LOCAL_SHARE, RATE } from './subject.js'

/** Failovers under mixes of versions, and whether all stayed within the bound. */
export interface MixedReport extends FailoverReport {
  readonly seed: number
  readonly date: string
  readonly isWithin: boolean
}

/** What a run found. */
export interface ChaosResults {
  readonly node: string
  readonly failover: FailoverReport
  readonly mixed: MixedReport
  readonly sentinel: FailoverReport
  readonly resize: ResizeReport
}

/** The part of docs/outages.md that a run fills. */
export function chaosTable({ node, failover, mixed, sentinel, resize }: ChaosResults): string {
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
    `Processes that share one budget with different settings, ${mixed.failovers} failovers of a 3+3 cluster (${mixed.date}, seed ${mixed.seed}): 200 in 5 s and a burst of 200, or a burst`,
    `of 210, or 180 in 5 s; in the rolling change each process goes over to the other version while a primary is gone. Over is by the largest burst and the highest rate; ${Math.round(mixed.allowedOver)} tokens were allowed.`,
    '',
    '| | takes | admitted | errors | slowest answer, ms | decided without the store | over | over, with the share | recovered, ms |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
    ...mixed.subjects.map((subject) => rowOf('cluster', subject)),
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
