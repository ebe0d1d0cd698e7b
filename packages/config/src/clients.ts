import { type ClientBounds, DEFAULT_CLIENTS, DEFAULT_STOP, type StopTimes } from './config.js'
import type { Section } from './section.js'

export const MAX_CONNECTIONS = 1_000_000
const HOUR_MS = 3_600_000
export const MAX_DRAIN_MS = HOUR_MS

/** The section `clients`: bounds on what clients may use. */
export function readClients(section: Section): ClientBounds {
  const connections = connectionBounds(section.integer('max-connections', 1, MAX_CONNECTIONS) ?? DEFAULT_CLIENTS.maxConnections)
  const bounds = {
    ...connections,
    maxConnectionsPerAddress: section.integer('max-connections-per-address', 1, MAX_CONNECTIONS) ?? connections.maxConnectionsPerAddress,
    headersMs: section.duration('headers-timeout', 100, HOUR_MS) ?? DEFAULT_CLIENTS.headersMs,
    requestMs: section.duration('request-timeout', 100, HOUR_MS) ?? DEFAULT_CLIENTS.requestMs,
    readMs: section.duration('read-timeout', 100, HOUR_MS) ?? DEFAULT_CLIENTS.readMs,
    idleMs: section.duration('idle-timeout', 100, HOUR_MS) ?? DEFAULT_CLIENTS.idleMs,
  }
  if (bounds.requestMs < bounds.headersMs) {
    section.fault('request-timeout', 'must be at least headers-timeout: the headers are a part of the request')
  }
  section.done()
  return bounds
}

/** Connections in all, and half of them for one address: a machine that leaks connections does not shut out the others. */
export function connectionBounds(maxConnections: number): Pick<ClientBounds, 'maxConnections' | 'maxConnectionsPerAddress'> {
  return { maxConnections, maxConnectionsPerAddress: Math.ceil(maxConnections / 2) }
}

/** The section `stop`. */
export function readStop(section: Section): StopTimes {
  const times = {
    drainMs: section.duration('drain', 0, MAX_DRAIN_MS) ?? DEFAULT_STOP.drainMs,
    finishMs: section.duration('finish', 0, HOUR_MS) ?? DEFAULT_STOP.finishMs,
  }
  section.done()
  return times
}
