import { type Chart, COLORS, type Line } from '../chart.js'
import { machineTable, minuteOf, type Table, tableMarkdown, targetsTable } from '../markdown.js'
import { figure } from '../report.js'
import { summaryOf } from '../samples.js'
import { HTTP_REQUESTS } from './http-requests.js'
import type { Protocol, RateFigure, RateRun } from './measure-rates.js'
import type { ServerResults } from './server-results.js'
import { serverTables } from './server-tables.js'
import { serverVerdicts } from './server-verdicts.js'

/** The parts of the page about the service that come out of a run, by the names of their places in it. */
export function serverMarkdownParts(results: ServerResults): ReadonlyMap<string, string> {
  return new Map([
    ['server-machine', machineTable(results, machineRows(results), ': generators and servers share them')],
    ['server-targets', targetsTable(serverVerdicts(results))],
    ['server-summary', summaryText(results)],
    ...serverTables(results).map((each): [string, string] => [each.name, tableMarkdown(onPage(each))]),
  ])
}

/** Of the rates some rows, without what the others tell; all are in the results. */
function onPage(each: Table): Table {
  if (!each.name.startsWith('server-rates-')) return each
  const left = each.head.flatMap((name, column) => (['of the capacity', 'errors'].includes(name) ? [] : [column]))
  const cells = (row: readonly string[]): string[] => left.map((column) => row[column] ?? '')
  return { ...each, head: cells(each.head), rows: each.rows.filter(([rate = '']) => !/^(25|75|150|300) %$/.test(rate)).map(cells) }
}

/** The figures of the README, in one line: medians, and their range over connections and depths. */
function summaryText(results: ServerResults): string {
  const verdicts = serverVerdicts(results)
  const range = (start: string): string | undefined => {
    const medians = verdicts.filter(({ what }) => what.startsWith(start)).map(({ measured }) => measured.median)
    const ends = [Math.min(...medians), Math.max(...medians)].map((each) => each.toFixed(2))
    return medians.length === 0 ? undefined : [...new Set(ends)].join(' to ')
  }
  const [changing, same] = HTTP_REQUESTS
  const http = range(`HTTP, ${changing},`)
  const [nginx, grpc, resp, [startup] = []] = [range('nginx'), range('gRPC'), range('RESP'), results.startup]
  const parts = [
    `${http ?? range(`HTTP, ${same},`)} of the requests per second of a bare \`node:http\` hello, with ${http === undefined ? same : changing}`,
    nginx && `${nginx} behind nginx' \`auth_request\``,
    grpc && `${grpc} of a bare gRPC echo`,
    resp && `${resp} times those of a decision in Lua on Redis, pipelined`,
    startup && `listens ${figure(summaryOf(startup.serviceMs).median)} ms after its start`,
  ]
  return parts.filter((part) => part !== undefined).join('; ')
}

function machineRows({ startedAt, effort, later = {} }: ServerResults): string[][] {
  const { http, grpc, resp, rates } = effort
  return [
    [
      'run',
      `${minuteOf(startedAt)}; HTTP ${http.rounds} rounds of ${http.seconds} s, gRPC ${grpc.rounds} of ${grpc.calls} calls, ` +
        `RESP ${resp.rounds} of ${resp.requests} requests, rates ${rates.rounds} of ${rates.seconds} s`,
    ],
    ...Object.entries(later).map(([part, at]) => [`${part}, measured later`, minuteOf(at)]),
  ]
}

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
