import type { TestContext } from 'node:test'
import { parseConfig } from '../config/read-config.js'
import type { Connections } from '../protocols/http/connections.js'
import { type Service, type ServiceOptions, startService } from '../service.js'

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
export async function runService(t: TestContext, yaml: string = TWO_POLICIES, options: ServiceOptions = {}): Promise<RunningService> {
  const service = await startService(parseConfig(yaml), options)
  t.after(() => service.stop({ drainMs: 0, finishMs: 0 }))
  return { ...service, connections: service.traffic.get('http') as Connections }
}
