import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createClient } from '@redis/client'
import type { Config } from 'sluicegate-config/config.js'
import type { EnvoyDomain } from 'sluicegate-config/envoy/envoy-domain.js'
import { ConfigError } from 'sluicegate-config/fault.js'
import { parseConfig } from 'sluicegate-config/read-config.js'
import type { Awaitable } from 'sluicegate-server/dist/engine/engine.js'
import { Guard } from 'sluicegate-server/dist/protocols/guard.js'
import type { Connections } from 'sluicegate-server/dist/protocols/http/connections.js'
import { type Service, type ServiceOptions, startService } from 'sluicegate-server/dist/service.js'
import { freePorts } from '../servers/free-ports.js'
import { until } from '../servers/until.js'
import { GrpcTestClient } from './simulated-envoy.js'
import type { Cleanup } from './sluicegate-process.js'

/** `burst`: 100 a minute, all at once. `spaced`: five a second, one at a time. */
export const TWO_POLICIES = `
listen: { port: 0 }
policies:
  burst: { algorithm: token-bucket, limit: 100, window: 1m, burst: 100 }
  spaced: { algorithm: gcra, limit: 5, window: 1s, burst: 1 }
`

/** A service, and the connections of its HTTP listener. */
export interface RunningService extends Service {
  readonly connections: Connections
}

/** A service on a free loopback port for the length of a test. */
export async function runService(
  t: TestContext,
  config: string | Config = TWO_POLICIES,
  options: ServiceOptions = {},
): Promise<RunningService> {
  const service = await startService(typeof config === 'string' ? parseConfig(config) : config, options)
  t.after(() => service.stop({ drainMs: 0, finishMs: 0 }))
  return { ...service, connections: service.traffic.get('http') as Connections }
}

/** A service that also listens for gRPC and RESP, with a client of each. */
export async function runNode(t: TestContext, config: Config) {
  const loopback = { host: '127.0.0.1', port: 0 }
  const service = await runService(t, { ...config, listen: { ...config.listen, grpc: loopback, resp: loopback } })
  const grpc = new GrpcTestClient(service.urls.get('grpc') ?? '')
  const resp = createClient({ url: service.urls.get('resp') ?? '' })
  resp.on('error', () => undefined)
  await resp.connect()
  t.after(() => {
    grpc[Symbol.dispose]()
    resp.destroy()
  })
  return { service, grpc, resp }
}

/** What a verb in memory answers: a value, never a promise. */
export function atOnce<Value>(answer: Awaitable<Value> | undefined): Value {
  assert.ok(answer !== undefined && !(answer instanceof Promise), 'it answers at once')
  return answer as Value
}

/** The door of a protocol, for a test in which no fault is expected: one ends the test. */
export function aGuard(protocol: Guard['protocol'] = 'http'): Guard {
  return new Guard(protocol, {
    error(fault: { readonly err: Error }) {
      setImmediate(() => {
        throw fault.err
      })
    },
  } as ConstructorParameters<typeof Guard>[1])
}

/** What is left after a `CL.THROTTLE` with these arguments, over a connection of its own to a Unix socket. */
export async function throttled(path: string, ...args: readonly string[]): Promise<number> {
  const client = createClient({ socket: { path, tls: false }, RESP: 2 })
  await client.connect()
  const reply = (await client.sendCommand(['CL.THROTTLE', ...args])) as unknown as readonly number[]
  client.destroy()
  return reply[2] as number
}

/** Each fault of `yaml`, as it is printed for a file named gate.yaml. */
export function faultsOf(yaml: string): string[] {
  try {
    parseConfig(yaml, 'gate.yaml')
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message.split('\n')
  }
  return assert.fail('the file was accepted')
}

/** A file of one policy with these options, which begin in column 10 of line 2. */
export function onePolicy(options: string): string {
  return `policies:\n  api: { ${options} }\n`
}

/** The domain of a file in the form of Envoy's rate limit service. */
export function envoyDomains(yaml: string): readonly EnvoyDomain[] {
  return parseConfig(yaml, 'rl.yaml').domains
}

interface RunningNginx {
  readonly url: string
  /** Its error log, for a test that fails. */
  log(): string
}

/**
 * nginx with a file that ships, on a free port in place of 127.0.0.1:8000.
 *
 * @param values what stands in place of which text of the file.
 * @param isUp whether the status of `path` says that nginx serves.
 */
export async function runNginx(
  t: Cleanup,
  shipped: string,
  values: Readonly<Record<string, string>>,
  [path, isUp]: readonly [path: string, isUp: (status: number) => boolean],
): Promise<RunningNginx> {
  const [port = 0] = await freePorts(1)
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-nginx-'))
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
  // On a busy machine a test may have to wait longer than a visitor should.
  writeFileSync(join(folder, 'site.conf'), replaced(shipped, { ...values, '250ms': '20s', '127.0.0.1:8000': `127.0.0.1:${port}` }))
  const http = [temporaryPaths(folder), 'access_log off;', `include ${folder}/site.conf;`].join('\n')
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; error_log stderr warn; pid ${folder}/pid;\nevents {}\nhttp {\n${http}\n}\n`,
  )
  const nginx = startNginx(t, folder)
  let log = ''
  nginx.stderr?.on('data', (chunk) => (log += chunk))
  const url = `http://127.0.0.1:${port}`
  await until('nginx answers', async () => {
    assert.equal(nginx.exitCode, null, `nginx ended: ${log}`)
    const response = await fetch(`${url}${path}`).catch(() => undefined)
    return response !== undefined && isUp(response.status)
  })
  return { url, log: () => log }
}

/** Starts nginx with `nginx.conf` of a folder, for the length of a test. */
export function startNginx(t: Cleanup, folder: string, ...options: string[]): ChildProcess {
  const nginx = spawn('nginx', ['-p', folder, ...options, '-c', join(folder, 'nginx.conf')], { stdio: ['ignore', 'ignore', 'pipe'] })
  nginx.stderr?.resume()
  const ended = once(nginx, 'close')
  t.after(async () => {
    nginx.kill('SIGTERM')
    await ended
  })
  return nginx
}

/** Lines by which nginx writes its temporary files into a folder. */
export function temporaryPaths(folder: string): string {
  return ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join('\n')
}

/** The text with other values; each has to stand in it. */
export function replaced(text: string, values: Readonly<Record<string, string>>): string {
  return Object.entries(values).reduce((changed, [from, to]) => {
    assert.ok(changed.includes(from), `the file that ships has ${from}`)
    return changed.replaceAll(from, to)
  }, text)
}
