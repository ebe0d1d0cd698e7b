import { type ClientBounds, type Config, LISTENER_NAMES, type ListenerName, type StopTimes } from 'sluicegate-config/config.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import type { Access } from './access.js'
import { after } from './after.js'
import type { Awaitable } from './engine/awaitable.js'
import type { Engine } from './engine/engine.js'
import type { RateLimits } from './envoy/rate-limits.js'
import type { Log } from './log.js'
import type { Part, Prepared } from './part.js'
import type { CallTracing } from './protocols/call-tracing.js'
import { Guard } from './protocols/guard.js'
import type { ListenerTraffic, ProtocolServer } from './protocols/protocol-server.js'
import type { QuotaService } from './quota/quota-service.js'
import { VERSION } from './version.js'

/** Makes what each listener serves. */
export type MakeServer = Readonly<Record<ListenerName, (tls: Config['tls']) => Awaitable<ProtocolServer>>>

/** The door of each listener. */
export type Guards = Readonly<Record<ListenerName, Guard>>

export function guardsOf(log: Log): Guards {
  const guard = (name: ListenerName): Guard => new Guard(name, log)
  return { http: guard('http'), grpc: guard('grpc'), resp: guard('resp'), admin: guard('admin') }
}

/** Servers of the protocols beside HTTP, each of which is loaded when it is on. */
export function protocolServers(context: Omit<ProtocolContext, 'tls' | 'guard'>, guards: Guards): Pick<MakeServer, 'grpc' | 'resp'> {
  const { engine, access, clients, log, tracing } = context
  return {
    async grpc(tls) {
      const { grpcServer } = await import('./protocols/grpc/grpc-protocol.js')
      return grpcServer({ ...context, guard: guards.grpc, tls })
    },
    async resp(tls) {
      const { RespServer } = await import('./protocols/resp/resp-server.js')
      return new RespServer({
        engine,
        access,
        bounds: clients,
        version: VERSION,
        guard: guards.resp,
        tls,
        tracing,
        onError: (error) => log.error({ listener: 'resp', err: error }, 'a connection could not be taken'),
      })
    },
  }
}

/** Where HTTP is answered; the admin listener's when HTTP is off. */
export function urlOf(urls: ReadonlyMap<ListenerName, string>): string {
  return urls.get('http') ?? urls.get('admin') ?? [...urls.values()][0] ?? ''
}

/** All ports and sockets of the service. */
export class Listeners implements Part {
  readonly name = 'listeners'
  /** Where each one that is on listens, in the form of its URLs. */
  readonly urls: ReadonlyMap<ListenerName, string>
  readonly #urls = new Map<ListenerName, string>()
  readonly #servers = new Map<ListenerName, ProtocolServer>()
  readonly #config: Pick<Config, 'listen' | 'tls'>
  readonly #make: MakeServer

  constructor(config: Pick<Config, 'listen' | 'tls'>, make: MakeServer) {
    this.urls = this.#urls
    this.#config = config
    this.#make = make
  }

  /** Of those that are on and say. */
  get traffic(): ReadonlyMap<ListenerName, ListenerTraffic> {
    return new Map([...this.#servers].flatMap(([name, { traffic }]) => (traffic === undefined ? [] : [[name, traffic] as const])))
  }

  /** See {@link urlOf}. */
  get url(): string {
    return urlOf(this.#urls)
  }

  /**
   * All of them listen, or none.
   *
   * @throws the system's error when one cannot listen, with its `listener`.
   */
  async start(): Promise<void> {
    const { listen, tls } = this.#config
    const places = LISTENER_NAMES.flatMap((name) => {
      const at = listen[name]
      return at === undefined ? [] : [{ name, at }]
    })
    // Some have much to load. One that listened before the others can would say for as long that the service is not ready.
    for (const { name, at } of places) {
      // Encryption is for the network.
      this.#servers.set(name, await this.#make[name]('path' in at ? undefined : tls))
    }
    const results = await Promise.allSettled(places.map(async ({ name, at }) => [name, await this.#server(name).listen(at)] as const))
    for (const { value } of results.filter((result) => result.status === 'fulfilled')) this.#urls.set(...value)
    const failed = results.findIndex(({ status }) => status === 'rejected')
    if (failed === -1) return
    await Promise.all(Array.from(this.#urls.keys(), (name) => this.#server(name).stop(0)))
    throw Object.assign((results[failed] as PromiseRejectedResult).reason, { listener: places[failed]?.name })
  }

  /** Other certificates; whether there are any is of the start. */
  reload({ tls }: Pick<Config, 'tls'>): Prepared {
    return {
      commit: () => {
        if (tls === undefined || this.#config.tls === undefined) return
        for (const server of this.#servers.values()) server.certify(tls)
      },
    }
  }

  /** For `drainMs` all answer on, each answer the last of its connection. */
  async drain({ drainMs }: StopTimes): Promise<void> {
    for (const server of this.#servers.values()) server.drain()
    await after(drainMs)
  }

  async stop({ finishMs }: StopTimes): Promise<void> {
    await Promise.all(Array.from(this.#servers.values(), (server) => server.stop(finishMs)))
  }

  #server(name: ListenerName): ProtocolServer {
    return this.#servers.get(name) as ProtocolServer
  }
}

/** What the server of a protocol is made with. */
export interface ProtocolContext {
  readonly engine: Engine
  /** Decides by the files in the form of Envoy. */
  readonly limits: RateLimits
  /** Splits budgets among data planes that decide by themselves. Undefined in a worker: each would hand out the whole budget. */
  readonly quotas: QuotaService | undefined
  readonly access: Access
  readonly config: Config
  readonly clients: ClientBounds
  /** Undefined: without encryption, as always over a Unix socket. */
  readonly tls: Certificates | undefined
  readonly log: Log
  /** The door of its events. */
  readonly guard: Guard
  /** Undefined: calls are not followed. */
  readonly tracing: CallTracing | undefined
}
