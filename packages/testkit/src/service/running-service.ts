import type { TestContext } from 'node:test'
import type { Config } from 'sluicegate-config/config.js'
import { parseConfig } from 'sluicegate-config/read-config.js'
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
