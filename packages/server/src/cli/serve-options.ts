import { UsageError } from 'sluicegate-commands/terminal/usage-error.js'
import { MAX_CONNECTIONS, MAX_DRAIN_MS } from 'sluicegate-config/clients.js'
import { LISTENER_NAMES, type ListenerName, LOG_LEVELS, type LogLevel } from 'sluicegate-config/config.js'
import { type ListenAddress, parseListenAddress } from 'sluicegate-config/listen-address.js'
import type { Overrides } from 'sluicegate-config/overrides.js'
import { MAX_PROCESSES, processesOfMachine } from 'sluicegate-config/processes.js'
import { redisUrlFault } from 'sluicegate-config/storage.js'
import { timeSpanMs } from 'sluicegate-config/time-span.js'
import { secretFault, type Token } from 'sluicegate-config/tokens.js'

/** Options of `sluicegate serve` as they are written, from the command line or the environment. */
export interface ServeTexts {
  readonly http?: string
  readonly grpc?: string
  readonly resp?: string
  readonly admin?: string
  readonly host?: string
  readonly port?: string
  readonly drain?: string
  readonly maxConnections?: string
  readonly redis?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly tlsClientCa?: string
  readonly logLevel?: string
  readonly snapshot?: string
  readonly processes?: string
  readonly threads?: string
  readonly candidate?: string
}

/**
 * What the texts say.
 *
 * @throws {UsageError} for one that is wrong.
 */
export function overridesOf(texts: ServeTexts, environment: NodeJS.ProcessEnv): Overrides {
  const { redis, tlsCert, tlsKey, tlsClientCa } = texts
  const fault = redis === undefined ? undefined : redisUrlFault(redis)
  if (fault !== undefined) throw new UsageError(`--redis ${fault}`)
  return {
    listen: listenOf(texts),
    tls: { cert: tlsCert, key: tlsKey, clientCa: tlsClientCa },
    redisUrl: redis,
    tokens: tokensOf(environment),
    drainMs: drainOf(texts.drain),
    maxConnections: integerOf('max-connections', texts.maxConnections, 1, MAX_CONNECTIONS),
    logLevel: logLevelOf(texts.logLevel),
    snapshotFile: texts.snapshot,
    processes: coresOf('processes', texts.processes),
    threads: coresOf('threads', texts.threads),
    candidate: texts.candidate,
  }
}

function listenOf(texts: ServeTexts): Partial<Record<ListenerName, ListenAddress | undefined>> {
  const listen: Partial<Record<ListenerName, ListenAddress | undefined>> = {}
  for (const name of LISTENER_NAMES) {
    const text = texts[name]
    if (text === undefined) continue
    try {
      listen[name] = parseListenAddress(text)
    } catch (error) {
      throw new UsageError(`--${name}: ${(error as Error).message}, not "${text}"`)
    }
  }
  const port = integerOf('port', texts.port, 0, 65_535)
  if (texts.host === undefined && port === undefined) return listen
  if ('http' in listen) throw new UsageError('--http has the host and the port in it: leave out --host and --port')
  return { ...listen, http: { host: texts.host ?? '127.0.0.1', port: port ?? 8080 } }
}

function tokensOf(environment: NodeJS.ProcessEnv): Token[] {
  const read = (variable: string, scope: Token['scope']): Token[] => {
    const secret = environment[variable]
    if (secret === undefined) return []
    const fault = secretFault(secret)
    if (fault !== undefined) throw new UsageError(`${variable} ${fault}`)
    return [{ name: variable, secret, scope }]
  }
  return [...read(ENVIRONMENT.token, 'decide'), ...read(ENVIRONMENT.adminToken, 'admin')]
}

function coresOf(option: string, text: string | undefined): number | undefined {
  return text === 'auto' ? processesOfMachine() : integerOf(option, text, 1, MAX_PROCESSES, 'auto or ')
}

function integerOf(option: string, text: string | undefined, min: number, max: number, other = ''): number | undefined {
  if (text === undefined) return undefined
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (!(number >= min && number <= max)) throw new UsageError(`--${option} must be ${other}from ${min} to ${max}, not "${text}"`)
  return number
}

function drainOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = timeSpanMs(/^[\d.]+$/.test(text) ? `${text}s` : text)
  if (ms === undefined || ms > MAX_DRAIN_MS)
    throw new UsageError(`--drain must be a time of at most 1h, for example 10s, 500ms or 0, not "${text}"`)
  return ms
}

function logLevelOf(text: string | undefined): LogLevel | undefined {
  if (text === undefined) return undefined
  const level = LOG_LEVELS.find((each) => each === text)
  if (level === undefined) throw new UsageError(`--log-level must be one of ${LOG_LEVELS.join(', ')}, not "${text}"`)
  return level
}

/** Environment variables of the service, by what they set. Options of the command line win over them, and they over the file. */
export const ENVIRONMENT = {
  config: 'SLUICEGATE_CONFIG',
  http: 'SLUICEGATE_HTTP',
  grpc: 'SLUICEGATE_GRPC',
  resp: 'SLUICEGATE_RESP',
  admin: 'SLUICEGATE_ADMIN',
  redis: 'SLUICEGATE_REDIS',
  tlsCert: 'SLUICEGATE_TLS_CERT',
  tlsKey: 'SLUICEGATE_TLS_KEY',
  tlsClientCa: 'SLUICEGATE_TLS_CLIENT_CA',
  drain: 'SLUICEGATE_DRAIN',
  maxConnections: 'SLUICEGATE_MAX_CONNECTIONS',
  processes: 'SLUICEGATE_PROCESSES',
  threads: 'SLUICEGATE_THREADS',
  snapshot: 'SLUICEGATE_SNAPSHOT',
  candidate: 'SLUICEGATE_CANDIDATE',
  logLevel: 'SLUICEGATE_LOG_LEVEL',
  url: 'SLUICEGATE_URL',
  /** A token of scope decide. */
  token: 'SLUICEGATE_TOKEN',
  /** A token of scope admin. Secrets have no option: other users of a machine can read command lines. */
  adminToken: 'SLUICEGATE_ADMIN_TOKEN',
} as const

// Loaded before all else: the default for SIGHUP is to end the process, and a start takes a second or two.

let heard: () => void = () => undefined
let isDue = false

/** Calls `reload` at each SIGHUP, also for one that came while the service was starting. */
export function onHangup(reload: () => void): void {
  heard = reload
  if (isDue) reload()
}

if (process.argv[2] === 'serve')
  process.on('SIGHUP', () => {
    isDue = true
    heard()
  })
