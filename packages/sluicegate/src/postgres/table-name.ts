import { PolicyError } from '../errors.js'

const PART = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/

/**
 * `table` or `schema.table`, quoted for SQL.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function quotedTable(table: string): string {
  const parts = typeof table === 'string' ? table.split('.') : []
  if (parts.length < 1 || parts.length > 2 || !parts.every((part) => PART.test(part))) {
    throw new PolicyError(
      'OPTION_INVALID',
      'table',
      table,
      "must be a name of letters, digits and _, such as 'sluicegate' or 'limits.sluicegate'",
    )
  }
  return parts.map((part) => `"${part}"`).join('.')
}

/**
 * The statements that make the table, or give one of an earlier version the columns by which the server decides. Run them once, with your
 * migrations, and not before all processes have this version: earlier ones do not read what it writes.
 *
 * Rows are changed in place (HOT): no index is on what changes, and pages keep room. `UNLOGGED`, the default, writes no log: a crash of the
 * server empties the table, and keys are full again. A logged table survives crashes and is on replicas.
 *
 * @example
 * await pool.query(postgresTable())
 */
export function postgresTable({ table = 'sluicegate', logged = false }: PostgresTableOptions = {}): string {
  const name = quotedTable(table)
  const more = COLUMNS.map(([column, type]) => `ADD COLUMN IF NOT EXISTS ${column} ${type}`).join(', ')
  return `CREATE ${logged ? '' : 'UNLOGGED '}TABLE IF NOT EXISTS ${name} (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  expires bigint NOT NULL,
  value bytea NOT NULL,
  ${COLUMNS.map((column) => column.join(' ')).join(', ')}
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = '${name}'::regclass AND attname = 'seen') THEN
  ALTER TABLE ${name} ${more};
END IF; END $$`
}

/** Of steps: see step-texts.ts. */
const COLUMNS = [
  ['at', 'bigint'],
  ['rest', 'bigint'],
  ['unit', 'bigint'],
  ['pace', 'bigint'],
  ['cap', 'bigint'],
  ['ahead', 'boolean'],
  ['blocked', 'bigint'],
  ['seen', 'bigint'],
] as const

export interface PostgresTableOptions {
  /**
   * The table, also as `schema.table`, the same as that of the store or the ledger.
   *
   * @defaultValue `'sluicegate'`; of a ledger `'sluicegate_ledger'`
   * @example postgresTable({ table: 'limits.sluicegate' })
   */
  readonly table?: string
  /**
   * Whether the table survives a crash of the server.
   *
   * @defaultValue `false`
   * @example postgresTable({ logged: true })
   */
  readonly logged?: boolean
}
