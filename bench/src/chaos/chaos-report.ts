import { summaryOf } from 'sluicegate-testkit/samples.js'
import type { ChaosResults } from '../../../lab/dist/chaos/main.js'
import { type Chart, chartSvg, type Line } from '../chart.js'
import type { Report } from '../report.js'
import { type Table, tableOf } from '../table.js'

type Failovers = ChaosResults['failover']
type Subject = Failovers['subjects'][number]

const RECOVERY = {
  'recovered, ms: median': ({ recoveryMs }: Pick<Subject, 'recoveryMs'>) => String(Math.round(summaryOf(recoveryMs).median)),
  most: ({ recoveryMs }: Pick<Subject, 'recoveryMs'>) => String(Math.max(...recoveryMs)),
}
const TAKES = {
  takes: ({ takes }: Subject) => String(takes),
  errors: ({ errors }: Subject) => String(errors),
  'slowest answer, ms': ({ slowestMs }: Subject) => String(slowestMs),
  'decided without the store': ({ outageDecisions }: Subject) => String(outageDecisions),
  over: ({ over }: Subject) => String(over),
}

/** What docs/chaos.md says of a run. */
export function chaosReport(results: ChaosResults): Report {
  const { node, rate, localShare, failover, mixed, sentinel, resize, outage, postgres } = results
  const tokens = ({ allowedOver }: Failovers): number => Math.round(allowedOver)
  return {
    pages: ['chaos.md'],
    tables: [
      tableOf({ name: 'chaos-outage' }, [outage], {
        processes: ({ processes }) => String(processes),
        seconds: ({ seconds }) => String(seconds),
        admitted: ({ admitted }) => String(admitted),
        'one policy': ({ budget }) => String(budget),
        'with a tenth for each': ({ withTenths }) => String(withTenths),
        'over, worst interval': ({ over }) => String(over),
        'allowed over': ({ allowedOver }) => String(allowedOver),
        'least count of nodes after it': ({ leastNodes }) => String(leastNodes),
      }),
      failoverTable('chaos-failover', { cluster: failover, Sentinel: sentinel }, [
        `${failover.failovers} failovers of a 3+3 cluster under load, ${sentinel.failovers} by Sentinel. Node timeout 1 s, ${rate.limit}/s and a burst of ${rate.burst} a key, share ${localShare}.`,
        `Allowed over the policy in all failovers together: ${tokens(failover)} tokens in the cluster, ${tokens(sentinel)} by Sentinel.`,
        `Two shared cores, Node ${node}.`,
      ]),
      failoverTable('chaos-mixed', { cluster: mixed }, [
        `${mixed.failovers} failovers of a 3+3 cluster, ${mixed.date}, seed ${mixed.seed}.`,
        `Allowed over the largest burst and the highest rate: ${tokens(mixed)} tokens.`,
      ]),
      tableOf({ name: 'chaos-resize', below: `- ${resize.slots} slots in ${resize.seconds} s.` }, resize.clients, {
        '': ({ name }) => name,
        takes: ({ takes }) => String(takes),
        errors: ({ errors }) => String(errors),
        'calls given up': ({ failures }) => String(failures),
        'slowest answer, ms': ({ slowestMs }) => String(slowestMs),
        'keys charged wrongly': ({ wrongKeys }) => String(wrongKeys),
      }),
      postgresTable(postgres),
    ],
    plots: {
      'chaos-recovery': () =>
        recoveries('client and mode', `${failover.failovers} failovers of a cluster, ${sentinel.failovers} by Sentinel; Node ${node}`, {
          cluster: failover,
          Sentinel: sentinel,
        }),
      'chaos-mixed': () =>
        recoveries('settings side by side', `${mixed.failovers} failovers of a cluster, ${mixed.date}; Node ${node}`, { cluster: mixed }),
    },
  }
}

function failoverTable(name: string, of: Readonly<Record<string, Failovers>>, notes: readonly string[]): Table {
  const subjects = Object.entries(of).flatMap(([where, { subjects }]) =>
    subjects.map((each) => ({ ...each, name: `${where}, ${each.name}` })),
  )
  return tableOf({ name, below: listed(notes) }, subjects, {
    '': (subject) => subject.name,
    ...TAKES,
    'over, with the share': ({ overWithShare }) => String(overWithShare),
    ...RECOVERY,
  })
}

/** Faults of PostgreSQL: each, exact and leased. */
function postgresTable({ date, faults }: ChaosResults['postgres']): Table {
  const rows = faults.flatMap(({ fault, allowedOver, subjects }) =>
    subjects.map((subject, i) => ({ ...subject, fault: i === 0 ? fault : '', allowedOver })),
  )
  const sumOf = (of: (each: (typeof faults)[number]) => number): number => faults.reduce((sum, each) => sum + of(each), 0)
  const kept = faults.filter(({ fault }) => fault !== 'kill -9' && !fault.includes('clock'))
  const surely = Math.max(...kept.flatMap(({ subjects }) => subjects.map(({ surelyOver }) => surelyOver)))
  const below = listed([
    `Each ${faults[0]?.times} times, ${date}. Where nothing is forgotten, ${surely} tokens were surely over.`,
    `Of ${sumOf(({ charges }) => charges)} charges of an account without refill ${sumOf(({ chargedWrongly }) => chargedWrongly)} were double or missing.`,
  ])
  return tableOf({ name: 'chaos-postgres', below }, rows, {
    fault: ({ fault }) => fault,
    name: ({ name }) => name,
    ...TAKES,
    allowed: ({ allowedOver }) => String(allowedOver),
    'over, with the share': ({ overWithShare }) => String(overWithShare),
    ...RECOVERY,
  })
}

function listed(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join('\n')
}

/** How long after a kill the store decided about every key again. */
function recoveries(xName: string, measured: string, of: Readonly<Record<string, Failovers>>): string {
  const lines = Object.entries(of).map(([name, { subjects }]): Line => {
    const points = subjects.map((subject) => {
      const { median, min, max } = summaryOf(subject.recoveryMs)
      return { x: subject.name, y: median, low: min, high: max }
    })
    return { name, points }
  })
  const chart: Chart = {
    title: 'Time from a kill until the store decides about every key',
    subtitle: `Median, least and most of ${measured}`,
    xName,
    yName: 'ms',
    yScale: 'value',
    hasNoLines: true,
    lines,
  }
  return chartSvg(chart)
}
