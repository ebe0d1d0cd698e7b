import { type Clock, preciseClock } from 'sluicegate'
import type { ClientBounds, Config, ListenerName, StopTimes } from 'sluicegate-config/config.js'
import { allPolicies } from 'sluicegate-config/domains.js'
import { ConfigError } from 'sluicegate-config/fault.js'
import { Access } from './access.js'
import { Candidate } from './candidate/candidate.js'
import { certificateDates } from './certificate-dates.js'
import { LivePage } from './dashboard/live-page.js'
import { Engine, type EngineOptions, type HoldVerbs } from './engine/engine.js'
import { MEMORY, type Storage } from './engine/engine-limiter.js'
import type { Peers } from './engine/shared-limiter.js'
import { type LimitSettings, limitSettings } from './envoy/limit-settings.js'
import { RateLimits } from './envoy/rate-limits.js'
import { httpServers } from './http-servers.js'
import { guardsOf, Listeners, protocolServers } from './listeners.js'
import { createLog, type Log } from './log.js'
import type { Measure } from './measures/measure.js'
import { measuresOf } from './measures/measures.js'
import { createMetrics, type Metrics } from './metrics.js'
import { openFiles } from './open-files.js'
import { type Part, Parts, ticking } from './part.js'
import type { SharedFigures } from './processes/shared-figures.js'
import type { ListenerTraffic } from './protocols/protocol-server.js'
import { QuotaService } from './quota/quota-service.js'
import { type ConfigSource, LOOK_MS, Reloader, type ReloadState } from './reload.js'
import { openSnapshots, type SnapshotFile, Snapshots } from './snapshots.js'
import { type Telemetry, telemetryOf } from './telemetry/telemetry.js'
import { VERSION } from './version.js'
import { announcing, Webhook } from './webhook.js'

/** A service that listens. */
export interface Service {
  /** Where HTTP is answered, for example `http://127.0.0.1:8080` or `unix:/run/sluicegate.sock`; the admin listener's when HTTP is off. */
  readonly url: string
  /** Where each protocol that is on listens, in the form of its URLs. */
  readonly urls: ReadonlyMap<ListenerName, string>
  readonly engine: Engine
  /** The connections of each listener that is on. */
  readonly traffic: ReadonlyMap<ListenerName, ListenerTraffic>
  /** Undefined without a source. */
  readonly reloader: Reloader | undefined
  /** Of this process. */
  readonly metrics: Metrics
  /**
   * Stops in order. For `drainMs` it answers on while `/readyz` says 503, each answer the last of its connection. Then ports and
   * connections without a request are closed, and requests in flight have `finishMs` to finish before they are cut off.
   */
  stop(times?: StopTimes): Promise<void>
  /** Likewise, as one of several workers: the others serve on, so `/readyz` says 200 until its port is closed. */
  leave(times: StopTimes): Promise<void>
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
  /** Undefined: in this process, or in the store. */
  readonly holds?: HoldVerbs
  /** Of all processes, for the page. */
  readonly figures: SharedFigures
  /** Of all processes. */
  metrics(): Promise<Buffer>
  reload(): Promise<void>
  reloadState(): ReloadState | undefined
}

/** How many keys the page can rank; the list behind it holds ten times as many, to be sure of the first ones. */
export const HOT_KEYS_TRACKED = 100
/** How often permits and reservations whose time is over are looked for. */
export const SWEEP_MS = 1_000

/**
 * Starts the service that `config` describes: makes its parts, each of which is given what it needs, and starts them in order.
 *
 * @throws the system's error when it cannot listen, with its `listener`, for example with `code: 'EADDRINUSE'`. Nothing listens then.
 */
export async function startService(config: Config, options: ServiceOptions = {}): Promise<Service> {
  const { clock, worker, sampleMs = 1_000, watchMs = LOOK_MS, log = createLog(config.log.level) } = options
  const clients = { ...config.clients, ...options.clients }
  const hasPage = config.dashboard.keys !== 'off'
  const telemetry = await telemetryOf(VERSION)
  const { tracing } = telemetry
  const storage = await storageOf(config, log, worker)
  const candidate = candidateOf(config, log, options)
  const snapshotFile = worker === undefined ? await snapshotFileOf(config, log) : undefined
  const webhook = new Webhook(config.webhook, log)
  const engine = new Engine(allPolicies(config), {
    observer: tracing,
    ...(clock && { clock }),
    ...(candidate && { follower: candidate.follower }),
    storage,
    peers: worker?.peers,
    holds: worker?.holds,
    onSoft: announcing(log, webhook),
    hotKeys: hasPage ? HOT_KEYS_TRACKED : 0,
    callRates: config.throttle,
    ...savedIn(snapshotFile, log),
  })
  engine.costs.use(config.prices)
  const snapshots = snapshotFile === undefined ? undefined : new Snapshots(snapshotFile, config.snapshot.everyMs, engine, log)
  const access = new Access(config.tokens)
  const settings = environmentSettings()
  const limits = new RateLimits(engine, config.domains, settings, clock === undefined ? Date.now : () => clock.nowMs())
  const { nowMs } = clock ?? preciseClock()
  const { quotaRules: rules, domains, quotas: times } = config
  const quotas = new QuotaService({ engine, config: { rules, domains }, times, nowMs, isShadow: settings.shadowMode })
  const reloader = options.source && new Reloader(options.source, config, engine, log, (next) => parts.reload(next))
  const guards = guardsOf(log)
  const reloads = (): ReloadState | undefined => (worker === undefined ? reloader?.state : worker.reloadState())
  const { keys } = config.dashboard
  const hasAdmin = config.listen.admin !== undefined
  const page = new LivePage({ engine: worker?.figures ?? engine, keys, guards, hasAdmin, sampleMs, reloads, candidate })
  const traffic = { all: () => [...listeners.traffic.values()] }
  const certificates = worker === undefined ? certificateDates(log, config.tls) : undefined
  const measures = measuresOf(engine, traffic, VERSION, {
    hits: limits.hits,
    reloads: reloader,
    snapshots,
    candidate,
    quotas,
    guards,
    webhook,
    certificates,
  })
  const metrics = createMetrics(measures)
  const deciding = { engine, limits, access, clients, log, tracing }
  const http = httpServers({
    ...deciding,
    guards,
    page,
    metrics: worker === undefined ? metrics : { ...metrics, render: () => worker.metrics() },
    candidate,
    reload: reloader && (() => (worker === undefined ? reloader.reload('admin') : worker.reload())),
    phase: () => parts.phase,
  })
  const others = protocolServers({ ...deciding, config, quotas: worker === undefined ? quotas : undefined }, guards)
  const listeners = new Listeners(config, { ...http, ...others })
  const parts: Parts = new Parts([
    { name: 'storage', start: () => opened(storage), stop: () => storage.close() },
    webhook,
    { name: 'engine', stop: () => engine.close() },
    reportOf(telemetry, measures),
    ...[snapshots, candidate, certificates].filter((part) => part !== undefined),
    { name: 'limits', reload: (next) => ({ commit: () => limits.use(next.domains) }) },
    quotas,
    ticking('sweep', SWEEP_MS, () => engine.sweep()),
    { name: 'prices', reload: ({ prices }) => ({ commit: () => engine.costs.use(prices) }) },
    { name: 'tokens', reload: ({ tokens }) => ({ commit: () => access.use(tokens) }) },
    openFiles(log, clients.maxConnections),
    listeners,
    page,
    metrics,
    ...(reloader === undefined || worker !== undefined ? [] : [reloader.watching(watchMs)]),
  ])
  if (worker !== undefined) worker.figures.isRead = () => page.isRead
  await parts.start()
  return {
    url: listeners.url,
    urls: listeners.urls,
    engine,
    traffic: listeners.traffic,
    reloader,
    metrics,
    stop: (times = { drainMs: 0, finishMs: config.stop.finishMs }) => parts.stop(times),
    leave: (times) => parts.stop(times, 'ready'),
  }
}

/** Undefined without one. */
function candidateOf(
  { candidate, dashboard }: Config,
  log: Log,
  { clock, watchMs = LOOK_MS, source }: ServiceOptions,
): Candidate | undefined {
  const more = { clock, tracksKeys: dashboard.keys !== 'off', watchMs, load: source?.beside?.readOther }
  return candidate === undefined ? undefined : new Candidate(candidate, log, more)
}

/** The client of a store takes longer to load than the rest of the service. */
async function storageOf({ storage }: Config, log: Log, worker: WorkerParts | undefined): Promise<Storage> {
  if (storage.kind === 'memory') return worker?.storage ?? MEMORY
  const { sharedStorage } = await import('./engine/shared-storage.js')
  return sharedStorage(storage, log)
}

/** One that cannot be used is closed: a part that has not started is not stopped. */
async function opened(storage: Storage): Promise<void> {
  try {
    await storage.connect()
  } catch (error) {
    await storage.close()
    throw error
  }
}

/**
 * Where the keys are kept over a restart; a store keeps them itself.
 *
 * @throws {SnapshotPlaceError}
 */
export async function snapshotFileOf({ storage, snapshot }: Config, log: Log): Promise<SnapshotFile | undefined> {
  return storage.kind === 'memory' && snapshot.file !== undefined ? openSnapshots(snapshot.file, log) : undefined
}

/** The keys of an earlier process. */
export function savedIn(file: SnapshotFile | undefined, log: Log): Pick<EngineOptions, 'saved' | 'onUnusable'> {
  return {
    saved: file?.saved ?? [],
    onUnusable: (policy, reason) => log.warn({ policy, reason }, 'the saved keys of this policy cannot be used: they start full'),
  }
}

/** What the service reports to OpenTelemetry, from the start to the end. */
export function reportOf(telemetry: Telemetry, measures: readonly Measure[]): Part {
  let end: (() => void) | undefined
  return {
    name: 'telemetry',
    start: () => {
      end = telemetry.report(measures)
    },
    async stop() {
      await telemetry.flush()
      end?.()
    },
  }
}

/** @throws {ConfigError} for a variable that is neither true nor false. */
function environmentSettings(): LimitSettings {
  return limitSettings(process.env, (variable, reason) => {
    throw new ConfigError([{ file: 'environment', line: 1, column: 1, path: variable, reason }])
  })
}
