export { type PostgresOptions, postgres } from './postgres.js'
export { type PostgresStoreOptions, postgresStore } from './postgres-store.js'
export type { PostgresClient } from './sql-runner-for.js'
export { type PostgresTableOptions, postgresTable } from './table-name.js'
