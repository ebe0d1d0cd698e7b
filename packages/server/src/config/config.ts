import type { Policy } from 'sluicegate'

/** A whole configuration file, checked. */
export interface Config {
  readonly listen: Listen
  readonly policies: readonly PolicyConfig[]
  readonly dashboard: DashboardConfig
}

/** Where the service listens. */
export interface Listen {
  readonly host: string
  /** 0 lets the system choose a free port. */
  readonly port: number
}

/** One named policy and the table that holds its keys. */
export interface PolicyConfig {
  readonly policy: Policy
  /** Undefined: as many as the library thinks right for the policy. */
  readonly maxKeys: number | undefined
  /** Undefined: `maxKeys`, or what the library thinks right. */
  readonly growTo?: number | undefined
  readonly onFull: OnFull
}

/** The live page at `/`. */
export interface DashboardConfig {
  readonly keys: KeyDisplay
}

/** When a newcomer finds no room: see `onFull` of the library's `createLimiter`. */
export type OnFull = 'evict' | 'deny'
/** How the page shows keys; `off` serves no page at all. */
export type KeyDisplay = 'masked' | 'shown' | 'off'

export const ON_FULL: readonly OnFull[] = ['evict', 'deny']
export const KEY_DISPLAYS: readonly KeyDisplay[] = ['masked', 'shown', 'off']

/** Loopback only, unless the file or the command line says otherwise: the service asks nobody who they are. */
export const DEFAULT_LISTEN: Listen = { host: '127.0.0.1', port: 8080 }
export const DEFAULT_DASHBOARD: DashboardConfig = { keys: 'masked' }
