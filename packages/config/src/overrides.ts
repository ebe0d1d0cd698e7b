import { connectionBounds } from './clients.js'
import { type Config, LISTENER_NAMES, type ListenerName, type LogLevel, type StorageConfig } from './config.js'
import { ConfigError } from './fault.js'
import type { ListenAddress } from './listen-address.js'
import { DEFAULT_REDIS } from './storage.js'
import { readTls, TLS, type TlsConfig, type TlsFault, type TlsFiles } from './tls.js'
import type { Token } from './tokens.js'

/** What the command line and the environment say; each wins over the files. Undefined: they say nothing. */
export interface Overrides {
  /** A listener that is there and undefined is off. */
  readonly listen: Partial<Record<ListenerName, ListenAddress | undefined>>
  /** Relative to the working folder. */
  readonly tls: TlsFiles
  readonly redisUrl: string | undefined
  /** Beside those of the files. */
  readonly tokens: readonly Token[]
  readonly drainMs: number | undefined
  readonly maxConnections: number | undefined
  readonly logLevel: LogLevel | undefined
  readonly snapshotFile: string | undefined
  readonly processes: number | undefined
  readonly threads: number | undefined
  readonly candidate: string | undefined
}

/**
 * The configuration of the files with what wins over it.
 *
 * @param before as in `readTls`.
 * @throws {ConfigError} for certificates that cannot be used.
 */
export function withOverrides(config: Config, overrides: Overrides, before?: TlsConfig): Config {
  const { listen, tls, redisUrl, tokens, drainMs, maxConnections, logLevel, snapshotFile, processes, threads, candidate } = overrides
  const ports = { ...config.listen }
  for (const name of LISTENER_NAMES) if (name in listen) ports[name] = listen[name]
  return {
    ...config,
    listen: ports,
    tls: readTls(tls, '.', refused, before) ?? config.tls,
    tokens: [...config.tokens, ...tokens],
    stop: { ...config.stop, ...(drainMs !== undefined && { drainMs }) },
    clients: maxConnections === undefined ? config.clients : { ...config.clients, ...connectionBounds(maxConnections) },
    storage: redisUrl === undefined ? config.storage : redisAt(redisUrl, config.storage),
    log: { level: logLevel ?? config.log.level },
    processes: processes ?? config.processes,
    threads: threads ?? config.threads,
    snapshot: { ...config.snapshot, file: snapshotFile ?? config.snapshot.file },
    candidate: candidate ?? config.candidate,
  }
}

const refused: TlsFault = (option, reason) => {
  throw new ConfigError([{ file: 'command line', line: 1, column: 1, path: `--tls-${TLS[option].name}`, reason }])
}

/** The other options of the file stay. */
function redisAt(url: string, storage: StorageConfig): StorageConfig {
  const options = storage.kind === 'redis' ? storage : DEFAULT_REDIS
  return { ...options, kind: 'redis', urls: [url], isCluster: false }
}
