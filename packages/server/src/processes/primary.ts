import type { Policy } from 'sluicegate'
import type { CallRate } from 'sluicegate/rate-table'
import type { ListenerName, StopTimes } from 'sluicegate-config/config.js'
import { allPolicies } from 'sluicegate-config/domains.js'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { configFiles } from 'sluicegate-config/read-config.js'
import { certificateDates } from '../certificate-dates.js'
import { Engine } from '../engine/engine.js'
import type { HeldVerb } from '../engine/shared-limiter.js'
import { urlOf } from '../listeners.js'
import type { Log } from '../log.js'
import { measuresOf } from '../measures/measures.js'
import { createMetrics } from '../metrics.js'
import { Parts, ticking } from '../part.js'
import { type ConfigSource, LOOK_MS, Reloader, type ReloadTrigger } from '../reload.js'
import { HOT_KEYS_TRACKED, reportOf, SWEEP_MS, savedIn, snapshotFileOf } from '../service.js'
import { Snapshots } from '../snapshots.js'
import { telemetryOf } from '../telemetry/telemetry.js'
import { VERSION } from '../version.js'
import { announcing, Webhook } from '../webhook.js'
import { forkChild, shareByProcesses, threadChild } from './child.js'
import type { Methods } from './exchange.js'
import { FiguresCollector } from './figures-collector.js'
import { OwnedPolicies, UNCOUNTED_MEMORY } from './owned-policies.js'
import { holdMethods } from './primary-holds.js'
import { ReloadCoordinator } from './reload-coordinator.js'
import { type PageFigures, pageFigures } from './shared-figures.js'
import { type Ports, sharedPorts } from './shared-ports.js'
import { WorkerPool } from './worker-pool.js'

/** Several processes that share ports and budgets. */
export interface ServedProcesses {
  readonly url: string
  readonly urls: ReadonlyMap<ListenerName, string>
  readonly engine: Engine
  /** @throws as `Reloader.reload`, later. */
  reload(trigger: ReloadTrigger): Promise<void>
  stop(times?: StopTimes): Promise<void>
}

/**
 * Starts the worker processes or threads of a configuration, which listen on the same ports, and keeps the keys for them. Resolves when all of them listen.
 *
 * @throws {ConfigError | RangeError} for a configuration that cannot be used.
 * @throws {WorkerError} when a worker cannot serve it, for example at an address that is in use.
 */
export async function startProcesses(source: ConfigSource, log: Log): Promise<ServedProcesses> {
  const files = configFiles(source.path)
  const config = source.read(files)
  const isThreads = config.threads > 1
  const snapshotFile = await snapshotFileOf(config, log)
  const webhook = new Webhook(config.webhook, log)
  const engine = new Engine(allPolicies(config), {
    hotKeys: config.storage.kind === 'memory' && config.dashboard.keys !== 'off' ? HOT_KEYS_TRACKED : 0,
    storage: UNCOUNTED_MEMORY,
    onSoft: announcing(log, webhook),
    callRates: config.throttle,
    ...savedIn(snapshotFile, log),
  })
  const owned = config.storage.kind === 'memory' ? new OwnedPolicies(engine, isThreads) : undefined
  const snapshots = snapshotFile === undefined ? undefined : new Snapshots(snapshotFile, config.snapshot.everyMs, engine, log)
  engine.costs.use(config.prices)
  const reloader = new Reloader(source, config, engine, log, (next) => parts.reload(next))
  let ports: Ports = {}
  let urls: ReadonlyMap<ListenerName, string> = new Map()

  const methodsOf = (slot: number): Methods & { end(): void } => {
    return {
      serve: (policy: PolicyConfig): void => owned?.add(slot, policy),
      drop: (name: string): void => owned?.drop(slot, name),
      ...holdMethods(engine),
      announce: (policy: Policy, key: string) => engine.softLimits?.announce(policy, key),
      throttle: (key: string, rate: CallRate, quantity: number) => engine.callRates.throttle(key, rate, quantity),
      held: (other: number, verb: HeldVerb, id: string, costs: readonly number[]) =>
        workers.begun(other)?.exchange.call('held', verb, id, costs),
      page: async (withKeys: boolean): Promise<PageFigures> => ({
        ...(await figures.page(pageFigures(engine, withKeys), withKeys)),
        reloads: reloader.state,
      }),
      metrics: async () => figures.metrics(await metrics.json()),
      reload: () => reloads.reload('admin'),
      end() {
        owned?.ended(slot)
        figures.ended(slot)
      },
    }
  }
  const workers: WorkerPool = new WorkerPool({
    log,
    spawn(slot, events) {
      const child = (isThreads ? threadChild : forkChild)(slot, events)
      owned?.serve(child.channel)
      return child
    },
    methods: methodsOf,
    begin: () => ({ files: reloads.files, tls: reloader.tls, generation: reloads.generation, ports, tables: owned?.update() }),
    onReady(worker, generation) {
      void reloads.bringUpToDate(worker, generation)
    },
  })
  const figures = new FiguresCollector(workers)
  const reloads = new ReloadCoordinator({ source, reloader, workers, tables: owned && (() => owned.update()), log, files })
  const certificates = certificateDates(log, config.tls)
  const figuresOfParts = { reloads: reloader, snapshots, restarts: workers.restarts, webhook, certificates }
  const measures = measuresOf(engine, { all: () => [] }, VERSION, figuresOfParts)
  const metrics = createMetrics(measures)

  const parts: Parts = new Parts([
    webhook,
    { name: 'prices', reload: ({ prices }) => ({ commit: () => engine.costs.use(prices) }) },
    { name: 'engine', stop: () => engine.close() },
    reportOf(await telemetryOf(VERSION), measures),
    ...(snapshots === undefined ? [] : [snapshots]),
    ticking('sweep', SWEEP_MS, () => engine.sweep()),
    certificates,
    metrics,
    {
      name: 'workers',
      async start() {
        ports = await sharedPorts(config)
        if (!isThreads) shareByProcesses()
        urls = await workers.start(Math.max(config.processes, config.threads))
      },
      // Each drains by itself.
      stop: (times) => workers.stop(times),
    },
    reloader.watching(LOOK_MS, {
      files: (trigger) => reloads.reload(trigger),
      data: (trigger) => reloads.reloadData(trigger),
    }),
  ])
  await parts.start()
  return {
    url: urlOf(urls),
    urls,
    engine,
    reload: (trigger) => reloads.reload(trigger),
    stop: (times = { drainMs: 0, finishMs: config.stop.finishMs }) => parts.stop(times),
  }
}
