export type { Awaitable } from '../awaitable.js'
export type { StoreHome } from '../regions/store-home.js'
export type { CancelSignal } from '../shared/backend.js'
export type { FleetBoundKey, FleetLimiter, FleetPermit, FleetReservation, FleetStats } from '../shared/fleet-limiter.js'
export type { OutageMode } from '../shared/outage/local-share.js'
export type { OutageEvent } from '../shared/outage/outage-account.js'
export type {
  CasOutcome,
  CasOutcomes,
  CasState,
  CasStep,
  CasStepped,
  CasStepRefusal,
  CasStepState,
  CasStepVerb,
  CasStore,
  CasSwap,
  CasVersion,
} from '../store/cas-store.js'
export { createPostgresLimiter, type PostgresLimiterOptions } from './create-postgres-limiter.js'
export { postgresHome } from './postgres-home.js'
export { type PostgresStoreOptions, postgresStore } from './postgres-store.js'
export type { PostgresClient } from './sql-runner-for.js'
export { type PostgresTableOptions, postgresTable } from './table-name.js'
