import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { AggregatorRegistry } from 'prom-client'
import { type Config, LISTENER_NAMES, type ListenerName, type StopTimes } from '../config/config.js'
import { allPolicies } from '../config/domains.js'
import { type ConfigFile, configFiles } from '../config/read-config.js'
import { Engine } from '../engine/engine.js'
import type { HeldVerb } from '../engine/peers.js'
import type { Log } from '../log.js'
import { measuresOf } from '../measures/measures.js'
import type { WorkerRestarts } from '../measures/service-measures.js'
import { createMetrics, type MetricJson } from '../metrics.js'
import { listenOn, prepareSharedSocket } from '../protocols/listen-on.js'
import { type ConfigSource, type PreparedReload, Reloader, type ReloadTrigger } from '../reload.js'
import { Snapshots, savedPolicies } from '../snapshots.js'
import { telemetryOf } from '../telemetry/telemetry.js'
import { VERSION } from '../version.js'
import { type Child, forkChild, shareByProcesses, threadChild } from './child.js'
import { type AddedPolicies, decisionSteps } from './decision-steps.js'
import { Exchange } from './exchange.js'
import { noFigures, type PageFigures, pageFigures, summed, withoutKeys } from './shared-figures.js'
import { type SharedTables, tableSharing } from './thread-storage.js'

/** A worker that dies is started again after 100 ms, then after twice as long each time, until one has lived for ten seconds. */
const RESTART_MS = { first: 100, most: 5_000, steadyAfter: 10_000 } as const
const SWEEP_MS = 1_000
const HOT_KEYS_TRACKED = 100
/** How long a worker may take to exit after its last request. */
const EXIT_MS = 1_000
/** How long a worker may take to read a changed configuration; data files of tiers may have a million rows. */
const PREPARE_MS = 30_000
/**
 * A worker whose event loop is stuck is found by calls that it does not answer. Two in a row, since the first may be late because this process was
 * stopped itself.
 */
const ALIVE = { everyMs: 1_000, answerMs: 4_000, misses: 2 } as const
/** Gauges that are no sum over the processes. */
const AGGREGATORS: Readonly<Record<string, 'first' | 'min' | 'omit'>> = {
  sluicegate_build_info: 'first',
  sluicegate_policies: 'first',
  sluicegate_store_reachable: 'min',
}
/** Of these the primary process alone has the figures. */
const OF_PRIMARY = /^sluicegate_(?:config_|snapshot_)/

/** Several processes that share ports and budgets. */
export interface ServedProcesses {
  readonly url: string
  readonly urls: ReadonlyMap<ListenerName, string>
  readonly engine: Engine
  /** @throws as `Reloader.reload`, later. */
  reload(trigger: ReloadTrigger): Promise<void>
  stop(times?: StopTimes): Promise<void>
}

/** What a worker begins with. */
export interface WorkerStart {
  /** The configuration in force. */
  readonly files: readonly ConfigFile[]
  /** Counts the configurations that were in force. */
  readonly generation: number
  /** Where all workers listen. */
  readonly ports: Ports
  /** For threads. */
  readonly tables: SharedTables | undefined
}

/** Ports of the listeners that have one. */
export type Ports = Readonly<Partial<Record<ListenerName, number>>>

/** Why a worker cannot serve, for people. */
export class WorkerError extends Error {
  override readonly name = 'WorkerError'
}

interface RunningWorker {
  readonly child: Child
  readonly exchange: Exchange
  readonly ended: Promise<void>
  /** Before it begins, a worker answers no calls, and has no permits and no reservations. */
  hasBegun: boolean
  isReady: boolean
  /** Whether it reads a configuration, which may take longer than an answer. */
  isReading: boolean
  /** Whether a call that finds out whether it answers is under way. */
  isLookedAt: boolean
  /** Such calls in a row that it did not answer. */
  misses: number
  /** Whether it was ended because of that. */
  isHung: boolean
}

/**
 * Starts the worker processes or threads of a configuration, which listen on the same ports, and keeps the keys for them. Resolves when all of them listen.
 *
 * @throws {ConfigError | RangeError} for a configuration that cannot be used.
 * @throws {WorkerError} when a worker cannot serve it, for example at an address that is in use.
 */
export async function startProcesses(source: ConfigSource, log: Log): Promise<ServedProcesses> {
  let files: readonly ConfigFile[] = configFiles(source.path)
  const config = source.read(files)
  let generation = 0
  const isThreads = config.threads > 1
  const count = Math.max(config.processes, config.threads)
  const engine = await engineOf(config, log)
  const added: AddedPolicies = new Map()
  const tables = isThreads && config.storage.kind === 'memory' ? tableSharing(engine, added) : undefined
  const snapshots = snapshotFileOf(config) === undefined ? undefined : new Snapshots(snapshotFileOf(config) as string, engine, log)
  const reloader = new Reloader(source, config, engine, log)
  const restarts: WorkerRestarts = { ended: 0, hung: 0 }
  const measures = measuresOf(engine, { all: () => [] }, VERSION, { reloads: reloader, snapshots, restarts })
  const metrics = createMetrics(measures)
  const telemetry = await telemetryOf(VERSION)
  const endReport = telemetry.report(measures)
  const workers = new Map<number, RunningWorker>()
  const lastFigures = new Map<number, PageFigures>()
  const lastMetrics = new Map<number, MetricJson[]>()
  /** Of workers that have ended. */
  let endedFigures = noFigures()
  let endedMetrics: MetricJson[] = []
  let isEnding = false
  let hasStarted = false
  let urls: ReadonlyMap<ListenerName, string> = new Map()
  let ports: Ports = {}

  const ready = (): [number, RunningWorker][] => [...workers].filter(([, { isReady }]) => isReady)
  /** The answers of workers; one that ends or hangs meanwhile has none. */
  const ofWorkers = async <Value>(method: string, ...args: readonly unknown[]): Promise<[number, Value][]> => {
    const answers = ready().map(async ([slot, { exchange }]): Promise<[number, Value][]> => {
      try {
        return [[slot, await exchange.call<Value>(method, ...args)]]
      } catch {
        return []
      }
    })
    return (await Promise.all(answers)).flat()
  }
  const page = async (withKeys: boolean): Promise<PageFigures> => {
    for (const [slot, figures] of await ofWorkers<PageFigures>('page', withKeys)) if (workers.has(slot)) lastFigures.set(slot, figures)
    return { ...summed([endedFigures, ...lastFigures.values(), pageFigures(engine, withKeys)]), reloads: reloader.state }
  }
  const render = async (): Promise<string> => {
    for (const [slot, json] of await ofWorkers<MetricJson[]>('metrics')) {
      const own = json.filter(({ name }) => !OF_PRIMARY.test(name))
      if (workers.has(slot)) lastMetrics.set(slot, own)
    }
    return AggregatorRegistry.aggregate([await metrics.json(), endedMetrics, ...lastMetrics.values()].map(withAggregators)).metrics()
  }

  let reloading: Promise<void> = Promise.resolve()
  const inTurn = (step: () => Promise<void>): Promise<void> => {
    reloading = reloading.catch(() => undefined).then(step)
    return reloading
  }
  /** All workers prepare the same; one that does not answer is replaced by one that reads the files again. */
  const prepareWorkers = async (
    trigger: ReloadTrigger,
    { data, discard }: PreparedReload,
    method: string,
    ...args: readonly unknown[]
  ): Promise<void> => {
    try {
      const prepared = ready().map(async ([, running]) => {
        const { child, exchange, ended } = running
        let isGone = false
        running.isReading = true
        void ended.then(() => {
          isGone = true
        })
        try {
          return (await exchange.callWith<string>({ timeoutMs: PREPARE_MS }, method, ...args)) === data
        } catch (error) {
          if (error instanceof RangeError) throw error
          if (!isGone) child.kill()
          return true
        } finally {
          running.isReading = false
        }
      })
      if (!(await Promise.all(prepared)).every(Boolean)) throw new RangeError('the files changed while they were read')
    } catch (error) {
      discard()
      await ofWorkers('discardReload')
      reloader.fail(trigger, error as Error)
      throw error
    }
  }
  const reload = (trigger: ReloadTrigger): Promise<void> =>
    inTurn(async () => {
      const next = filesNow(source, reloader, trigger)
      const prepared = reloader.prepare(trigger, next)
      await prepareWorkers(trigger, prepared, 'prepareReload', next)
      prepared.commit()
      files = next
      generation++
      await ofWorkers('commitReload', tables?.())
    })
  const reloadData = (): Promise<void> =>
    inTurn(async () => {
      const prepared = await reloader.prepareData('file')
      if (prepared === undefined) return
      await prepareWorkers('file', prepared, 'prepareData')
      prepared.commit()
      await ofWorkers('commitReload', tables?.())
    })
  /** A worker that started with an earlier configuration. */
  const bringUpToDate = (slot: number, running: RunningWorker): Promise<void> =>
    inTurn(async () => {
      const { child, exchange } = running
      running.isReading = true
      try {
        await exchange.callWith({ timeoutMs: PREPARE_MS }, 'prepareReload', files)
        await exchange.call('commitReload', tables?.())
      } catch (error) {
        log.error({ slot, err: error }, 'a worker could not read the configuration in force: it is started again')
        child.kill()
      } finally {
        running.isReading = false
      }
    })
  /** Ends a worker that does not answer, so that another one takes its place. */
  const lookAt = async (slot: number, running: RunningWorker): Promise<void> => {
    const { child, exchange } = running
    if (!running.isReady || running.isLookedAt || running.isHung) return
    running.isLookedAt = true
    try {
      await exchange.callWith({ timeoutMs: ALIVE.answerMs }, 'alive')
      running.misses = 0
    } catch {
      // While it reads a configuration that has a time of its own.
      running.misses = running.isReading ? 0 : running.misses + 1
      if (running.misses < ALIVE.misses || isEnding || workers.get(slot) !== running) return
      running.isHung = true
      log.error({ slot, silentMs: ALIVE.answerMs * ALIVE.misses }, 'a worker does not answer: it is killed')
      child.kill()
    } finally {
      running.isLookedAt = false
    }
  }

  const start = (slot: number, delayMs: number): Promise<ReadonlyMap<ListenerName, string>> =>
    new Promise((resolve, reject) => {
      const startedMs = performance.now()
      let markEnded: () => void = () => undefined
      const ended = new Promise<void>((done) => {
        markEnded = done
      })
      const steps = decisionSteps(engine, added, slot)
      const child = (isThreads ? threadChild : forkChild)(slot, {
        message: (message) => exchange.receive(message),
        error: (error) => log.error({ slot, err: error }, 'a worker failed'),
        exit(reason) {
          exchange.close()
          steps.end()
          workers.delete(slot)
          keepCounts(slot)
          markEnded()
          reject(new WorkerError(`a worker ended before it listened: ${reason}`))
          if (isEnding || !hasStarted) return
          restarts[running.isHung ? 'hung' : 'ended']++
          const livedMs = performance.now() - startedMs
          const nextMs = livedMs >= RESTART_MS.steadyAfter ? RESTART_MS.first : Math.min(delayMs * 2, RESTART_MS.most)
          log.error({ slot, reason, restartMs: delayMs }, 'a worker ended: it is started again')
          setTimeout(() => {
            if (!isEnding) start(slot, nextMs).catch(() => undefined)
          }, delayMs)
        },
      })
      const exchange = new Exchange((message) => child.send(message), {
        ...steps,
        held(other: number, verb: HeldVerb, id: string, costs: readonly number[]) {
          const owner = workers.get(other)
          return owner?.hasBegun ? owner.exchange.call('held', verb, id, costs) : undefined
        },
        page,
        metrics: render,
        reload: () => reload('admin'),
        begin(): WorkerStart {
          running.hasBegun = true
          return { files, generation, ports, tables: tables?.() }
        },
        ready(at: [ListenerName, string][], started: number): void {
          running.isReady = true
          if (hasStarted) log.info({ slot }, 'a worker listens again')
          if (started !== generation) void bringUpToDate(slot, running)
          resolve(new Map(at))
        },
        failed(reason: string): void {
          if (hasStarted) log.error({ slot, reason }, 'a worker cannot start')
          reject(new WorkerError(reason))
        },
      })
      const running: RunningWorker = {
        child,
        exchange,
        ended,
        hasBegun: false,
        isReady: false,
        isReading: false,
        isLookedAt: false,
        misses: 0,
        isHung: false,
      }
      workers.set(slot, running)
    })
  const keepCounts = (slot: number): void => {
    endedFigures = summed([endedFigures, withoutKeys(lastFigures.get(slot) ?? noFigures())])
    lastFigures.delete(slot)
    const counters = (lastMetrics.get(slot) ?? []).filter(({ type }) => ['counter', 'histogram'].includes(String(type)))
    lastMetrics.delete(slot)
    void AggregatorRegistry.aggregate([endedMetrics, counters])
      .getMetricsAsJSON()
      .then((json) => {
        endedMetrics = json as unknown as MetricJson[]
      })
  }

  try {
    for (const at of Object.values(config.listen)) if (at !== undefined && 'path' in at) await prepareSharedSocket(at.path)
    ports = await portsFor(config)
    if (!isThreads) shareByProcesses()
    const slots = Array.from({ length: count }, (_, slot) => start(slot, RESTART_MS.first))
    urls = (await Promise.all(slots))[0] ?? urls
    hasStarted = true
  } catch (error) {
    isEnding = true
    for (const { child } of workers.values()) child.kill()
    endReport()
    engine.close()
    throw error
  }
  const sweeping = setInterval(() => engine.sweep(), SWEEP_MS).unref()
  const looking = setInterval(() => {
    for (const [slot, running] of workers) void lookAt(slot, running)
  }, ALIVE.everyMs).unref()
  reloader.watch(undefined, { files: () => reload('file'), data: reloadData })
  snapshots?.start(config.snapshot.everyMs)

  const end = async (times: StopTimes): Promise<void> => {
    isEnding = true
    clearInterval(looking)
    reloader.stop()
    const timeoutMs = times.drainMs + times.finishMs + EXIT_MS
    const ends = [...workers.values()].map(async ({ child, exchange, ended, isReady }) => {
      // It has no connections yet.
      if (!isReady) return child.kill()
      exchange.callWith({ timeoutMs }, 'stop', times).catch(() => undefined)
      const late = new AbortController()
      await Promise.race([ended, wait(timeoutMs, undefined, late).catch(() => undefined)])
      late.abort()
      child.kill()
    })
    await Promise.all(ends)
    clearInterval(sweeping)
    snapshots?.stop()
    await snapshots?.write()
    await telemetry.flush()
    endReport()
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

/** The keys of all workers, in memory; a store keeps its keys itself. */
async function engineOf(config: Config, log: Log): Promise<Engine> {
  const file = snapshotFileOf(config)
  return new Engine(allPolicies(config), {
    hotKeys: config.storage.kind === 'memory' && config.dashboard.keys !== 'off' ? HOT_KEYS_TRACKED : 0,
    callRates: config.throttle,
    saved: file === undefined ? [] : await savedPolicies(file, log),
    onUnusable: (policy, reason) => log.warn({ policy, reason }, 'the saved keys of this policy cannot be used: they start full'),
  })
}

function snapshotFileOf({ storage, snapshot }: Config): string | undefined {
  return storage.kind === 'memory' ? snapshot.file : undefined
}

/**
 * Chooses ports where the system is to choose one, the same for all workers and those that replace them. Others must be free: threads would share a port
 * with another program that allows it, which would serve some of the connections.
 */
async function portsFor({ listen }: Config): Promise<Ports> {
  const ports: Partial<Record<ListenerName, number>> = {}
  for (const name of LISTENER_NAMES) {
    const at = listen[name]
    if (at === undefined || 'path' in at) continue
    const server = createServer()
    try {
      await listenOn(server, at, () => undefined)
    } catch (error) {
      throw Object.assign(error as Error, { listener: name })
    }
    ports[name] = (server.address() as AddressInfo).port
    await new Promise((resolve) => void server.close(resolve))
  }
  return ports
}

/** @throws {ConfigError} which is recorded. */
function filesNow({ path }: ConfigSource, reloader: Reloader, trigger: ReloadTrigger): readonly ConfigFile[] {
  try {
    return configFiles(path)
  } catch (error) {
    reloader.fail(trigger, error as Error)
    throw error
  }
}

function withAggregators(json: MetricJson[]): MetricJson[] {
  return json.map((metric) => ({ ...metric, aggregator: AGGREGATORS[metric.name] ?? metric.aggregator }))
}
