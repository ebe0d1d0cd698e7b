import type { StoreError } from '../errors.js'
import { checkOptions } from '../options/option-checks.js'
import type { CancelSignal } from '../shared/backend.js'
import type { CasOutcome, CasState, CasStore, CasSwap } from '../store/cas-store.js'
import { hexOf } from './hex.js'
import { newVersion } from './new-version.js'
import { isOvertaken, isReadOnly, isUnknownStatement, readOnlyErrorOf, storeErrorOf } from './sql-fault.js'
import type { SqlRow, SqlRunner } from './sql-runner.js'
import { type PostgresClient, sqlRunnerFor } from './sql-runner-for.js'
import { type Statement, type Statements, statementsOf } from './statements.js'
import { storedKey } from './stored-key.js'
import { Sweeper } from './sweeper.js'
import { postgresTable } from './table-name.js'

export interface PostgresStoreOptions {
  /**
   * A `Pool` or `Client` of `pg`, or what `postgres()` returns. You make it and you close it.
   *
   * @defaultValue required
   * @example createPostgresLimiter(policy, { client: pool })
   */
  readonly client: PostgresClient
  /**
   * The table, also as `schema.table`; `postgresTable()` has the statement that makes it.
   *
   * @defaultValue `'sluicegate'`
   * @example createPostgresLimiter(policy, { client: pool, table: 'limits.sluicegate' })
   */
  readonly table?: string
}

/** Reads after which a state that others keep changing under `serializable` is an outage. */
const MOST_READS = 5

/**
 * Keys in a table of PostgreSQL (11 or later): one statement a step, the server's clock.
 *
 * @throws {PolicyError} `CLIENT_INVALID`, `OPTION_INVALID`, `OPTION_UNKNOWN`
 * @example
 * const store = postgresStore({ client: new pg.Pool({ connectionString }) })
 */
export function postgresStore(options: PostgresStoreOptions): Required<CasStore> {
  const { client, table = 'sluicegate' } = checkOptions(options, ['client', 'table'], '{ client: pool }', 'postgresStore()')
  return new PostgresStore(sqlRunnerFor(client), statementsOf(table), postgresTable({ table }))
}

class PostgresStore implements Required<CasStore> {
  readonly name = 'postgres'
  readonly #runner: SqlRunner
  readonly #statements: Statements
  readonly #create: string
  readonly #sweeper: Sweeper
  /** Until a connection lacks a statement that was prepared, as behind a pooler that gives each transaction another connection. */
  #prepared = true

  constructor(runner: SqlRunner, statements: Statements, create: string) {
    this.#runner = runner
    this.#statements = statements
    this.#create = create
    this.#sweeper = new Sweeper((after) => this.#run(statements.sweep, [hexOf(after)]))
  }

  async read(key: string, signal?: CancelSignal): Promise<CasState> {
    const [row] = await this.#reading(this.#statements.read, [hexOf(storedKey(key))], signal)
    return stateOf(row)
  }

  async readAll(keys: readonly string[], signal?: CancelSignal): Promise<readonly CasState[]> {
    const hex = keys.map((key) => hexOf(storedKey(key)))
    return (await this.#reading(this.#statements.readAll, [JSON.stringify(hex)], signal)).map(stateOf)
  }

  async swap({ key, version, value, ttlMs }: CasSwap, signal?: CancelSignal): Promise<CasOutcome> {
    const next = newVersion()
    const values = [hexOf(storedKey(key)), next, hexOf(value), microsecondsOf(ttlMs)]
    const { create, swap } = this.#statements
    const rows = await this.#changing(
      version === undefined ? create : swap,
      version === undefined ? values : [...values, String(version)],
      signal,
    )
    const row = rows?.[0]
    if (row === undefined) return { swapped: false, state: await this.read(key, signal) }
    if (row.swapped !== 'true') return { swapped: false, state: stateOf(row) }
    this.#sweeper.swapped()
    return { swapped: true, state: { value, version: next, nowUs: Number(row.now) } }
  }

  async swapAll(swaps: readonly CasSwap[], signal?: CancelSignal): Promise<{ swapped: boolean; states: readonly CasState[] }> {
    const versions = swaps.map(newVersion)
    const input = swaps.map(({ key, version, value, ttlMs }, i) => ({
      i,
      k: hexOf(storedKey(key)),
      // As text: JSON's numbers are too short for some readers.
      w: version === undefined ? null : String(version),
      n: versions[i],
      v: hexOf(value),
      t: microsecondsOf(ttlMs),
    }))
    const rows = await this.#changing(this.#statements.swapAll, [JSON.stringify(input)], signal)
    const keys = swaps.map(({ key }) => key)
    if (rows === undefined) return { swapped: false, states: await this.readAll(keys, signal) }
    if (rows[0]?.swapped !== 'true') return { swapped: false, states: rows.map(stateOf) }
    this.#sweeper.swapped()
    const states = rows.map((row, i) => ({ value: swaps[i]?.value, version: versions[i], nowUs: Number(row.now) }))
    return { swapped: true, states }
  }

  /** Keys without a value and those with one are written by a statement each. */
  async swapMany(swaps: readonly CasSwap[], signal?: CancelSignal): Promise<readonly CasOutcome[]> {
    const isNew = ({ version }: CasSwap): boolean => version === undefined
    const created = swaps.filter(isNew)
    const others = swaps.filter((swap) => !isNew(swap))
    const [first, second] = await Promise.all([this.#swapEach(created, signal), this.#swapEach(others, signal)])
    let [i, j] = [0, 0]
    return swaps.map((swap) => (isNew(swap) ? first[i++] : second[j++]) as CasOutcome)
  }

  async #swapEach(swaps: readonly CasSwap[], signal?: CancelSignal): Promise<readonly CasOutcome[]> {
    const oneByOne = (): Promise<readonly CasOutcome[]> => Promise.all(swaps.map((swap) => this.swap(swap, signal)))
    if (swaps.length < 2) return oneByOne()
    const { createMany, swapMany } = this.#statements
    const isNew = swaps[0]?.version === undefined
    const next = swaps.map(newVersion)
    const listOf = (textOf: (swap: CasSwap) => string): string => swaps.map(textOf).join()
    const values = [
      listOf(({ key }) => hexOf(storedKey(key))),
      next.join(),
      listOf(({ value }) => hexOf(value)),
      listOf(({ ttlMs }) => microsecondsOf(ttlMs)),
      ...(isNew ? [] : [listOf(({ version }) => String(version))]),
    ]
    const rows = await this.#changing(isNew ? createMany : swapMany, values, signal)
    // Under `serializable` one key that others change would hold up all of them.
    if (rows === undefined) return oneByOne()
    return rows.map((row, i) => {
      if (row.swapped !== 'true') return { swapped: false, state: stateOf(row) }
      this.#sweeper.swapped()
      return { swapped: true, state: { value: swaps[i]?.value, version: next[i], nowUs: Number(row.now) } }
    })
  }

  /** Undefined: another transaction came first, and nothing was written. */
  async #changing(statement: Statement, values: readonly string[], signal?: CancelSignal): Promise<readonly SqlRow[] | undefined> {
    try {
      return await this.#run(statement, values, signal)
    } catch (error) {
      if (isOvertaken(error)) return undefined
      throw await this.#faultOf(error)
    }
  }

  async #reading(statement: Statement, values: readonly string[], signal?: CancelSignal): Promise<readonly SqlRow[]> {
    for (let reads = 1; ; reads++) {
      try {
        return await this.#run(statement, values, signal)
      } catch (error) {
        if (!isOvertaken(error) || reads === MOST_READS) throw await this.#faultOf(error)
      }
    }
  }

  /** Of a server that cannot be written the error says which one it is. */
  async #faultOf(error: unknown): Promise<StoreError> {
    if (!isReadOnly(error)) return storeErrorOf(error, this.#create)
    const [row] = await this.#run(this.#statements.server, []).catch((): readonly SqlRow[] => [])
    const { host, port, standby } = row ?? {}
    const address = typeof host === 'string' ? `${host}:${String(port)}` : undefined
    return readOnlyErrorOf(error, row && { address, isStandby: standby === 'true' })
  }

  /** What was refused for the statement's name is sent once more, without a name. */
  async #run(statement: Statement, values: readonly string[], signal?: CancelSignal): Promise<readonly SqlRow[]> {
    try {
      return await this.#runner.run(statement, values, this.#prepared, signal)
    } catch (error) {
      if (!isUnknownStatement(error)) throw error
      this.#prepared = false
      return await this.#runner.run(statement, values, false, signal)
    }
  }
}

function stateOf(row: SqlRow | undefined): CasState {
  const { version, value, now } = row ?? {}
  const isThere = typeof version === 'string' && value instanceof Uint8Array
  return { value: isThere ? value : undefined, version: isThere ? version : undefined, nowUs: Number(now) }
}

/** Whole, not less than asked for, and far below what a `bigint` holds together with a time. */
function microsecondsOf(ttlMs: number): string {
  return Math.min(Math.max(1, Math.ceil(ttlMs * 1000)), 1e15).toFixed(0)
}
