import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config, StopTimes } from '../config/config.js'
import { filesOf } from '../config/read-config.js'
import type { Decision } from '../engine/engine.js'
import type { HeldVerb, Peers } from '../engine/peers.js'
import type { Log } from '../log.js'
import type { ConfigSource } from '../reload.js'
import { type Service, startService } from '../service.js'
import { Exchange } from './exchange.js'
import { PrimaryStorage } from './primary-storage.js'
import { type PageFigures, pageFigures, SharedFigures } from './shared-figures.js'

/** The variable by which a primary process gives a worker its slot. */
export const SLOT_VARIABLE = 'SLUICEGATE_WORKER_SLOT'
const FIGURES_MS = 1_000

/**
 * Serves connections in a process that a primary process started, until that tells it to stop or ends. Signals go to the primary process.
 *
 * @throws what `startService` throws.
 */
export async function serveWorker(source: ConfigSource, slot: number, log: Log): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
  const config = source.read()
  let service: Service | undefined
  let commitReload: (() => void) | undefined
  const served = (): Service => {
    if (service === undefined) throw new Error('the worker has not started')
    return service
  }
  const primary = new Exchange((message) => void process.send?.(message, undefined, undefined, () => undefined), {
    held: (verb: HeldVerb, id: string, costs: readonly number[]) => heldHere(served(), verb, id, costs),
    page: (withKeys: boolean): PageFigures => pageFigures(served().engine, withKeys),
    metrics: () => served().metrics.json(),
    prepareReload(digest: string): boolean {
      const before = filesDigest(source.path)
      const commit = served().reloader?.prepare('primary')
      commitReload = before === digest && filesDigest(source.path) === digest ? commit : undefined
      return commitReload !== undefined
    },
    commitReload: () => commitReload?.(),
    async stop(times: StopTimes): Promise<void> {
      await served().stop(times)
      clearInterval(refreshing)
      setImmediate(() => process.disconnect())
    },
  })
  process.on('message', (message) => primary.receive(message))
  process.on('disconnect', () => process.exit(0))
  const peers: Peers = { slot, call: (other, verb, id, costs) => primary.call('held', other, verb, id, costs) }
  const figures = new SharedFigures(() => service?.engine)
  service = await startService(share(config), {
    log,
    source,
    worker: {
      ...(config.storage.kind === 'memory' && { storage: new PrimaryStorage(primary) }),
      peers,
      figures,
      metrics: () => primary.call<string>('metrics'),
      reload: () => primary.call<void>('reload'),
      reloadState: () => figures.reloads,
    },
  })
  const refreshing = setInterval(() => {
    primary.call<PageFigures>('page', figures.isRead()).then(
      (all) => figures.use(all),
      () => undefined,
    )
  }, FIGURES_MS).unref()
  await primary.call('ready', [...service.urls])
}

/** The bounds on connections are of the whole service. */
function share(config: Config): Config {
  const { maxConnections, maxConnectionsPerAddress } = config.clients
  const part = (number: number): number => Math.ceil(number / config.processes)
  const clients = { ...config.clients, maxConnections: part(maxConnections), maxConnectionsPerAddress: part(maxConnectionsPerAddress) }
  return { ...config, clients }
}

/** What the files hold: workers and the primary process have to read the same. */
export function filesDigest(path: string): string {
  const hash = createHash('sha256')
  for (const file of filesOf(path)) hash.update(JSON.stringify([file, readFileSync(file, 'utf8')]))
  return hash.digest('hex')
}

async function heldHere({ engine }: Service, verb: HeldVerb, id: string, costs: readonly number[]): Promise<unknown> {
  const { permits, reservations } = engine
  if (verb === 'release') return permits.release(id)
  if (verb === 'heartbeat') return permits.heartbeat(id)
  if (verb === 'parts') return reservations.partsOf(id)
  return verb === 'settle' ? (reservations.settleParts(id, costs) as readonly Decision[] | undefined) : reservations.cancel(id)
}
