import type { Table } from '../markdown.js'
import { figure, spread, whole } from '../report.js'
import { ratios, type Summary, summaryOf } from '../samples.js'
import type { HttpRequests } from './http-requests.js'
import { HTTP_CONNECTIONS, type HttpFigure } from './measure-http.js'
import type { NginxFigure, NginxSubject } from './measure-nginx.js'
import { type RateFigure, TARGET_SHARE } from './measure-rates.js'
import type { ServerResults } from './server-results.js'
import type { ServerRun } from './server-run.js'

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

export const rate = (run: ServerRun): number => run.perSecond
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
