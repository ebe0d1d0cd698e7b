import type { Chart, Line } from '../chart.js'
import { COLORS } from '../drawing.js'
import type { Summary } from '../samples.js'
import { addedBy, figureOf } from './middleware-figures.js'
import { type MiddlewareResults, runsOf } from './middleware-results.js'
import { FRAMEWORKS, type Framework, type MiddlewareSetting, RIVALS, type Side } from './middleware-setting.js'

const NS_PER_US = 1_000

/** What each side adds to a request that passes, and what a denied one costs, by framework. */
export function middlewarePlots(results: MiddlewareResults): ReadonlyMap<string, Chart> {
  return new Map([
    ['middleware-allow', chartOf(results, 'allow')],
    ['middleware-deny', chartOf(results, 'deny')],
  ])
}

function chartOf(results: MiddlewareResults, outcome: MiddlewareSetting['outcome']): Chart {
  const { cpu, cores, node } = results.machine
  const line = (side: Side, index: number): Line => ({
    name: side === 'rival' ? 'the usual limiter of the framework' : 'Sluicegate',
    color: COLORS[index] as string,
    points: FRAMEWORKS.map((framework) => ({ x: framework, ...microseconds(summaryFor(results, framework, outcome, side)) })),
  })
  return {
    title: outcome === 'allow' ? 'Added to a request that passes' : 'A request that is denied, whole',
    subtitle: `One IPv4 address, same headers, median and quartiles. ${cpu}, ${cores} cores, Node ${node.split(' ')[0]}, ${results.startedAt.slice(0, 10)}`,
    xName: FRAMEWORKS.map((framework) => `${framework}: ${RIVALS[framework]}`).join(', '),
    yName: 'µs',
    yScale: 'value',
    hasNoLines: true,
    lines: (['sluicegate', 'rival'] as const).map(line),
  }
}

function summaryFor({ added }: MiddlewareResults, framework: Framework, outcome: MiddlewareSetting['outcome'], side: Side): Summary {
  const runs = runsOf(added, { framework, options: 'same', outcome, clients: 'one' })
  const ns = (found: { readonly ns: number }): number => found.ns
  return outcome === 'allow' ? addedBy(runs, side, ns) : figureOf(runs, side, ns)
}

function microseconds({ median, lowerQuartile, upperQuartile }: Summary): { y: number; low: number; high: number } {
  return { y: median / NS_PER_US, low: lowerQuartile / NS_PER_US, high: upperQuartile / NS_PER_US }
}
