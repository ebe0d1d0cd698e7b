import type { Verdict } from '../question.js'
import { ratios, type Summary, summaryOf } from '../samples.js'
import { HTTP_REQUESTS, type HttpRequests } from './http-requests.js'
import { HTTP_CONNECTIONS, type HttpSubject } from './measure-http.js'
import type { NginxSubject } from './measure-nginx.js'
import type { ServerResults } from './server-results.js'
import { rate } from './server-tables.js'

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
