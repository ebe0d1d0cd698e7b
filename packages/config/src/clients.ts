import { duration, integer, option, standardsOf, type ValuesOf, valuesOf, wholeOf } from './option.js'
import type { Section } from './section.js'

export const MAX_CONNECTIONS = 1_000_000
const HOUR_MS = 3_600_000
export const MAX_DRAIN_MS = HOUR_MS

/** The section `clients`: bounds on what clients may use. */
export const CLIENTS = {
  maxConnections: option('max-connections', integer(1, MAX_CONNECTIONS), {
    what: 'Connections at once. Beyond it the one that is idle for longest is closed.',
    standard: 10_000,
    example: 20_000,
  }),
  maxConnectionsPerAddress: option('max-connections-per-address', integer(1, MAX_CONNECTIONS), {
    what: 'Connections of one IPv4 address, or one /56 of IPv6. Default: half of `max-connections`.',
    example: 20_000,
  }),
  headersMs: option('headers-timeout', duration(100, HOUR_MS), {
    what: 'Time for the headers of a request to arrive; then 408.',
    standard: 10_000,
    example: '5s',
  }),
  requestMs: option('request-timeout', duration(100, HOUR_MS), {
    what: 'Time for a whole request to arrive; then 408.',
    standard: 15_000,
    example: '10s',
  }),
  readMs: option('read-timeout', duration(100, HOUR_MS), {
    what: 'Time for a client to read a response; then its connection is cut off.',
    standard: 10_000,
    example: '5s',
  }),
  idleMs: option('idle-timeout', duration(100, HOUR_MS), {
    what: 'Time between two requests of a connection, longer than that of your proxy.',
    // Longer than a proxy's own (nginx: 60 s), so that the proxy closes first.
    standard: 75_000,
    example: '120s',
  }),
}

export type ClientBounds = ValuesOf<typeof CLIENTS> & { readonly maxConnectionsPerAddress: number }

/** The section `stop`: how the service stops. */
export const STOP = {
  drainMs: option('drain', duration(0, MAX_DRAIN_MS), {
    what: 'Time that SIGTERM keeps answering requests while `/readyz` returns 503, `0s` to `1h`.',
    // Long enough for a probe every second or two to see it, and well below the 30 s after which Kubernetes ends a process.
    standard: 5_000,
    example: '15s',
  }),
  finishMs: option('finish', duration(0, HOUR_MS), {
    what: 'Time for requests in flight after that, `0s` to `1h`.',
    standard: 10_000,
    example: '5s',
  }),
}

export type StopTimes = ValuesOf<typeof STOP>

export const DEFAULT_CLIENTS: ClientBounds = { ...standardsOf(CLIENTS), maxConnectionsPerAddress: 5_000 }
export const DEFAULT_STOP: StopTimes = standardsOf(STOP)

export function readClients(section: Section): ClientBounds {
  const values = valuesOf(section, CLIENTS)
  const { maxConnections, maxConnectionsPerAddress, headersMs, requestMs } = values
  if (requestMs < headersMs) section.fault('request-timeout', 'must be at least headers-timeout: the headers are a part of the request')
  section.done()
  return { ...values, ...connectionBounds(maxConnections), ...(maxConnectionsPerAddress !== undefined && { maxConnectionsPerAddress }) }
}

/** Connections in all, and half of them for one address: a machine that leaks connections does not shut out the others. */
export function connectionBounds(maxConnections: number): Pick<ClientBounds, 'maxConnections' | 'maxConnectionsPerAddress'> {
  return { maxConnections, maxConnectionsPerAddress: Math.ceil(maxConnections / 2) }
}

export const readStop = (section: Section): StopTimes => wholeOf(section, STOP)
