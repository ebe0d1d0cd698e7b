import { isMainThread } from 'node:worker_threads'
import { type Config, LISTENER_NAMES, type StopTimes } from 'sluicegate-config/config.js'
import type { ConfigFile } from 'sluicegate-config/read-config.js'
import type { Decision } from '../engine/engine.js'
import type { HeldVerb, Peers } from '../engine/shared-limiter.js'
import { drainOnFault } from '../fatal-fault.js'
import { createLog, logWarnings } from '../log.js'
import type { ConfigSource, PreparedReload } from '../reload.js'
import { type Service, startService } from '../service.js'
import { primaryChannel } from './child.js'
import { Exchange } from './exchange.js'
import type { SharedTables } from './owned-policies.js'
import { OwnerStorage } from './owner-storage.js'
import { PrimaryHolds } from './primary-holds.js'
import { type PageFigures, pageFigures, SharedFigures } from './shared-figures.js'
import type { Ports } from './shared-ports.js'
import { ThreadStorage } from './thread-storage.js'
import type { WorkerStart } from './worker-pool.js'

const FIGURES_MS = 1_000
/** Metrics of the service; those of the process are the same in each of its threads. */
const OWN_METRICS = 'sluicegate_'
/** How long the start waits for the primary process, which answers when it has read the saved keys. */
const BEGIN_MS = 60_000
/** Calls that wait for all workers. */
const ALL_WORKERS_MS = 5_000
const RELOAD_MS = 120_000

/**
 * Serves connections in a process that a primary process started, until that stops it or ends. Signals go to the primary process.
 *
 * @param explain makes a message of what `startService` throws.
 */
export async function serveWorker(source: ConfigSource, slot: number, explain: (error: Error, config: Config) => Error): Promise<void> {
  let service: Service | undefined
  let prepared: PreparedReload | undefined
  const served = (): Service => {
    if (service === undefined) throw new Error('the worker has not started')
    return service
  }
  /** Of a configuration that another worker refused. */
  const discard = (): void => {
    prepared?.discard()
    prepared = undefined
  }
  const channel = primaryChannel((message) => primary.receive(message))
  let threadStorage: ThreadStorage | undefined
  const primary: Exchange = new Exchange((message) => channel.send(message), {
    alive: () => true,
    // Before the start nothing is held here.
    held: (verb: HeldVerb, id: string, costs: readonly number[]) => service && heldHere(service, verb, id, costs),
    page: (withKeys: boolean): PageFigures => pageFigures(served().engine, withKeys),
    metrics: async () => (await served().metrics.json()).filter(({ name }) => isMainThread || name.startsWith(OWN_METRICS)),
    async prepareReload(files: readonly ConfigFile[], tls: Config['tls']): Promise<string | undefined> {
      discard()
      prepared = await served().reloader?.prepare('primary', files, tls)
      return prepared?.data
    },
    async prepareData(): Promise<string | undefined> {
      discard()
      prepared = await served().reloader?.prepareData('primary')
      return prepared?.data
    },
    async commitReload(shared: SharedTables | undefined): Promise<void> {
      await prepared?.commit()
      if (shared !== undefined) threadStorage?.use(shared)
      prepared = undefined
    },
    discardReload: () => discard(),
    async stop(times: StopTimes): Promise<void> {
      await served().stop(times)
      setImmediate(() => channel.leave())
    },
  })
  const { files, tls, generation, ports, tables } = await primary.callWith<WorkerStart>({ timeoutMs: BEGIN_MS }, 'begin')
  const fail = async (message: string): Promise<never> => {
    await primary.call('failed', message).catch(() => undefined)
    // The channel to the primary process would keep this one alive.
    process.exit(1)
  }
  const config = { ...(await read(source, files, tls, fail)), tls }
  const log = createLog(config.log.level)
  logWarnings(log)
  const isMemory = config.storage.kind === 'memory'
  const peers: Peers = { slot, call: (other, verb, id, costs) => primary.call('held', other, verb, id, costs) }
  if (tables !== undefined) threadStorage = new ThreadStorage(primary, channel.channel, tables)
  const figures = new SharedFigures(() => service?.engine, isMemory)
  try {
    service = await startService(shared(config, slot, ports), {
      log,
      source,
      worker: {
        ...(isMemory && {
          storage: threadStorage ?? new OwnerStorage(primary, channel.channel),
          holds: new PrimaryHolds(primary),
        }),
        peers,
        figures,
        async metrics() {
          const { buffer, byteOffset, byteLength } = await primary.callWith<Uint8Array>({ timeoutMs: ALL_WORKERS_MS }, 'metrics')
          return Buffer.from(buffer, byteOffset, byteLength)
        },
        reload: () => primary.callWith<void>({ timeoutMs: RELOAD_MS }, 'reload'),
        reloadState: () => figures.reloads,
      },
    })
  } catch (error) {
    return fail(explain(error as Error, config).message)
  }
  // Another worker takes its place.
  drainOnFault(log, config.stop, (times) => served().leave(times))
  setInterval(() => {
    primary.callWith<PageFigures>({ timeoutMs: ALL_WORKERS_MS }, 'page', figures.isRead()).then(
      (all) => figures.use(all),
      () => undefined,
    )
  }, FIGURES_MS).unref()
  await primary.call('ready', [...service.urls], generation)
}

/** The files of tiers may have changed since the primary process read them. */
async function read(
  source: ConfigSource,
  files: readonly ConfigFile[],
  tls: Config['tls'],
  fail: (message: string) => Promise<never>,
): Promise<Config> {
  try {
    return source.read(files, { tls })
  } catch (error) {
    return fail((error as Error).message)
  }
}

/**
 * The bounds on connections are of the whole service, and so is a port that the system chose. Threads cannot share a Unix socket: the first one has it.
 */
function shared(config: Config, slot: number, ports: Ports): Config {
  const { maxConnections, maxConnectionsPerAddress } = config.clients
  const part = (number: number): number => Math.ceil(number / Math.max(config.processes, config.threads))
  const clients = { ...config.clients, maxConnections: part(maxConnections), maxConnectionsPerAddress: part(maxConnectionsPerAddress) }
  const listen = { ...config.listen }
  for (const name of LISTENER_NAMES) {
    const at = listen[name]
    if (at === undefined) continue
    if ('port' in at) listen[name] = { ...at, port: ports[name] ?? at.port }
    else if (!isMainThread && slot > 0) listen[name] = undefined
  }
  return { ...config, clients, listen }
}

async function heldHere({ engine }: Service, verb: HeldVerb, id: string, costs: readonly number[]): Promise<unknown> {
  const { permits, reservations } = engine
  if (verb === 'release') return permits.release(id)
  if (verb === 'heartbeat') return permits.heartbeat(id)
  if (verb === 'parts') return reservations.partsOf(id)
  return verb === 'settle' ? (reservations.settleParts(id, costs) as readonly Decision[] | undefined) : reservations.cancel(id)
}
