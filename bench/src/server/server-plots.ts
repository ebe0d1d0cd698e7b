import type { Chart, Line } from '../chart.js'
import { COLORS } from '../drawing.js'
import { summaryOf } from '../samples.js'
import type { Protocol, RateFigure, RateRun } from './measure-rates.js'
import type { ServerResults } from './server-results.js'

const NAMES: Readonly<Record<Protocol, string>> = { http: 'HTTP', grpc: 'gRPC', resp: 'RESP' }

/** Behaviour from a tenth of the capacity to five times as much: plots by the names of their files. */
export function serverPlots(results: ServerResults): ReadonlyMap<string, Chart> {
  if (results.rates.length === 0) return new Map()
  const { cpu, cores, node } = results.machine
  const subtitle = `Open loop, constant rate; median and quartiles. ${cpu}, ${cores} cores for load and service, Node ${node.split(' ')[0]}, ${results.startedAt.slice(0, 10)}`
  const chart = (title: string, yName: string, yScale: Chart['yScale'], of: (run: RateRun, figure: RateFigure) => number): Chart => ({
    title,
    subtitle,
    xName: 'offered, % of the capacity',
    yName,
    yScale,
    lines: results.rates.map((figure, index) => lineOf(figure, COLORS[index] as string, of)),
  })
  return new Map([
    [
      'server-answers',
      chart(
        'Answers over the rate offered',
        '% of the capacity',
        'value',
        (run, { capacity }) => (100 * run.answeredPerSecond) / summaryOf(capacity).median,
      ),
    ],
    ['server-latency', chart('p99.9 over the rate offered, from the intended start', 'ms', 'log', ({ latencyMs }) => latencyMs.p999)],
  ])
}

function lineOf(figure: RateFigure, color: string, of: (run: RateRun, figure: RateFigure) => number): Line {
  const points = figure.points.map(({ share, runs }) => {
    const { median, lowerQuartile, upperQuartile } = summaryOf(runs.map((run) => of(run, figure)))
    return { x: `${share * 100}`, y: median, low: lowerQuartile, high: upperQuartile }
  })
  return { name: NAMES[figure.protocol], color, points }
}
