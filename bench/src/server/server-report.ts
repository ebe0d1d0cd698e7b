import { ratioOf, type Summary, summaryOf } from 'sluicegate-testkit/samples.js'
import { chartSvg, type Line, measuredOn, pointOf } from '../chart.js'
import type { Machine } from '../machine.js'
import { type Claim, claim, claimsTable, machineTable, type Report } from '../report.js'
import { figure, minuteOf, spread, type Table, tableOf, whole, withSpread } from '../table.js'
import type { GeneratorPair } from './generators.js'
import type { GrpcEffort, RespEffort, RespFigure } from './measure-grpc.js'
import { HTTP_CONNECTIONS, HTTP_REQUESTS, type HttpFigure, type HttpRequests } from './measure-http.js'
import type { NginxFigure, NginxSubject } from './measure-nginx.js'
import { PROTOCOLS, type Protocol, type RateFigure, type RateRun, type StartupFigure, TARGET_SHARE } from './measure-rates.js'
import type { TurnEffort, TurnFigure } from './measure-turns.js'
import type { ServerRun, TimedEffort } from './service-process.js'

/** The tables of a run, each under the name of its place in the page. */
function serverTables({ http, nginx, grpc, resp, rates, generators, startup, turns = [] }: ServerResults): Table[] {
  return [
    ...HTTP_CONNECTIONS.map((connections) => httpTable(connections, http)),
    ...HTTP_CONNECTIONS.map((connections) => nginxTable(connections, nginx)),
    tableOf({ name: 'server-grpc', title: 'gRPC: ShouldRateLimit, four connections' }, grpc, {
      'calls at a time': ({ outstanding }) => String(outstanding),
      'service, calls/s': ({ service }) => wholeMedian(service.map(rate)),
      'grpc-js echo, calls/s': ({ echo }) => wholeMedian(echo.map(rate)),
      'times echo': ({ service, echo }) => withSpread(timesOf(service, echo)),
      'processor time a call': ({ service }) => cpu(service),
      'of echo': ({ echo }) => cpu(echo),
    }),
    tableOf({ name: 'server-resp', title: 'RESP: CL.THROTTLE on 100,000 keys, 50 connections of redis-benchmark' }, resp, {
      pipelined: ({ pipelined }) => String(pipelined),
      'service, calls/s': ({ throttle }) => wholeMedian(throttle),
      'Redis SET, calls/s': ({ set }) => wholeMedian(set),
      'Redis, decision in Lua, calls/s': ({ script }) => wholeMedian(script),
      'times SET': ({ throttle, set }) => figure(ratioOf(throttle, set).median),
      'times Lua': ({ throttle, script }) => withSpread(ratioOf(throttle, script)),
    }),
    ...rates.map(ratesTable),
    tableOf({ name: 'server-generators', title: 'sluicegate load beside other generators, closed loops of 16 connections' }, generators, {
      beside: ({ beside }) => beside,
      'its requests/s': ({ theirs }) => wholeMedian(theirs.map(rate)),
      'load, requests/s': ({ ours }) => wholeMedian(ours.map(rate)),
      ratio: ({ ours, theirs }) => withSpread(timesOf(ours, theirs)),
      'its 50 %': ({ theirs }) => ms(medianOf(theirs, ({ p50Ms }) => p50Ms)),
      'load, 50 %': ({ ours }) => ms(medianOf(ours, ({ p50Ms }) => p50Ms)),
    }),
    tableOf({ name: 'server-startup', title: 'Until it listens over HTTP, gRPC and RESP' }, startup.flatMap(startsOf), {
      '': ([name]) => name,
      median: ([, samples]) => [ms(summaryOf(samples).median), spread(summaryOf(samples))],
    }),
    tableOf({ name: 'server-turns', title: 'Takes over HTTP beside something large' }, turns, {
      beside: ({ beside }) => beside,
      p50: ({ p50Ms }) => ms(p50Ms),
      p99: ({ p99Ms }) => ms(p99Ms),
      'p99 by that of nothing': ({ p99Times }) => withSpread(summaryOf(p99Times)),
      longest: ({ longestMs }) => ms(longestMs),
      'longest between two turns': ({ heldMs }) => ms(heldMs),
    }),
  ]
}

interface Paced {
  readonly perSecond: number
}

const rate = ({ perSecond }: Paced): number => perSecond
const cpu = (runs: readonly ServerRun[]): string => `${figure(medianOf(runs, ({ cpuUs }) => cpuUs))} µs`

/** Rates of one over those of another in the same round. */
function timesOf(over: readonly Paced[], under: readonly Paced[] = []): Summary {
  return ratioOf(over.map(rate), under.map(rate))
}

function httpTable(connections: number, all: readonly HttpFigure[]): Table {
  const figures = all.filter((each) => each.connections === connections)
  const hello = (requests: HttpRequests) => figures.find((each) => each.subject === 'hello' && each.requests === requests)?.runs
  return tableOf({ name: `server-http-${connections}`, title: `HTTP: takes, ${connections} connections of wrk` }, figures, {
    '': ({ subject }) => subject,
    requests: ({ requests }) => requests,
    'requests/s': ({ runs }) => withSpread(summaryOf(runs.map(rate)), whole),
    'times hello': ({ runs, requests }) => withSpread(timesOf(runs, hello(requests))),
    'processor time a request': ({ runs }) => cpu(runs),
    'resident memory': ({ rssBytes }) => `${Math.round(rssBytes / 1e6)} MB`,
  })
}

function nginxTable(connections: number, all: readonly NginxFigure[]): Table {
  const figures = all.filter((each) => each.connections === connections)
  const runsOf = (wanted: NginxSubject) => figures.find(({ subject }) => subject === wanted)?.runs
  const title = `nginx with 1,000 clients, ${connections} connections of wrk`
  return tableOf({ name: `server-nginx-${connections}`, title }, figures, {
    '': ({ subject }) => subject,
    'requests/s': ({ runs }) => withSpread(summaryOf(runs.map(rate)), whole),
    'times hello': ({ runs }) => withSpread(timesOf(runs, runsOf('auth_request of hello'))),
    'times none': ({ runs }) => figure(timesOf(runs, runsOf('no auth_request')).median),
    'processor time a request': ({ subject, runs }) => (subject === 'no auth_request' ? '' : cpu(runs)),
  })
}

const NAMES: Readonly<Record<Protocol, string>> = { http: 'HTTP', grpc: 'gRPC', resp: 'RESP' }
const PERCENTILES = { p50: 'p50', p99: 'p99', 'p99.9': 'p999' } as const

function ratesTable({ protocol, capacity, points, bare }: RateFigure): Table {
  const name = `server-rates-${protocol}`
  const title = `${NAMES[protocol]} over the rate offered; capacity ${wholeMedian(capacity)} answers/s`
  // The page leaves out what the other rows and columns tell.
  const offPage = {
    columns: ['of the capacity', 'errors'],
    rows: ([offered = '']: readonly string[]) => /^(25|75|150|300) %$/.test(offered),
  }
  const latency = (runs: readonly Pick<RateRun, 'latencyMs'>[], which: 'p50' | 'p99' | 'p999') =>
    ms(medianOf(runs, ({ latencyMs }) => latencyMs[which]))
  const answered = ({ answeredPerSecond }: RateRun): number => answeredPerSecond
  const table = tableOf({ name, title, offPage }, points, {
    offered: ({ share }) => `${share * 100} %`,
    'answers/s': ({ runs }) => wholeMedian(runs.map(answered)),
    'of the capacity': ({ runs }) => `${figure((100 * medianOf(runs, answered)) / summaryOf(capacity).median)} %`,
    p50: ({ runs }) => latency(runs, 'p50'),
    p99: ({ runs }) => latency(runs, 'p99'),
    'p99.9': ({ runs }) => latency(runs, 'p999'),
    'processor time an answer': ({ runs }) => `${figure(medianOf(runs, ({ cpuUs }) => cpuUs))} µs`,
    errors: ({ runs }) => String(runs.reduce((sum, { errors }) => sum + errors, 0)),
  })
  if (bare === undefined) return table
  const percentiles = Object.values(PERCENTILES).map((which) => latency(bare, which))
  return { ...table, rows: [...table.rows, [`${TARGET_SHARE * 100} %, a bare node:http`, '', '', ...percentiles, '', '']] }
}

function startsOf({ serviceMs, compiledMs, nodeMs }: StartupFigure): (readonly [name: string, samples: readonly number[]])[] {
  return [
    ['sluicegate serve', serviceMs],
    ['the same, one file a module', compiledMs],
    ['node -e 0, until it has ended', nodeMs],
  ]
}

function medianOf<Run>(runs: readonly Run[], of: (run: Run) => number): number {
  return summaryOf(runs.map(of)).median
}

function wholeMedian(perSecond: readonly number[]): string {
  return whole(summaryOf(perSecond).median)
}

function ms(value: number): string {
  return `${figure(value)} ms`
}

/** The targets, each by its median, as far as their parts were measured. A ratio is taken between runs of the same round. */
function serverClaims({ http, nginx, grpc, resp, rates, startup }: ServerResults): Claim[] {
  /** The first of two over the other, where both were measured. */
  const over = (what: string, pair: readonly ({ readonly runs: readonly ServerRun[] } | undefined)[]): Claim[] => {
    const [ours, theirs] = pair
    return ours === undefined || theirs === undefined ? [] : [claim(what, timesOf(ours.runs, theirs.runs), '>= 0.85 x')]
  }
  return [
    ...HTTP_REQUESTS.flatMap((requests) =>
      HTTP_CONNECTIONS.flatMap((connections) => {
        const own = http.filter((each) => each.connections === connections && each.requests === requests)
        const pair = ['service', 'hello'].map((name) => own.find(({ subject }) => subject === name))
        return over(`HTTP, ${requests}, over a bare node:http hello, ${connections} connections`, pair)
      }),
    ),
    ...HTTP_CONNECTIONS.flatMap((connections) => {
      const own = nginx.filter((each) => each.connections === connections)
      const pair = ['the service', 'hello'].map((name) => own.find(({ subject }) => subject === `auth_request of ${name}`))
      return over(`nginx with auth_request of the service over that of a bare node:http hello, ${connections} connections`, pair)
    }),
    ...grpc.map(({ outstanding, service, echo }) =>
      claim(`gRPC over a bare grpc-js echo, ${outstanding} calls at a time`, timesOf(service, echo), '>= 0.8 x'),
    ),
    ...resp
      .filter(({ pipelined }) => pipelined > 1)
      .map(({ pipelined, throttle, script }) =>
        claim(`RESP over Redis' decision in Lua, ${pipelined} pipelined`, ratioOf(throttle, script), '>= 2 x'),
      ),
    ...rates.flatMap(({ protocol, capacity, points }) => {
      const runsAt = (wanted: number) => points.filter(({ share }) => share === wanted).map(({ runs }) => runs)
      const { median } = summaryOf(capacity)
      return [
        ...runsAt(0.5).map((runs) =>
          claim(`${protocol}: p99.9 at half of the capacity`, summaryOf(runs.map(({ latencyMs }) => latencyMs.p999)), '<= 3 ms'),
        ),
        ...runsAt(5).map((runs) => {
          const answered = summaryOf(runs.map(({ answeredPerSecond }) => (100 * answeredPerSecond) / median))
          return claim(`${protocol}: answers at 500 % of the capacity`, answered, '>= 80 %')
        }),
      ]
    }),
    ...startup.map(({ serviceMs }) => claim('the service listens after', summaryOf(serviceMs), '<= 300 ms')),
  ]
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
  readonly turns: TurnEffort
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
  /** Absent in results from before it was measured. */
  readonly turns?: readonly TurnFigure[]
}

/** What can be measured alone, each in at most five minutes. */
export const PARTS = ['http', 'nginx', 'grpc', 'resp', 'rates-http', 'rates-grpc', 'rates-resp', 'generators', 'startup', 'turns'] as const
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

/** What the page about the service and the README say of a run. */
export function serverReport(results: ServerResults): Report {
  const claims = serverClaims(results)
  const { startedAt, effort, later = {}, rates } = results
  const { http, grpc, resp } = effort
  const run =
    `${minuteOf(startedAt)}; HTTP ${http.rounds} rounds of ${http.seconds} s, gRPC ${grpc.rounds} of ${grpc.calls} calls, ` +
    `RESP ${resp.rounds} of ${resp.requests} requests, rates ${effort.rates.rounds} of ${effort.rates.seconds} s`
  const rows = { run, ...Object.fromEntries(Object.entries(later).map(([part, at]) => [`${part}, measured later`, minuteOf(at)])) }
  return {
    pages: ['benchmarks-server.md', '../README.md'],
    tables: [
      machineTable('server-machine', results, rows, ': generators and servers share them'),
      claimsTable('server-targets', claims),
      ...serverTables(results),
    ],
    texts: { 'server-summary': summaryText(results, claims) },
    ...(rates.length > 0 && { plots: serverPlots(results) }),
  }
}

/** The figures of the README, in one line: medians, and their range over connections and depths. */
function summaryText({ startup: [startup] }: ServerResults, claims: readonly Claim[]): string {
  const range = (start: string): string | undefined => {
    const medians = claims.filter(({ what }) => what.startsWith(start)).map(({ measured }) => measured.median)
    const ends = [Math.min(...medians), Math.max(...medians)].map((each) => each.toFixed(2))
    return medians.length === 0 ? undefined : [...new Set(ends)].join(' to ')
  }
  const [changing, same] = HTTP_REQUESTS
  const http = range(`HTTP, ${changing},`)
  const [nginx, grpc, resp] = [range('nginx'), range('gRPC'), range('RESP')]
  const parts = [
    `${http ?? range(`HTTP, ${same},`)} of the requests per second of a bare \`node:http\` hello, with ${http === undefined ? same : changing}`,
    nginx && `${nginx} behind nginx' \`auth_request\``,
    grpc && `${grpc} of a bare gRPC echo`,
    resp && `${resp} times those of a decision in Lua on Redis, pipelined`,
    startup && `listens ${figure(summaryOf(startup.serviceMs).median)} ms after its start`,
  ]
  return parts.filter((part) => part !== undefined).join('; ')
}

/** Behaviour from a tenth of the capacity to five times as much: plots by the names of their files. */
function serverPlots({ rates, machine, startedAt }: ServerResults): NonNullable<Report['plots']> {
  const subtitle = `Open loop, constant rate; median and quartiles. ${measuredOn(machine, startedAt, ' for load and service')}`
  const xName = 'offered, % of the capacity'
  const linesOf = (of: (run: RateRun, capacity: number) => number): Line[] =>
    rates.map(({ protocol, capacity, points }) => {
      const { median } = summaryOf(capacity)
      return {
        name: NAMES[protocol],
        points: points.map(({ share, runs }) => pointOf(`${share * 100}`, summaryOf(runs.map((run) => of(run, median))))),
      }
    })
  const [answers, latency] = ['Answers over the rate offered', 'p99.9 over the rate offered, from the intended start'] as const
  return {
    'server-answers': () =>
      chartSvg({
        title: answers,
        subtitle,
        xName,
        yName: '% of the capacity',
        yScale: 'value',
        lines: linesOf(({ answeredPerSecond }, capacity) => (100 * answeredPerSecond) / capacity),
      }),
    'server-latency': () =>
      chartSvg({ title: latency, subtitle, xName, yName: 'ms', yScale: 'log', lines: linesOf(({ latencyMs }) => latencyMs.p999) }),
  }
}
