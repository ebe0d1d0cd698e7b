import type { LedgerRecord, LedgerSink } from '../ledger/ledger-record.js'
import { checkOptions } from '../options/option-checks.js'
import { type PostgresClient, sqlRunnerFor } from './sql-runner-for.js'
import { type PostgresTableOptions, quotedTable } from './table-name.js'

/** Where {@link postgresLedger} appends. */
type PostgresLedgerOptions = Pick<PostgresTableOptions, 'table'>

const TABLE = 'sluicegate_ledger'

/** The statement that makes the table of a ledger: a row a record. @example await pool.query(postgresLedgerTable()) */
export function postgresLedgerTable({ table = TABLE }: PostgresLedgerOptions = {}): string {
  return `CREATE TABLE IF NOT EXISTS ${quotedTable(table)} (
  writer text NOT NULL,
  number bigint NOT NULL,
  at timestamptz NOT NULL,
  event text NOT NULL,
  hold bigint,
  levels jsonb NOT NULL,
  tokens bigint NOT NULL,
  over bigint NOT NULL,
  PRIMARY KEY (writer, number)
)`
}

/**
 * A table of PostgreSQL as the sink of a ledger: one statement a batch, all of it or nothing, and never a record twice.
 *
 * @throws {PolicyError} `CLIENT_INVALID`, `OPTION_UNKNOWN`, `OPTION_INVALID`
 * @example
 * const ledger = createLedger(postgresLedger(pool))
 */
export function postgresLedger(client: PostgresClient, options: PostgresLedgerOptions = {}): LedgerSink {
  const { table = TABLE } = checkOptions(options, ['table'], "{ table: 'billing.ledger' }", 'postgresLedger()')
  const runner = sqlRunnerFor(client)
  const text = `INSERT INTO ${quotedTable(table)} (writer, number, at, event, hold, levels, tokens, over)
SELECT writer, number, to_timestamp("atMs" / 1000), event, hold, levels, tokens, coalesce(over, 0)
FROM jsonb_to_recordset($1::text::jsonb) AS r(writer text, number bigint, "atMs" double precision, event text, hold bigint, levels jsonb, tokens bigint, over bigint)
ON CONFLICT DO NOTHING`
  const statement = { name: 'sluicegate_ledger', text }
  return { append: (records: readonly LedgerRecord[]) => runner.run(statement, [JSON.stringify(records)], false) }
}
