import { type Clock, preciseClock } from 'sluicegate'
import { Access } from './access.js'
import { after } from './after.js'
import { Candidate } from './candidate/candidate.js'
import { diffRoute } from './candidate/diff-route.js'
import { type ClientBounds, type Config, type KeyDisplay, LISTENER_NAMES, type ListenerName, type StopTimes } from './config/config.js'
import { allPolicies } from './config/domains.js'
import { ConfigError } from './config/fault.js'
import type { ListenAddress } from './config/listen-address.js'
import { dashboardRoutes } from './dashboard/routes.js'
import { type SampledEngine, Sampler, type Shown } from './dashboard/sampler.js'
import { Stream } from './dashboard/stream.js'
import { Engine } from './engine/engine.js'
import type { Peers } from './engine/peers.js'
import { MEMORY, type Storage } from './engine/stored-limiter.js'
import { type LimitSettings, limitSettings } from './envoy/limit-settings.js'
import { RateLimits } from './envoy/rate-limits.js'
import { createLog, type Log } from './log.js'
import { measuresOf } from './measures/measures.js'
import { createMetrics, type Metrics } from './metrics.js'
import type { SharedFigures } from './processes/shared-figures.js'
import { PROTOCOL_SERVERS } from './protocol-servers.js'
import { adminSurface, httpSurface } from './protocols/http/access.js'
import type { Connections } from './protocols/http/connections.js'
import type { Route } from './protocols/http/handler.js'
import { HttpServer } from './protocols/http/http-server.js'
import { livezRoute, metricsRoute, readyzRoute, startupzRoute } from './protocols/http/observe.js'
import { reloadRoute } from './protocols/http/reload.js'
import { router } from './protocols/http/router.js'
import { traced } from './protocols/http/traced.js'
import { changeRoutes, decisionRoutes } from './protocols/http/verbs.js'
import type { ListenerTraffic, ProtocolServer } from './protocols/protocol-server.js'
import { QuotaService } from './quota/quota-service.js'
import { type ConfigSource, isConfigFault, LOOK_MS, Reloader, type ReloadState } from './reload.js'
import { Snapshots, savedPolicies } from './snapshots.js'
import { telemetryOf } from './telemetry/telemetry.js'
import { VERSION } from './version.js'

/** A service that listens. */
export interface Service {
  /** Where HTTP is answered, for example `http://127.0.0.1:8080` or `unix:/run/sluicegate.sock`; the admin listener's when HTTP is off. */
  readonly url: string
  /** Where each protocol that is on listens, in the form of its URLs. */
  readonly urls: ReadonlyMap<ListenerName, string>
  readonly engine: Engine
  readonly connections: Connections
  /** Undefined without a source. */
  readonly reloader: Reloader | undefined
  /** Of this process. */
  readonly metrics: Metrics
  /**
   * Stops in order. For `drainMs` it answers on while `/readyz` says 503, each answer the last of its connection. Then ports and
   * connections without a request are closed, and requests in flight have `finishMs` to finish before they are cut off.
   */
  stop(times?: StopTimes): Promise<void>
}

/** Options for tests. */
export interface ServiceOptions {
  readonly clock?: Clock
  readonly clients?: Partial<ClientBounds>
  /** How often the page gets a sample; default 1,000. */
  readonly sampleMs?: number
  /** Where `config` comes from; without it nothing can be reloaded. */
  readonly source?: ConfigSource
  /** How often its files are looked at; default 1,000. */
  readonly watchMs?: number
  readonly log?: Log
  /** In one of several processes of the service. */
  readonly worker?: WorkerParts
}

/** What a worker shares with the other processes of the service. */
export interface WorkerParts {
  /** Undefined: as the configuration says. */
  readonly storage?: Storage
  readonly peers: Peers
  /** Of all processes, for the page. */
  readonly figures: SharedFigures
  /** Of all processes. */
  metrics(): Promise<string>
  reload(): Promise<void>
  reloadState(): ReloadState | undefined
}

/** How many keys the page can rank; the list behind it holds ten times as many, to be sure of the first ones. */
const HOT_KEYS_TRACKED = 100
const SWEEP_MS = 1_000

/**
 * Starts the service that `config` describes.
 *
 * @throws the system's error when it cannot listen, with its `listener`, for example with `code: 'EADDRINUSE'`. Nothing listens then.
 */
export async function startService(config: Config, options: ServiceOptions = {}): Promise<Service> {
  const { clock, sampleMs = 1_000, worker, log = createLog(config.log.level) } = options
  const clients = { ...config.clients, ...options.clients }
  const pageServed = config.dashboard.keys !== 'off'
  const storage = await storageOf(config, log, worker)
  // A store keeps its keys itself.
  const snapshotFile = config.storage.kind === 'memory' && worker === undefined ? config.snapshot.file : undefined
  const telemetry = await telemetryOf(VERSION)
  const candidate = config.candidate === undefined ? undefined : new Candidate(config.candidate, log, { clock, tracksKeys: pageServed })
  const engine = new Engine(allPolicies(config), {
    observer: telemetry.tracing,
    ...(clock && { clock }),
    ...(candidate && { follower: candidate.follower }),
    storage,
    peers: worker?.peers,
    hotKeys: pageServed ? HOT_KEYS_TRACKED : 0,
    callRates: config.throttle,
    saved: snapshotFile === undefined ? [] : await savedPolicies(snapshotFile, log),
    onUnusable: (policy, reason) => log.warn({ policy, reason }, 'the saved keys of this policy cannot be used: they start full'),
  })
  const snapshots = snapshotFile === undefined ? undefined : new Snapshots(snapshotFile, engine, log)
  const access = new Access(config.tokens)
  const settings = environmentSettings()
  const limits = new RateLimits(engine, config.domains, settings, clock === undefined ? Date.now : () => clock.nowMs())
  const ticking = clock ?? preciseClock()
  const quotas = new QuotaService({
    engine,
    config: { rules: config.quotaRules, domains: config.domains },
    times: config.quotas,
    nowMs: () => ticking.nowMs(),
    isShadow: settings.shadowMode,
  })
  const phase: { now: 'starting' | 'ready' | 'stopping' } = { now: 'starting' }
  const reloader = options.source && new Reloader(options.source, config, engine, log)
  reloader?.add((next) => () => limits.use(next.domains))
  reloader?.add((next) => () => quotas.use({ rules: next.quotaRules, domains: next.domains }))
  if (candidate !== undefined) reloader?.add(() => () => candidate.reload())
  const sampled = worker?.figures ?? engine
  const shown = { reloads: () => (worker === undefined ? reloader?.state : worker.reloadState()), candidate }
  const page = pageOf(sampled, config.dashboard.keys, shown)
  // Its callers may reset and block keys, so they see which they are.
  const adminPage = pageOf(sampled, 'shown', { ...shown, isAdmin: true })
  const pages = pageServed ? [page, ...(config.listen.admin === undefined ? [] : [adminPage])] : []

  const probes: [string, Route][] = [
    ['/livez', livezRoute()],
    ['/readyz', readyzRoute(() => phase.now)],
    ['/startupz', startupzRoute(() => phase.now)],
  ]
  const routes = new Map<string, Route>(traced(decisionRoutes(engine, limits, access), telemetry.tracing))
  const traffic = { all: () => [http.connections, admin.connections, ...trafficOf(servers)] }
  const measures = measuresOf(engine, traffic, VERSION, { hits: limits.hits, reloads: reloader, snapshots, candidate, quotas })
  const metrics = createMetrics(measures)
  routes.set('/metrics', metricsRoute(worker === undefined ? metrics : { ...metrics, render: worker.metrics }))
  const endReport = telemetry.report(measures)
  const changes = changeRoutes(engine)
  if (reloader !== undefined)
    changes.push(['/v1/reload', reloadRoute(() => (worker === undefined ? reloader.reload('admin') : worker.reload()), isConfigFault)])

  if (candidate !== undefined) changes.push(['/v1/diff', diffRoute(candidate, engine)])

  const onError = (name: ListenerName) => (error: Error) => log.error({ listener: name, err: error }, 'a connection could not be taken')
  const httpServer = (name: 'http' | 'admin'): HttpServer => {
    const surface = name === 'admin' ? adminSurface : httpSurface
    const { sampler, stream } = name === 'admin' ? adminPage : page
    const all = pageServed ? [...routes, ...dashboardRoutes(engine, sampler, stream)] : routes
    return new HttpServer({
      router: router(surface({ probes, routes: all, changes, access })),
      bounds: clients,
      tls: tlsOf(config, config.listen[name]),
      keepsAllFields: telemetry.tracing !== undefined,
      onError: onError(name),
    })
  }
  const http = httpServer('http')
  const admin = httpServer('admin')
  const context = {
    engine,
    limits,
    quotas: worker === undefined ? quotas : undefined,
    access,
    config,
    clients,
    log,
    reloader,
    tracing: telemetry.tracing,
  }
  const servers = new Map<ListenerName, ProtocolServer>()
  for (const name of LISTENER_NAMES) {
    if (config.listen[name] === undefined) continue
    if (name === 'http') servers.set(name, http)
    else if (name === 'admin') servers.set(name, admin)
    else {
      const make = PROTOCOL_SERVERS[name]
      if (make !== undefined) servers.set(name, make({ ...context, tls: tlsOf(config, config.listen[name]) }))
    }
  }
  await storage.connect()
  const urls = await listenAll(servers, config).catch(async (error: unknown) => {
    http.connections.close()
    admin.connections.close()
    endReport()
    candidate?.close()
    engine.close()
    await storage.close()
    throw error
  })

  const sampling = setInterval(() => {
    for (const { sampler, stream } of pages) stream.isRead ? stream.send(sampler.sample()) : sampler.tick()
  }, sampleMs).unref()
  const sweeping = setInterval(() => engine.sweep(), SWEEP_MS).unref()
  if (worker === undefined) reloader?.watch(options.watchMs)
  else worker.figures.isRead = () => pages.some(({ stream }) => stream.isRead)
  candidate?.watch(options.watchMs ?? LOOK_MS)
  snapshots?.start(config.snapshot.everyMs)
  phase.now = 'ready'

  let stopped: Promise<void> | undefined
  const stopIn = async ({ drainMs, finishMs }: StopTimes): Promise<void> => {
    phase.now = 'stopping'
    for (const server of servers.values()) server.drain()
    reloader?.stop()
    candidate?.close()
    clearInterval(sampling)
    for (const { stream } of pages) stream.end()
    await after(drainMs)
    await Promise.all(Array.from(servers.values(), (server) => server.stop(finishMs)))
    clearInterval(sweeping)
    quotas.close()
    snapshots?.stop()
    await snapshots?.write()
    await telemetry.flush()
    endReport()
    http.connections.close()
    admin.connections.close()
    engine.close()
    await storage.close()
  }
  return {
    url: urls.get('http') ?? urls.get('admin') ?? [...urls.values()][0] ?? '',
    urls,
    engine,
    connections: http.connections,
    reloader,
    metrics,
    stop(times = { drainMs: 0, finishMs: config.stop.finishMs }) {
      stopped ??= stopIn(times)
      return stopped
    },
  }
}

/** The client of a store takes longer to load than the rest of the service. */
async function storageOf({ storage }: Config, log: Log, worker: WorkerParts | undefined): Promise<Storage> {
  if (storage.kind === 'memory') return worker?.storage ?? MEMORY
  const { RedisStorage } = await import('./engine/redis-storage.js')
  return new RedisStorage(storage, log)
}

/** The live page of a listener: what it samples, and who reads it. */
function pageOf(engine: SampledEngine, keys: KeyDisplay, shown: Shown): { sampler: Sampler; stream: Stream } {
  return { sampler: new Sampler(engine, keys, shown), stream: new Stream() }
}

/** Connections of the protocols beside HTTP. */
function trafficOf(servers: ReadonlyMap<ListenerName, ProtocolServer>): ListenerTraffic[] {
  return Array.from(servers.values(), ({ traffic }) => traffic ?? []).flat()
}

/** @throws {ConfigError} for a variable that is neither true nor false. */
function environmentSettings(): LimitSettings {
  return limitSettings(process.env, (variable, reason) => {
    throw new ConfigError([{ file: 'environment', line: 1, column: 1, path: variable, reason }])
  })
}

/** Encryption is for the network. */
function tlsOf({ tls }: Config, at: ListenAddress | undefined): Config['tls'] {
  return at !== undefined && 'path' in at ? undefined : tls
}

/** All of them listen, or none. */
async function listenAll(servers: ReadonlyMap<ListenerName, ProtocolServer>, config: Config): Promise<Map<ListenerName, string>> {
  const urls = new Map<ListenerName, string>()
  for (const [name, server] of servers) {
    try {
      urls.set(name, await server.listen(config.listen[name] as ListenAddress))
    } catch (error) {
      const opened = Array.from(urls.keys(), (each) => servers.get(each)?.stop(0))
      await Promise.all(opened)
      throw Object.assign(error as Error, { listener: name })
    }
  }
  return urls
}
