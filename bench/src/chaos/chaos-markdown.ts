import type { ChaosResults } from '../../../chaos/dist/chaos-results.js'
import { table } from '../markdown.js'
import { postgresChaosMarkdown } from './postgres-markdown.js'
import { recoveriesOf } from './recoveries.js'

type Subject = ChaosResults['failover']['subjects'][number]

const FAILOVER: Readonly<Record<string, (subject: Subject) => number>> = {
  takes: ({ takes }) => takes,
  errors: ({ errors }) => errors,
  'slowest answer, ms': ({ slowestMs }) => slowestMs,
  'decided without the store': ({ outageDecisions }) => outageDecisions,
  over: ({ over }) => over,
  'over, with the share': ({ overWithShare }) => overWithShare,
  'recovered, ms: median': (subject) => recoveriesOf(subject).median,
  most: (subject) => recoveriesOf(subject).most,
}
const FAILOVER_HEAD = ['', ...Object.keys(FAILOVER)]

/** The parts of docs/chaos.md that a run fills, by the names of their places. */
export function chaosMarkdownParts({
  node,
  rate,
  localShare,
  failover,
  mixed,
  sentinel,
  resize,
  outage,
  postgres,
}: ChaosResults): ReadonlyMap<string, string> {
  const failovers = [
    table(FAILOVER_HEAD, [
      ...failover.subjects.map((subject) => rowOf('cluster', subject)),
      ...sentinel.subjects.map((subject) => rowOf('Sentinel', subject)),
    ]),
    '',
    `- ${failover.failovers} failovers of a 3+3 cluster under load, ${sentinel.failovers} by Sentinel. Node timeout 1 s, ${rate.limit}/s and a burst of ${rate.burst} a key, share ${localShare}.`,
    `- Allowed over the policy in all failovers together: ${Math.round(failover.allowedOver)} tokens in the cluster, ${Math.round(sentinel.allowedOver)} by Sentinel.`,
    `- Two shared cores, Node ${node}.`,
  ]
  const versions = [
    table(
      FAILOVER_HEAD,
      mixed.subjects.map((subject) => rowOf('cluster', subject)),
    ),
    '',
    `- ${mixed.failovers} failovers of a 3+3 cluster, ${mixed.date}, seed ${mixed.seed}.`,
    `- Allowed over the largest burst and the highest rate: ${Math.round(mixed.allowedOver)} tokens.`,
  ]
  const slots = [
    table(
      ['', 'takes', 'errors', 'calls given up', 'slowest answer, ms', 'keys charged wrongly'],
      resize.clients.map(({ name, ...figures }) => [
        name,
        ...[figures.takes, figures.errors, figures.failures, figures.slowestMs, figures.wrongKeys].map(String),
      ]),
    ),
    '',
    `- ${resize.slots} slots in ${resize.seconds} s.`,
  ]
  const counts = {
    processes: outage.processes,
    seconds: outage.seconds,
    admitted: outage.admitted,
    'one policy': outage.budget,
    'with a tenth for each': outage.withTenths,
    'over, worst interval': outage.over,
    'allowed over': outage.allowedOver,
    'least count of nodes after it': outage.leastNodes,
  }
  return new Map([
    ['chaos-outage', table(Object.keys(counts), [Object.values(counts).map(String)])],
    ['chaos-failover', failovers.join('\n')],
    ['chaos-mixed', versions.join('\n')],
    ['chaos-resize', slots.join('\n')],
    ['chaos-postgres', postgresChaosMarkdown(postgres)],
  ])
}

function rowOf(where: string, subject: Subject): string[] {
  return [`${where}, ${subject.name}`, ...Object.values(FAILOVER).map((figure) => String(figure(subject)))]
}
