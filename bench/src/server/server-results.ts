import type { Machine } from '../machine.js'
import type { GeneratorPair } from './measure-generators.js'
import type { GrpcEffort } from './measure-grpc.js'
import type { HttpFigure } from './measure-http.js'
import type { NginxFigure } from './measure-nginx.js'
import type { RateFigure } from './measure-rates.js'
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
