import type { Machine } from '../machine.js'
import type { GeneratorPair } from './measure-generators.js'
import type { GrpcEffort } from './measure-grpc.js'
import type { HttpFigure } from './measure-http.js'
import type { NginxFigure } from './measure-nginx.js'
import { PROTOCOLS, type Protocol, type RateFigure } from './measure-rates.js'
import type { RespEffort, RespFigure } from './measure-resp.js'
import type { StartupFigure } from './measure-startup.js'
import type { ServerRun, TimedEffort } from './server-run.js'

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
