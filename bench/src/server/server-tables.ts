import { type Chart, COLORS, type Line } from '../chart.js'
import type { Machine } from '../machine.js'
import { machineTable, minuteOf, type Table, tableMarkdown, targetsTable } from '../markdown.js'
import type { Verdict } from '../question.js'
import { figure, spread, whole } from '../report.js'
import { ratios, type Summary, summaryOf } from '../samples.js'
import type { GeneratorPair } from './generators.js'
import type { GrpcEffort, RespEffort, RespFigure } from './measure-grpc.js'
import { HTTP_CONNECTIONS, HTTP_REQUESTS, type HttpFigure, type HttpRequests, type HttpSubject } from './measure-http.js'
import type { NginxFigure, NginxSubject } from './measure-nginx.js'
import { PROTOCOLS, type Protocol, type RateFigure, type RateRun, type StartupFigure, TARGET_SHARE } from './measure-rates.js'
import type { ServerRun, TimedEffort } from './service-process.js'

/** The tables of a run, each under the name of its place in the page. */
export function serverTables(results: ServerResults): Table[] {
  const tables = [
    ...httpTables(results.http),
    ...nginxTables(results.nginx),
    grpcTable(results),
    respTable(results),
    ...results.rates.map(ratesTable),
    generatorsTable(results),
    startupTable(results),
  ]
  return tables.filter(({ rows }) => rows.length > 0)
}

const rate = (run: ServerRun): number => run.perSecond
const time = (run: ServerRun): number => run.cpuUs

function httpTables(figures: readonly HttpFigure[]): Table[] {
  return HTTP_CONNECTIONS.map((connections) => {
    const ofThese = figures.filter((each) => each.connections === connections)
    const helloOf = (requests: HttpRequests) =>
      ofThese.find((each) => each.subject === 'hello' && each.requests === requests)?.runs.map(rate) ?? []
    return {
      name: `server-http-${connections}`,
      title: `HTTP: takes, ${connections} connections of wrk`,
      head: ['', 'requests', 'requests/s', 'quartiles', 'times hello', 'quartiles', 'processor time a request', 'resident memory'],
      rows: ofThese.map(({ subject, requests, runs, rssBytes }) => {
        const times = summaryOf(ratios(runs.map(rate), helloOf(requests)))
        return [
          subject,
          requests,
          ...wholeSpread(summaryOf(runs.map(rate))),
          figure(times.median),
          spread(times),
          `${figure(summaryOf(runs.map(time)).median)} µs`,
          megabytes(rssBytes),
        ]
      }),
    }
  })
}

function nginxTables(figures: readonly NginxFigure[]): Table[] {
  return HTTP_CONNECTIONS.map((connections) => {
    const ofThese = figures.filter((each) => each.connections === connections)
    const ratesOf = (wanted: NginxSubject) => ofThese.find(({ subject }) => subject === wanted)?.runs.map(rate) ?? []
    const timesOf = (runs: readonly ServerRun[], under: NginxSubject): Summary => summaryOf(ratios(runs.map(rate), ratesOf(under)))
    return {
      name: `server-nginx-${connections}`,
      title: `nginx with 1,000 clients, ${connections} connections of wrk`,
      head: ['', 'requests/s', 'quartiles', 'times hello', 'quartiles', 'times none', 'processor time a request'],
      rows: ofThese.map(({ subject, runs }) => {
        const times = timesOf(runs, 'auth_request of hello')
        return [
          subject,
          ...wholeSpread(summaryOf(runs.map(rate))),
          figure(times.median),
          spread(times),
          figure(timesOf(runs, 'no auth_request').median),
          subject === 'no auth_request' ? '' : `${figure(summaryOf(runs.map(time)).median)} µs`,
        ]
      }),
    }
  })
}

function grpcTable({ grpc }: ServerResults): Table {
  return {
    name: 'server-grpc',
    title: 'gRPC: ShouldRateLimit, four connections',
    head: ['calls at a time', 'service, calls/s', 'grpc-js echo, calls/s', 'times echo', 'quartiles', 'processor time a call', 'of echo'],
    rows: grpc.map(({ outstanding, service, echo }) => {
      const times = summaryOf(ratios(service.map(rate), echo.map(rate)))
      return [
        String(outstanding),
        wholeMedian(service.map(rate)),
        wholeMedian(echo.map(rate)),
        figure(times.median),
        spread(times),
        `${figure(summaryOf(service.map(time)).median)} µs`,
        `${figure(summaryOf(echo.map(time)).median)} µs`,
      ]
    }),
  }
}

function respTable({ resp }: ServerResults): Table {
  return {
    name: 'server-resp',
    title: 'RESP: CL.THROTTLE on 100,000 keys, 50 connections of redis-benchmark',
    head: ['pipelined', 'service, calls/s', 'Redis SET, calls/s', 'Redis, decision in Lua, calls/s', 'times SET', 'times Lua', 'quartiles'],
    rows: resp.map(({ pipelined, throttle, set, script }) => {
      const times = summaryOf(ratios(throttle, script))
      return [
        String(pipelined),
        ...[throttle, set, script].map((samples) => wholeMedian(samples)),
        figure(summaryOf(ratios(throttle, set)).median),
        figure(times.median),
        spread(times),
      ]
    }),
  }
}

function ratesTable({ protocol, capacity, points, bare }: RateFigure): Table {
  return {
    name: `server-rates-${protocol}`,
    title: `${protocol === 'http' ? 'HTTP' : protocol === 'grpc' ? 'gRPC' : 'RESP'} over the rate offered; capacity ${wholeMedian(capacity)} answers/s`,
    head: ['offered', 'answers/s', 'of the capacity', 'p50', 'p99', 'p99.9', 'processor time an answer', 'errors'],
    rows: [
      ...points.map(({ share, runs }) => [
        `${share * 100} %`,
        wholeMedian(runs.map(({ answeredPerSecond }) => answeredPerSecond)),
        `${figure((100 * medianOf(runs, ({ answeredPerSecond }) => answeredPerSecond)) / summaryOf(capacity).median)} %`,
        ms(medianOf(runs, ({ latencyMs }) => latencyMs.p50)),
        ms(medianOf(runs, ({ latencyMs }) => latencyMs.p99)),
        ms(medianOf(runs, ({ latencyMs }) => latencyMs.p999)),
        `${figure(medianOf(runs, ({ cpuUs }) => cpuUs))} µs`,
        String(runs.reduce((sum, { errors }) => sum + errors, 0)),
      ]),
      ...(bare === undefined ? [] : [bareRow(bare)]),
    ],
  }
}

function bareRow(runs: NonNullable<RateFigure['bare']>): string[] {
  const percentiles = (['p50', 'p99', 'p999'] as const).map((name) => ms(medianOf(runs, ({ latencyMs }) => latencyMs[name])))
  return [`${TARGET_SHARE * 100} %, a bare node:http`, '', '', ...percentiles, '', '']
}

function startupTable({ startup }: ServerResults): Table {
  return {
    name: 'server-startup',
    title: 'Until it listens over HTTP, gRPC and RESP',
    head: ['', 'median', 'quartiles'],
    rows: startup.flatMap(({ serviceMs, compiledMs, nodeMs }) => {
      const subjects = [
        ['sluicegate serve', serviceMs],
        ['the same, one file a module', compiledMs],
        ['node -e 0, until it has ended', nodeMs],
      ] as const
      return subjects.map(([name, samples]) => {
        const summary = summaryOf(samples)
        return [name, ms(summary.median), spread(summary)]
      })
    }),
  }
}

function generatorsTable({ generators }: ServerResults): Table {
  return {
    name: 'server-generators',
    title: 'sluicegate load beside other generators, closed loops of 16 connections',
    head: ['beside', 'its requests/s', 'load, requests/s', 'ratio', 'quartiles', 'its 50 %', 'load, 50 %'],
    rows: generators.map(({ beside, theirs, ours }) => {
      const times = summaryOf(
        ratios(
          ours.map(({ perSecond }) => perSecond),
          theirs.map(({ perSecond }) => perSecond),
        ),
      )
      return [
        beside,
        ...[theirs, ours].map((runs) => wholeMedian(runs.map(({ perSecond }) => perSecond))),
        figure(times.median),
        spread(times),
        ...[theirs, ours].map((runs) => ms(summaryOf(runs.map(({ p50Ms }) => p50Ms)).median)),
      ]
    }),
  }
}

function medianOf<Run>(runs: readonly Run[], of: (run: Run) => number): number {
  return summaryOf(runs.map(of)).median
}

function wholeSpread({ median, lowerQuartile, upperQuartile }: Summary): [median: string, quartiles: string] {
  return [whole(median), `${whole(lowerQuartile)}..${whole(upperQuartile)}`]
}

function wholeMedian(perSecond: readonly number[]): string {
  return whole(summaryOf(perSecond).median)
}

function ms(value: number): string {
  return `${figure(value)} ms`
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`
}

/** The targets, each by its median, as far as their parts were measured. A ratio is taken between runs of the same round. */
export function serverVerdicts({ http, nginx, grpc, resp, rates, startup }: ServerResults): Verdict[] {
  const over = (under: HttpSubject, connections: number, requests: HttpRequests): Summary[] => {
    const runs = (subject: HttpSubject) =>
      http.find((each) => each.subject === subject && each.connections === connections && each.requests === requests)?.runs
    const [service, bare] = [runs('service'), runs(under)]
    return service === undefined || bare === undefined ? [] : [summaryOf(ratios(service.map(rate), bare.map(rate)))]
  }
  const deep = resp.filter(({ pipelined }) => pipelined > 1)
  return [
    ...HTTP_REQUESTS.flatMap((requests) =>
      HTTP_CONNECTIONS.flatMap((connections) =>
        over('hello', connections, requests).map((measured) =>
          atLeast(`HTTP, ${requests}, over a bare node:http hello, ${connections} connections`, measured, 0.85),
        ),
      ),
    ),
    ...HTTP_CONNECTIONS.flatMap((connections) => {
      const runs = (wanted: NginxSubject) => nginx.find((each) => each.subject === wanted && each.connections === connections)?.runs
      const [service, hello] = [runs('auth_request of the service'), runs('auth_request of hello')]
      if (service === undefined || hello === undefined) return []
      const measured = summaryOf(ratios(service.map(rate), hello.map(rate)))
      return [
        atLeast(`nginx with auth_request of the service over that of a bare node:http hello, ${connections} connections`, measured, 0.85),
      ]
    }),
    ...grpc.map(({ outstanding, service, echo }) =>
      atLeast(`gRPC over a bare grpc-js echo, ${outstanding} calls at a time`, summaryOf(ratios(service.map(rate), echo.map(rate))), 0.8),
    ),
    ...deep.map(({ pipelined, throttle, script }) =>
      atLeast(`RESP over Redis' decision in Lua, ${pipelined} pipelined`, summaryOf(ratios(throttle, script)), 2),
    ),
    ...rates.flatMap(({ protocol, capacity, points }): Verdict[] =>
      points.flatMap(({ share, runs }): Verdict[] => {
        if (share === 0.5) {
          const measured = summaryOf(runs.map(({ latencyMs }) => latencyMs.p999))
          const what = `${protocol}: p99.9 at half of the capacity`
          return [{ what, target: '<= 3 ms', measured, unit: 'ms', met: measured.median <= 3 }]
        }
        if (share !== 5) return []
        const { median } = summaryOf(capacity)
        const measured = summaryOf(runs.map(({ answeredPerSecond }) => (100 * answeredPerSecond) / median))
        const what = `${protocol}: answers at 500 % of the capacity`
        return [{ what, target: '>= 80 %', measured, unit: '%', met: measured.median >= 80 }]
      }),
    ),
    ...startup.map(({ serviceMs }): Verdict => {
      const measured = summaryOf(serviceMs)
      return { what: 'the service listens after', target: '<= 300 ms', measured, unit: 'ms', met: measured.median <= 300 }
    }),
  ]
}

function atLeast(what: string, measured: Summary, bound: number): Verdict {
  return { what, target: `>= ${bound} x`, measured, unit: 'x', met: measured.median >= bound }
}

/** How long and how often each part is measured. */
export interface ServerEffort {
  readonly http: TimedEffort
  readonly nginx: TimedEffort
  readonly grpc: Omit<GrpcEffort, 'outstanding'>
  readonly resp: RespEffort
  readonly rates: TimedEffort
  readonly generators: TimedEffort
  readonly startup: { readonly rounds: number }
}

/** `ShouldRateLimit` of the service, and an echo of gRPC's own library. */
export interface GrpcFigure {
  /** Calls at a time, over all connections. */
  readonly outstanding: number
  readonly service: readonly ServerRun[]
  readonly echo: readonly ServerRun[]
}

/** What a run of `npm run bench:server` measured, and where; a part that was left out is empty. */
export interface ServerResults {
  readonly kind: 'server'
  readonly startedAt: string
  readonly machine: Machine
  readonly effort: ServerEffort
  readonly loadBefore: number
  readonly loadAfter: number
  /** Parts that a later run measured, each with its start. */
  readonly later?: Readonly<Record<string, string>>
  readonly http: readonly HttpFigure[]
  readonly nginx: readonly NginxFigure[]
  readonly grpc: readonly GrpcFigure[]
  readonly resp: readonly RespFigure[]
  readonly rates: readonly RateFigure[]
  readonly generators: readonly GeneratorPair[]
  readonly startup: readonly StartupFigure[]
}

/** What can be measured alone, each in at most five minutes. */
export const PARTS = ['http', 'nginx', 'grpc', 'resp', 'rates-http', 'rates-grpc', 'rates-resp', 'generators', 'startup'] as const
export type ServerPart = (typeof PARTS)[number]

/** The protocol of a part that offers rates. */
export function protocolOf(part: ServerPart): Protocol | undefined {
  return PROTOCOLS.find((protocol) => part === `rates-${protocol}`)
}

type Mutable<Shape> = { -readonly [Name in keyof Shape]: Shape[Name] }

/**
 * Earlier results with the parts that a later run measured in place of their own. What the parts left out keeps its figures.
 *
 * @throws when both were measured on different machines: a page shows one.
 */
export function merged(earlier: ServerResults, later: ServerResults, parts: readonly ServerPart[]): ServerResults {
  for (const each of ['cpu', 'cores', 'os', 'node'] as const) {
    const [before, now] = [earlier.machine[each], later.machine[each]]
    if (before !== now) throw new Error(`${each} was ${before} in the results so far and is ${now}: run all parts, without --merge`)
  }
  const result = {
    ...earlier,
    effort: { ...earlier.effort } as Mutable<ServerEffort>,
    later: { ...earlier.later } as Record<string, string>,
  }
  for (const part of parts) {
    result.later[part] = later.startedAt
    const protocol = protocolOf(part)
    if (protocol === undefined) {
      const name = part as Exclude<ServerPart, `rates-${Protocol}`>
      Object.assign(result, { [name]: later[name] })
      Object.assign(result.effort, { [name]: later.effort[name] })
    } else {
      const rates = PROTOCOLS.flatMap((name) => (name === protocol ? later : result).rates.find((each) => each.protocol === name) ?? [])
      result.rates = rates
      result.effort.rates = later.effort.rates
    }
  }
  return result
}

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
