import { StoreError } from '../errors.js'

/** Another transaction came first, and this one changed nothing. */
const OVERTAKEN = ['40001', '40P01', '22012']
/** The connection of this moment does not know the statement, or knows another; nothing was run. */
const UNKNOWN_STATEMENT = ['26000', '42P05', '0A000']
const NO_TABLE = ['42P01', '42703']
const READ_ONLY = '25006'

const codeOf = (error: unknown): string => String((Object(error) as { readonly code?: unknown }).code)

export const isOvertaken = (error: unknown): boolean => OVERTAKEN.includes(codeOf(error))
export const isUnknownStatement = (error: unknown): boolean => UNKNOWN_STATEMENT.includes(codeOf(error))

/** The error for callers: an outage, with what to do where that is known. @param create the statement that makes the table */
export function storeErrorOf(error: unknown, create: string): StoreError {
  if (error instanceof StoreError) return error
  const code = codeOf(error)
  const { message } = Object(error) as { readonly message?: unknown }
  if (NO_TABLE.includes(code)) return new StoreError('OUTAGE', `PostgreSQL has no such table: run this once: ${create}`, { cause: error })
  if (code === READ_ONLY) return new StoreError('OUTAGE', 'this PostgreSQL is read-only, a replica: give the primary', { cause: error })
  return new StoreError('OUTAGE', `PostgreSQL gave no answer: ${String(message)}`, { cause: error })
}
