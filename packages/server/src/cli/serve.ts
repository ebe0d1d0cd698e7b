import { type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { UsageError, whenOutputFails } from 'sluicegate-commands/terminal/usage-error.js'
import { type Config, LISTENER_NAMES, type ListenerName, type StopTimes } from 'sluicegate-config/config.js'
import { type ListenAddress, listenAddressText } from 'sluicegate-config/listen-address.js'
import { describePolicy } from 'sluicegate-config/policy-text.js'
import { timeSpanText } from 'sluicegate-config/time-span.js'
import { StoreRefusal } from '../engine/store-watch.js'
import { drainOnFault } from '../fatal-fault.js'
import { createLog, type Log, logWarnings } from '../log.js'
import { isOutOfFiles, OUT_OF_FILES } from '../open-files.js'
import { canSharePorts, ownSlot } from '../processes/child.js'
import type { ServedProcesses } from '../processes/primary.js'
import { WorkerError } from '../processes/worker-pool.js'
import { type ConfigSource, isConfigFault } from '../reload.js'
import { startService } from '../service.js'
import { SnapshotPlaceError } from '../snapshot-lock.js'
import { VERSION } from '../version.js'
import { endOnHungReads, endProcess } from './hung-reads.js'
import { onHangup } from './serve-options.js'

/** Options of `sluicegate serve` that are no part of the configuration. */
export interface ServeOptions {
  /** Announces addresses as one line of JSON. */
  readonly json: boolean
}

/**
 * Serves until SIGTERM or SIGINT, then ends the process: 0 after requests in flight were finished, 1 on a second signal.
 *
 * SIGTERM comes from an orchestrator, whose load balancer has to see `/readyz` change first: the service drains. SIGINT comes from a
 * person at a terminal, who waits for it: the service finishes requests in flight and ends. SIGHUP reads the configuration again.
 *
 * @throws {UsageError} when it cannot listen there.
 */
export async function serve(source: ConfigSource, { json }: ServeOptions): Promise<void> {
  // Its output says where it listens and that it ends; its log is elsewhere.
  whenOutputFails(() => undefined)
  const slot = ownSlot()
  if (slot !== undefined) return (await import('../processes/worker.js')).serveWorker(source, slot, explained)
  const read = endOnHungReads()
  const config = source.read()
  const { stop, listen } = config
  if (LISTENER_NAMES.every((name) => listen[name] === undefined))
    throw new UsageError('every listener is off: give one an address, such as --http 127.0.0.1:8080', 1)
  const log = createLog(config.log.level)
  logWarnings(log)
  const service = await startAll(config, source, log).catch((error: NodeJS.ErrnoException & { listener?: ListenerName }) => {
    throw explained(error, config)
  })
  read()
  drainOnFault(log, stop, (times) => {
    ending = true
    return service.stop(times)
  })
  // Before the service announces its address.
  process.on('SIGTERM', () => void end(service, 'SIGTERM', stop))
  onHangup(() => void reload(service))
  process.on('SIGINT', () => void end(service, 'SIGINT', { ...stop, drainMs: 0 }))
  if (json) console.log(JSON.stringify({ version: VERSION, listeners: Object.fromEntries(service.urls) }))
  else announce(service, config)
  for (const [listener, url] of service.urls) log.info({ listener, url }, 'listening')
}

/** What this process serves, alone or with others. */
type Served = Pick<ServedProcesses, 'url' | 'urls' | 'engine' | 'stop'> & { reload(trigger: 'SIGHUP'): void | Promise<void> }

async function startAll(config: Config, source: ConfigSource, log: Log): Promise<Served> {
  if (config.processes > 1 || config.threads > 1) {
    const fault = processesFault(config)
    if (fault !== undefined) throw new UsageError(fault, 1)
    return (await import('../processes/primary.js')).startProcesses(source, log)
  }
  const service = await startService(config, { log, source })
  return Object.assign(service, { reload: () => service.reloader?.reload('SIGHUP') })
}

/** Why several processes or threads cannot serve this configuration here, and what to do. */
function processesFault({ processes, threads, candidate }: Config): string | undefined {
  if (processes > 1 && threads > 1) return 'processes and threads exclude each other: take out one of them'
  if (candidate !== undefined) return 'a candidate is compared by one process: take out candidate, or processes and threads'
  if (threads > 1 && !canSharePorts())
    return `threads share a port from Node.js 22.12 on, and this is ${process.version}: use --processes ${threads}, or a newer Node.js`
  return undefined
}

/** A fault is in the log, in the metrics and on the page. */
async function reload(served: Served): Promise<void> {
  try {
    await served.reload('SIGHUP')
  } catch (error) {
    if (!isConfigFault(error)) throw error
  }
}

let ending = false

async function end(service: Served, signal: string, times: StopTimes): Promise<void> {
  if (ending) endProcess(1)
  ending = true
  const drain = times.drainMs > 0 ? `answering for ${timeSpanText(times.drainMs)} more while /readyz says 503, then ` : ''
  console.log(`${signal}: ${drain}finishing requests in flight (again to stop at once)`)
  await service.stop(times)
  endProcess(0)
}

/** A command to try for each protocol that listens, with the name of a policy. */
const TRY_IT: Readonly<Record<ListenerName, ((url: string, policy: string) => string) | undefined>> = {
  http: (url, policy) => curl(url, `/v1/take?policy=${policy}&key=alice`),
  grpc: (url) => `grpcurl -plaintext ${url.replace(/^\w+:\/\//, '')} list`,
  resp: (url, policy) => `redis-cli ${redisCliAddress(url)} SG.TAKE ${policy} alice 1`,
  admin: undefined,
}

/** Policies that a start shows: a file of Envoy may have thousands. */
const MOST_SHOWN = 20

function announce({ url, urls, engine }: Served, { dashboard }: Config): void {
  const policies = Array.from(engine.policies, ({ policy }) => policy)
  const rows = policies
    .slice(0, MOST_SHOWN)
    .flatMap((policy) => [
      [`  ${policy.name}`, describePolicy(policy)] as const,
      ...(policy.policies ?? []).map((part) => [`    ${part.name}`, describePolicy(part)] as const),
    ])
  const width = Math.max(...rows.map(([name]) => name.length))
  console.log(`Sluicegate ${VERSION} listens on ${url}`)
  for (const [name, other] of urls) if (other !== url) console.log(`  ${name}: ${other}`)
  console.log()
  for (const [name, text] of rows) console.log(`${name.padEnd(width)}  ${text}`)
  if (policies.length > MOST_SHOWN) console.log(`  and ${policies.length - MOST_SHOWN} more`)
  console.log()
  const policy = quotable(policies[0]?.name ?? '')
  for (const [name, other] of urls) {
    const command = TRY_IT[name]?.(other, policy)
    if (command !== undefined) console.log(`Try ${name}: ${command}`)
  }
  if (dashboard.keys !== 'off')
    console.log(`Watch:    ${urls.has('http') && url.startsWith('http') ? `${url}/` : `sluicegate top --url ${url}`}`)
}

function curl(url: string, path: string): string {
  return url.startsWith('unix:')
    ? `curl -i --unix-socket ${url.slice('unix:'.length)} 'http://localhost${path}'`
    : `curl -i '${url}${path}'`
}

function redisCliAddress(url: string): string {
  if (url.startsWith('unix:')) return `-s ${url.slice('unix:'.length)}`
  const [, host, port] = /^\w+:\/\/(.*):(\d+)$/.exec(url) ?? []
  return `-h ${host?.replace(/^\[(.*)\]$/, '$1')} -p ${port}`
}

/** For a query string between a shell's single quotes. */
function quotable(text: string): string {
  return encodeURIComponent(text).replaceAll("'", '%27')
}

function explained(error: NodeJS.ErrnoException & { listener?: ListenerName }, { listen }: Config): Error {
  const { listener } = error
  if (listener === undefined && isOutOfFiles(error)) return new UsageError(OUT_OF_FILES, 1)
  if (error instanceof WorkerError || error instanceof StoreRefusal || error instanceof SnapshotPlaceError)
    return new UsageError(error.message, 1)
  const reason =
    error instanceof RangeError
      ? 'there is not enough memory for the keys: lower max-keys'
      : listener && listenFault(error, listener, listen[listener])
  return reason === undefined ? error : new UsageError(reason, 1)
}

/** Why the service cannot listen at `at`, and what to do; undefined for an error that has no such explanation. */
export function listenFault(error: NodeJS.ErrnoException, name: ListenerName, at: ListenAddress | undefined): string | undefined {
  const place = listenAddressText(at)
  const host = at !== undefined && 'host' in at ? at.host : ''
  const another = `choose another address with --${name}`
  if (isOutOfFiles(error)) return `${place} cannot be opened: ${OUT_OF_FILES}`
  // The runtime says EACCES of a folder that is missing, too.
  if (at !== undefined && 'path' in at) {
    const folder = dirname(at.path)
    const missing = `there is no folder ${folder}: create it, or ${another}`
    const socketReasons: Readonly<Record<string, string>> = {
      EACCES: statsOf(folder)?.isDirectory() ? `this user may not write in ${folder}: ${another}` : missing,
      ENOENT: missing,
      ENOTDIR: `${folder} is no folder: ${another}`,
      EROFS: `${folder} is read-only: ${another}`,
      EADDRINUSE: statsOf(at.path)?.isSocket()
        ? `${place} is in use by another program: stop it, or ${another}`
        : `${place} is there and no socket: remove it, or ${another}`,
    }
    return socketReasons[error.code ?? '']
  }
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `${place} is in use by another program: stop it, or choose another address with --${name}`,
    EACCES: `${place} requires privileges that this user lacks: choose another address with --${name}, a port above 1023`,
    EADDRNOTAVAIL: `${host} is no address of this machine: choose another with --${name}`,
    ENOTFOUND: `${host} is not known: choose an address of this machine with --${name}`,
  }
  return reasons[error.code ?? '']
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}
