import { StoreError } from '../errors.js'
import { warnOfOutage, warnOfRefusal } from '../warn-once.js'

/** Another transaction came first, and this one changed nothing. */
const OVERTAKEN = ['40001', '40P01', '22012']
/** The connection of this moment does not know the statement, or knows another; nothing was run. */
const UNKNOWN_STATEMENT = ['26000', '42P05', '0A000']
const NO_TABLE = ['42P01', '42703']
const NO_COLUMN = '42703'
/** A row that others keep locked for longer than a statement waits. */
const LOCKED = '55P03'
const READ_ONLY = '25006'
/** What a server says until somebody mends it, by its code, and what to do. */
const MENDS: readonly (readonly [codes: RegExp, mend: (table: string) => string])[] = [
  [/^28/, () => 'give a user and password that the server accepts (pg_hba.conf)'],
  [/^3D000$/, () => 'give the name of a database that is there'],
  [/^42501$/, (table) => `GRANT SELECT, INSERT, UPDATE, DELETE ON ${table}, USAGE of its schema, and what else the server names`],
  [/^53100$/, () => 'its disk is full: make room'],
  [/^53200$/, () => 'its memory is full: give it more, or lower work_mem or max_connections'],
  [/^53300$/, () => 'raise max_connections, or the CONNECTION LIMIT of the role or database, or lower the connections of pools'],
  [/^57P03$/, () => 'it starts or ends: if that lasts, see its log'],
]
/** Of `0A000`, which a changed statement has too: the function of the server that refuses to read an unlogged table on a standby. */
const UNLOGGED_ON_STANDBY = 'get_relation_info'

interface SqlFault {
  readonly code?: unknown
  readonly routine?: unknown
  readonly message?: unknown
}

const faultOf = (error: unknown): SqlFault => Object(error) as SqlFault
const codeOf = (error: unknown): string => String(faultOf(error).code)
const isUnlogged = (error: unknown): boolean => codeOf(error) === '0A000' && faultOf(error).routine === UNLOGGED_ON_STANDBY

export const isOvertaken = (error: unknown): boolean => OVERTAKEN.includes(codeOf(error))
export const isWithoutColumns = (error: unknown): boolean => codeOf(error) === NO_COLUMN
export const isLocked = (error: unknown): boolean => codeOf(error) === LOCKED
export const isUnknownStatement = (error: unknown): boolean => UNKNOWN_STATEMENT.includes(codeOf(error)) && !isUnlogged(error)
/** Whether the server can be read at most: a standby, or one whose transactions are read-only. */
export const isReadOnly = (error: unknown): boolean => codeOf(error) === READ_ONLY || isUnlogged(error)

/** Which server refused to be written, as far as it can be known. */
export interface ReadOnlyServer {
  /** Such as `127.0.0.1:5432`; undefined where it is reached through a socket. */
  readonly address: string | undefined
  readonly isStandby: boolean
}

/** The error for callers: an outage, with what to do where that is known, which is also a warning. @param create the statement that makes the table */
export function storeErrorOf(error: unknown, table: string, create: string): StoreError {
  if (error instanceof StoreError) return error
  const { message } = faultOf(error)
  const code = codeOf(error)
  if (NO_TABLE.includes(code)) return refused(error, code, `PostgreSQL has no such table: run this once: ${create}`)
  const mend = mendOf(code, table)
  if (mend !== undefined) return refused(error, `${code} ${String(message)}`, `PostgreSQL refuses calls, ${String(message)}: ${mend}`)
  return new StoreError('OUTAGE', `PostgreSQL failed: ${String(message)}`, { cause: error })
}

/** Warns that a table only grows, where somebody has to mend that. */
export function warnUnswept(error: unknown, table: string): void {
  const code = codeOf(error)
  const mend = mendOf(code, table)
  if (mend === undefined) return
  const message = `PostgreSQL does not remove expired rows, ${String(faultOf(error).message)}: ${mend}`
  warnOfOutage('SLUICEGATE_STORE_REFUSES', message, `sweep ${code}`, `the table ${table} grows`)
}

function mendOf(code: string, table: string): string | undefined {
  return MENDS.find(([codes]) => codes.test(code))?.[1](table)
}

function refused(cause: unknown, subject: string, message: string): StoreError {
  warnOfRefusal('SLUICEGATE_STORE_REFUSES', message, subject, cause)
  return new StoreError('OUTAGE', message, { cause })
}

/** The same of what {@link isReadOnly}. */
export function readOnlyErrorOf(error: unknown, server: ReadOnlyServer | undefined): StoreError {
  const where = server?.address === undefined ? 'this PostgreSQL' : `PostgreSQL at ${server.address}`
  const mend =
    server?.isStandby === false ? 'set default_transaction_read_only to off for the role or database' : 'give the address of the primary'
  const what = server?.isStandby === false ? 'begins transactions as read-only' : 'is read-only, a standby'
  return refused(error, READ_ONLY, `${where} ${what}, and limits write: ${mend}`)
}
