import type { ChaosResults } from '../../../lab/dist/chaos/chaos-results.js'
import { table } from '../markdown.js'

/** Least, median and most. */
export function recoveriesOf({ recoveryMs }: { readonly recoveryMs: readonly number[] }): {
  readonly least: number
  readonly median: number
  readonly most: number
} {
  const sorted = [...recoveryMs].sort((a, b) => a - b)
  const at = (index: number): number => sorted[index] as number
  return { least: at(0), median: at(Math.floor(sorted.length / 2)), most: at(sorted.length - 1) }
}

const HEAD = [
  ...['', '', 'takes', 'errors', 'slowest answer, ms', 'decided without the store', 'over', 'allowed'],
  ...['over, with the share', 'recovered, ms: median', 'most'],
]

/** Faults of PostgreSQL: each, exact and leased. */
function postgresChaosMarkdown({ date, faults }: ChaosResults['postgres']): string {
  const rows = faults.flatMap(({ fault, allowedOver, subjects }) =>
    subjects.map((subject, i) => {
      const { name, takes, errors, slowestMs, outageDecisions, over, overWithShare } = subject
      const { median, most } = recoveriesOf(subject)
      const figures = [takes, errors, slowestMs, outageDecisions, over, allowedOver, overWithShare, median, most]
      return [i === 0 ? fault : '', name, ...figures.map(String)]
    }),
  )
  const [first] = faults
  const charges = faults.reduce((sum, each) => sum + each.charges, 0)
  const wrong = faults.reduce((sum, { chargedWrongly }) => sum + chargedWrongly, 0)
  const surely = Math.max(
    ...faults.flatMap(({ fault, subjects }) => (isForgetting(fault) ? [] : subjects.map(({ surelyOver }) => surelyOver))),
  )
  return [
    table(HEAD, rows),
    '',
    `- Each ${first?.times} times, ${date}. Where nothing is forgotten, ${surely} tokens were surely over.`,
    `- Of ${charges} charges of an account without refill ${wrong} were double or missing.`,
  ].join('\n')
}

/** Faults after which keys are full again, by statement. */
function isForgetting(fault: string): boolean {
  return fault === 'kill -9' || fault.includes('clock')
}

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
