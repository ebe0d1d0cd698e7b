import type { Policy } from 'sluicegate'

/** A whole configuration file, checked. */
export interface Config {
  readonly listen: Listen
  readonly clients: ClientBounds
  readonly stop: StopTimes
  readonly policies: readonly PolicyConfig[]
  readonly dashboard: DashboardConfig
}

/** Where the service listens. */
export interface Listen {
  readonly host: string
  /** 0 lets the system choose a free port. */
  readonly port: number
}

/** Bounds on what clients may use. */
export interface ClientBounds {
  readonly maxConnections: number
  /** Connections of one IPv4 address, or of one /64 of IPv6. */
  readonly maxConnectionsPerAddress: number
  /** How long a request's headers may take to arrive. */
  readonly headersMs: number
  /** How long a whole request may take to arrive. */
  readonly requestMs: number
  /** How long a client may leave an answer unread. */
  readonly readMs: number
  /** How long a connection is kept between two requests. */
  readonly idleMs: number
}

/** How the service stops. */
export interface StopTimes {
  /** After SIGTERM: the time for which the port stays open and requests are answered, so that the load balancer sees `/readyz` change. */
  readonly drainMs: number
  /** After that: the time that requests in flight have to finish. */
  readonly finishMs: number
}

/** One named policy and the table that holds its keys. */
export interface PolicyConfig {
  readonly policy: Policy
  /** Undefined: the library's default for the policy. */
  readonly maxKeys: number | undefined
  /** Undefined: `maxKeys`, or the library's default. */
  readonly growTo?: number | undefined
  readonly onFull: OnFull
}

/** The live page at `/`. */
export interface DashboardConfig {
  readonly keys: KeyDisplay
}

/** What happens when a new key finds no room: see `onFull` of the library's `createLimiter`. */
export type OnFull = 'evict' | 'deny'
/** How the page shows keys; `off` serves no page at all. */
export type KeyDisplay = 'masked' | 'shown' | 'off'

export const ON_FULL: readonly OnFull[] = ['evict', 'deny']
export const KEY_DISPLAYS: readonly KeyDisplay[] = ['masked', 'shown', 'off']

/** Loopback only, unless the file or the command line says otherwise: the service authenticates no client. */
export const DEFAULT_LISTEN: Listen = { host: '127.0.0.1', port: 8080 }
export const DEFAULT_CLIENTS: ClientBounds = {
  maxConnections: 10_000,
  maxConnectionsPerAddress: 5_000,
  headersMs: 10_000,
  requestMs: 15_000,
  readMs: 10_000,
  // Longer than a proxy's own (nginx: 60 s), so that the proxy closes first.
  idleMs: 75_000,
}
/** Long enough for a probe every second or two to see it, and well below the 30 s after which Kubernetes ends a process. */
export const DEFAULT_STOP: StopTimes = { drainMs: 5_000, finishMs: 10_000 }
export const DEFAULT_DASHBOARD: DashboardConfig = { keys: 'masked' }
