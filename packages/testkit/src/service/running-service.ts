import assert from 'node:assert/strict'
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
