import type { ChaosResults } from '../../../chaos/dist/chaos-results.js'
import type { Chart, Line } from '../chart.js'
import { COLORS } from '../drawing.js'
import { recoveriesOf } from './recoveries.js'

type Subjects = ChaosResults['failover']['subjects']

/** How long after a kill the store decided about every key again, by the name of the plot's file. */
export function chaosPlots({ node, failover, sentinel, mixed }: ChaosResults): ReadonlyMap<string, Chart> {
  return new Map([
    [
      'chaos-recovery',
      recovery('client and mode', `${failover.failovers} failovers of a cluster, ${sentinel.failovers} by Sentinel; Node ${node}`, [
        lineOf('cluster', 0, failover.subjects),
        lineOf('Sentinel', 1, sentinel.subjects),
      ]),
    ],
    [
      'chaos-mixed',
      recovery('settings side by side', `${mixed.failovers} failovers of a cluster, ${mixed.date}; Node ${node}`, [
        lineOf('cluster', 0, mixed.subjects),
      ]),
    ],
  ])
}

function recovery(xName: string, measured: string, lines: readonly Line[]): Chart {
  return {
    title: 'Time from a kill until the store decides about every key',
    subtitle: `Median, least and most of ${measured}`,
    xName,
    yName: 'ms',
    yScale: 'value',
    hasNoLines: true,
    lines,
  }
}

function lineOf(name: string, color: number, subjects: Subjects): Line {
  const points = subjects.map((subject) => {
    const { least, median, most } = recoveriesOf(subject)
    return { x: subject.name, y: median, low: least, high: most }
  })
  return { name, color: COLORS[color] as string, points }
}
