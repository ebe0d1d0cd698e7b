import type { GateResults } from 'sluicegate-testkit/gate/gate-tables.js'
import type { Chart } from '../chart.js'
import { COLORS } from '../drawing.js'

/** The delay of verdicts beside the stated one, and the error of counts beside its bound, by the names of the plots' files. */
export function gatePlots({ runs, where }: GateResults): ReadonlyMap<string, Chart> {
  return new Map([
    [
      'gate-delay',
      {
        title: 'Delay of a verdict after the threshold is exceeded',
        subtitle: `Median, up to the longest. ${where}`,
        xName: 'run',
        yName: 'ms',
        yScale: 'value',
        hasNoLines: true,
        lines: [
          {
            name: 'measured',
            color: COLORS[0] as string,
            points: runs.map(({ name, result: { delaysMs } }) => ({
              x: name,
              y: delaysMs.median,
              low: delaysMs.median,
              high: delaysMs.most,
            })),
          },
          { name: 'stated', color: COLORS[1] as string, points: runs.map(({ name, result }) => exactly(name, result.statedDelayMs)) },
        ],
      },
    ],
    [
      'gate-error',
      {
        title: 'Error of a count, in requests',
        subtitle: `Mean, up to the largest. ${where}`,
        xName: 'run',
        yName: 'requests',
        yScale: 'log',
        hasNoLines: true,
        lines: [
          {
            name: 'measured',
            color: COLORS[0] as string,
            points: runs.map(({ name, result: { error } }) => ({ x: name, y: error.mean, low: error.mean, high: error.most })),
          },
          { name: 'bound', color: COLORS[1] as string, points: runs.map(({ name, result }) => exactly(name, result.error.bound)) },
        ],
      },
    ],
  ])
}

function exactly(x: string, y: number): { x: string; y: number; low: number; high: number } {
  return { x, y, low: y, high: y }
}
