import { connectionBounds } from './config/clients.js'
import type { ClientBounds, Config, Listen, StopTimes } from './config/config.js'
import { timeSpanText } from './config/time-span.js'
import { describePolicy } from './policy-text.js'
import { type Service, startService } from './service.js'
import { UsageError } from './usage-error.js'
import { VERSION } from './version.js'

/** Options of the command line; each overrides the file. */
export interface ServeFlags {
  readonly host: string | undefined
  readonly port: number | undefined
  readonly drainMs: number | undefined
  readonly maxConnections: number | undefined
}

/**
 * Serves until SIGTERM or SIGINT, then ends the process: 0 after requests in flight were finished, 1 on a second signal.
 *
 * SIGTERM comes from an orchestrator, whose load balancer has to see `/readyz` change first: the service drains. SIGINT comes from a
 * person at a terminal, who waits for it: the service finishes requests in flight and ends.
 *
 * @throws {UsageError} when it cannot listen there.
 */
export async function serve(file: Config, flags: ServeFlags): Promise<void> {
  const { maxConnections, drainMs } = flags
  const listen: Listen = { host: flags.host ?? file.listen.host, port: flags.port ?? file.listen.port }
  const stop: StopTimes = { ...file.stop, ...(drainMs !== undefined && { drainMs }) }
  const clients: ClientBounds = maxConnections === undefined ? file.clients : { ...file.clients, ...connectionBounds(maxConnections) }
  const config: Config = { ...file, listen, stop, clients }
  const service = await startService(config).catch((error: NodeJS.ErrnoException) => {
    throw explained(error, listen)
  })
  // Before the service announces its address.
  process.on('SIGTERM', () => void end(service, 'SIGTERM', stop))
  process.on('SIGINT', () => void end(service, 'SIGINT', { ...stop, drainMs: 0 }))
  announce(service, config)
}

let ending = false

async function end(service: Service, signal: string, times: StopTimes): Promise<void> {
  if (ending) process.exit(1)
  ending = true
  const drain = times.drainMs > 0 ? `answering for ${timeSpanText(times.drainMs)} more while /readyz says 503, then ` : ''
  console.log(`${signal}: ${drain}finishing requests in flight (again to stop at once)`)
  await service.stop(times)
  process.exit(0)
}

function announce({ url, engine }: Service, { dashboard }: Config): void {
  const policies = Array.from(engine.policies, ({ policy }) => policy)
  const rows = policies.flatMap((policy) => [
    [`  ${policy.name}`, describePolicy(policy)] as const,
    ...(policy.policies ?? []).map((part) => [`    ${part.name}`, describePolicy(part)] as const),
  ])
  const width = Math.max(...rows.map(([name]) => name.length))
  console.log(`Sluicegate ${VERSION} listens on ${url}\n`)
  for (const [name, text] of rows) console.log(`${name.padEnd(width)}  ${text}`)
  console.log(`\nTry it:  curl -i '${url}/v1/take?policy=${quotable(policies[0]?.name ?? '')}&key=alice'`)
  if (dashboard.keys !== 'off') console.log(`Watch:   ${url}/`)
}

/** For a query string between a shell's single quotes. */
function quotable(text: string): string {
  return encodeURIComponent(text).replaceAll("'", '%27')
}

function explained(error: NodeJS.ErrnoException, { host, port }: Listen): Error {
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `${host}:${port} is in use by another program: stop it, or choose another port with --port`,
    EACCES: `${host}:${port} requires privileges that this user lacks: choose a port above 1023 with --port`,
    EADDRNOTAVAIL: `${host} is no address of this machine: choose another with --host`,
    ENOTFOUND: `${host} is not known: choose an address of this machine with --host`,
  }
  const reason = error instanceof RangeError ? 'there is not enough memory for the keys: lower max-keys' : reasons[error.code ?? '']
  return reason === undefined ? error : new UsageError(reason, 1)
}
