import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { AggregatorRegistry } from 'prom-client'
import { after } from '../after.js'
import type { Config, ListenerName, StopTimes } from '../config/config.js'
import { allPolicies } from '../config/domains.js'
import { ConfigError } from '../config/fault.js'
import { Engine } from '../engine/engine.js'
import type { HeldVerb } from '../engine/peers.js'
import type { Log } from '../log.js'
import { createMetrics, type MetricJson } from '../metrics.js'
import { prepareSharedSocket } from '../protocols/listen-on.js'
import { type ConfigSource, isConfigFault, Reloader, type ReloadTrigger } from '../reload.js'
import { Snapshots, savedPolicies } from '../snapshots.js'
import { VERSION } from '../version.js'
import { type AddedPolicies, decisionSteps } from './decision-steps.js'
import { Exchange } from './exchange.js'
import { type PageFigures, pageFigures, summed } from './shared-figures.js'
import { filesDigest, SLOT_VARIABLE } from './worker.js'

/** A worker that dies is started again after 100 ms, then after twice as long each time, until one has lived for ten seconds. */
const RESTART_MS = { first: 100, most: 5_000, steadyAfter: 10_000 } as const
const SWEEP_MS = 1_000
const HOT_KEYS_TRACKED = 100
/** How long a worker may take to exit after its last request. */
const EXIT_MS = 1_000
/** Gauges that are no sum over the processes. */
const AGGREGATORS: Readonly<Record<string, 'first' | 'min' | 'omit'>> = {
  sluicegate_build_info: 'first',
  sluicegate_store_reachable: 'min',
}
/** Of these the primary process alone has the figures. */
const OF_PRIMARY = /^sluicegate_(?:config|snapshot|throttle)_/

/** Several processes that share ports and budgets. */
export interface ServedProcesses {
  readonly url: string
  readonly urls: ReadonlyMap<ListenerName, string>
  readonly engine: Engine
  /** @throws as `Reloader.reload`, later. */
  reload(trigger: ReloadTrigger): Promise<void>
  stop(times?: StopTimes): Promise<void>
}

interface RunningWorker {
  readonly worker: Worker
  readonly exchange: Exchange
  isReady: boolean
}

/**
 * Starts `config.processes` workers that listen on the same ports, and keeps the keys for them. Resolves when all of them listen.
 *
 * @throws {Error} when a worker cannot listen, with its `listener`.
 */
export async function startProcesses(config: Config, { log, source }: { log: Log; source: ConfigSource }): Promise<ServedProcesses> {
  const isMemory = config.storage.kind === 'memory'
  const snapshotFile = isMemory ? config.snapshot.file : undefined
  const engine = new Engine(allPolicies(config), {
    hotKeys: isMemory && config.dashboard.keys !== 'off' ? HOT_KEYS_TRACKED : 0,
    callRates: config.throttle,
    saved: snapshotFile === undefined ? [] : await savedPolicies(snapshotFile, log),
    onUnusable: (policy, reason) => log.warn({ policy, reason }, 'the saved keys of this policy cannot be used: they start full'),
  })
  const snapshots = snapshotFile === undefined ? undefined : new Snapshots(snapshotFile, engine, log)
  const reloader = new Reloader(source, config, engine, log)
  const metrics = createMetrics(engine, { all: () => [] }, VERSION, { reloads: reloader, snapshots })
  const added: AddedPolicies = new Map()
  const workers = new Map<number, RunningWorker>()
  const lastFigures = new Map<number, PageFigures>()
  const lastMetrics = new Map<number, MetricJson[]>()
  /** Of workers that have ended. */
  let endedFigures: PageFigures = { policies: {} }
  let endedMetrics: MetricJson[] = []
  let isEnding = false
  let urls: ReadonlyMap<ListenerName, string> = new Map()

  const ready = (): [number, RunningWorker][] => [...workers].filter(([, { isReady }]) => isReady)
  /** The answers of workers; one that ends meanwhile has none. */
  const ofWorkers = async <Value>(method: string, ...args: readonly unknown[]): Promise<[number, Value][]> => {
    const asked = ready().map(async ([slot, { exchange }]): Promise<[number, Value][]> => {
      try {
        return [[slot, await exchange.call<Value>(method, ...args)]]
      } catch {
        return []
      }
    })
    return (await Promise.all(asked)).flat()
  }
  const page = async (withKeys: boolean): Promise<PageFigures> => {
    for (const [slot, figures] of await ofWorkers<PageFigures>('page', withKeys)) lastFigures.set(slot, figures)
    const policies = summed([endedFigures, ...lastFigures.values(), pageFigures(engine, withKeys)])
    return { policies, reloads: reloader.state }
  }
  const render = async (): Promise<string> => {
    for (const [slot, json] of await ofWorkers<MetricJson[]>('metrics'))
      lastMetrics.set(
        slot,
        json.filter(({ name }) => !OF_PRIMARY.test(name)),
      )
    return AggregatorRegistry.aggregate([await metrics.json(), endedMetrics, ...lastMetrics.values()].map(withAggregators)).metrics()
  }
  let reloading: Promise<void> = Promise.resolve()
  const reload = (trigger: ReloadTrigger): Promise<void> => {
    reloading = reloading.catch(() => undefined).then(() => reloadAll(trigger))
    return reloading
  }
  const reloadAll = async (trigger: ReloadTrigger): Promise<void> => {
    const commit = reloader.prepare(trigger)
    try {
      const digest = filesDigest(source.path)
      const prepared = ready().map(([, { exchange }]) => exchange.call<boolean>('prepareReload', digest))
      if (!(await Promise.all(prepared)).every(Boolean)) throw new RangeError('the files changed while they were read')
    } catch (error) {
      reloader.fail(trigger, error as Error)
      throw error
    }
    commit()
    await ofWorkers('commitReload')
  }

  const start = (slot: number, delayMs: number): Promise<ReadonlyMap<ListenerName, string>> =>
    new Promise((resolve, reject) => {
      const startedMs = performance.now()
      const worker = cluster.fork({ [SLOT_VARIABLE]: String(slot) })
      const steps = decisionSteps(engine, added, slot)
      const exchange = new Exchange((message) => void worker.send(message as object, () => undefined), {
        ...steps,
        held: (other: number, verb: HeldVerb, id: string, costs: readonly number[]) =>
          workers.get(other)?.exchange.call('held', verb, id, costs),
        page,
        metrics: render,
        reload: () => reload('admin'),
        ready(at: [ListenerName, string][]): void {
          running.isReady = true
          resolve(new Map(at))
        },
        failed: (message: string): void => reject(new Error(message)),
      })
      const running: RunningWorker = { worker, exchange, isReady: false }
      workers.set(slot, running)
      worker.on('message', (message) => exchange.receive(message))
      worker.once('error', (error) => log.error({ slot, err: error }, 'a worker failed'))
      worker.once('exit', (code, signal) => {
        exchange.close()
        steps.end()
        workers.delete(slot)
        endedFigures = { policies: summed([endedFigures, withoutKeys(lastFigures.get(slot))]) }
        lastFigures.delete(slot)
        const counters = (lastMetrics.get(slot) ?? []).filter(({ type }) => ['counter', 'histogram'].includes(String(type)))
        lastMetrics.delete(slot)
        void AggregatorRegistry.aggregate([endedMetrics, counters])
          .getMetricsAsJSON()
          .then((json) => {
            endedMetrics = json as unknown as MetricJson[]
          })
        reject(new Error(`a worker ended before it listened: ${signal ?? `exit code ${code}`}`))
        if (isEnding || !hasStarted) return
        const livedMs = performance.now() - startedMs
        const nextMs = livedMs >= RESTART_MS.steadyAfter ? RESTART_MS.first : Math.min(delayMs * 2, RESTART_MS.most)
        log.error({ slot, code, signal, restartMs: delayMs }, 'a worker ended: it is started again')
        setTimeout(() => {
          if (!isEnding) start(slot, nextMs).catch(() => undefined)
        }, delayMs)
      })
    })

  for (const at of Object.values(config.listen)) if (at !== undefined && 'path' in at) await prepareSharedSocket(at.path)
  // Workers accept connections themselves: one that dies takes none with it that this process has handed over.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  cluster.setupPrimary({ serialization: 'advanced' })
  let hasStarted = false
  try {
    const slots = Array.from({ length: config.processes }, (_, slot) => start(slot, RESTART_MS.first))
    urls = (await Promise.all(slots))[0] ?? urls
    hasStarted = true
  } catch (error) {
    isEnding = true
    for (const { worker } of workers.values()) worker.kill('SIGKILL')
    engine.close()
    throw error
  }
  const sweeping = setInterval(() => engine.sweep(), SWEEP_MS).unref()
  const watch = (): void => void reload('file').catch(unlessFault)
  reloader.watch(undefined, watch)
  snapshots?.start(config.snapshot.everyMs)

  const end = async (times: StopTimes): Promise<void> => {
    isEnding = true
    reloader.stop()
    const ends = [...workers.values()].map(async ({ worker, exchange }) => {
      const exited = once(worker, 'exit')
      exchange.call('stop', times).catch(() => undefined)
      await Promise.race([exited, after(times.drainMs + times.finishMs + EXIT_MS)])
      worker.process.kill('SIGKILL')
    })
    await Promise.all(ends)
    clearInterval(sweeping)
    snapshots?.stop()
    await snapshots?.write()
    engine.close()
  }
  let ended: Promise<void> | undefined
  return {
    url: urls.get('http') ?? urls.get('admin') ?? [...urls.values()][0] ?? '',
    urls,
    engine,
    reload,
    stop(times = { drainMs: 0, finishMs: config.stop.finishMs }) {
      ended ??= end(times)
      return ended
    },
  }
}

function withAggregators(json: MetricJson[]): MetricJson[] {
  return json.map((metric) => ({ ...metric, aggregator: AGGREGATORS[metric.name] ?? metric.aggregator }))
}

function withoutKeys(figures: PageFigures = { policies: {} }): PageFigures {
  const policies = Object.fromEntries(
    Object.entries(figures.policies).map(([name, each]) => [name, { ...each, keys: 0, demand: [], denials: [] }]),
  )
  return { policies }
}

/** A fault is in the log and in the metrics. */
function unlessFault(error: unknown): void {
  if (!isConfigFault(error) && !(error instanceof ConfigError)) throw error
}
