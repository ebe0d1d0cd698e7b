import type { Config, Listen } from './config/config.js'
import { describePolicy } from './policy-text.js'
import { type Service, startService } from './service.js'
import { UsageError } from './usage-error.js'
import { VERSION } from './version.js'

/**
 * Serves until SIGTERM or SIGINT, then ends the process: 0 after requests in flight were finished, 1 on a second signal.
 *
 * @throws {UsageError} when it cannot listen there.
 */
export async function serve(config: Config, { host, port }: { host: string | undefined; port: number | undefined }): Promise<void> {
  const listen: Listen = { host: host ?? config.listen.host, port: port ?? config.listen.port }
  const service = await startService({ ...config, listen }).catch((error: NodeJS.ErrnoException) => {
    throw explained(error, listen)
  })
  announce(service, config)
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void end(service, signal))
}

let ending = false

async function end(service: Service, signal: string): Promise<void> {
  if (ending) process.exit(1)
  ending = true
  console.log(`${signal}: finishing what is in flight (again to stop at once)`)
  await service.stop()
  process.exit(0)
}

function announce({ url, engine }: Service, { dashboard }: Config): void {
  const policies = Array.from(engine.gates, ({ policy }) => policy)
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
    EACCES: `${host}:${port} needs rights that this user has not: choose a port above 1023 with --port`,
    EADDRNOTAVAIL: `${host} is no address of this machine: choose another with --host`,
    ENOTFOUND: `${host} is not known: choose an address of this machine with --host`,
  }
  const reason = error instanceof RangeError ? 'there is not enough memory for so many keys: lower max-keys' : reasons[error.code ?? '']
  return reason === undefined ? error : new UsageError(reason, 1)
}
