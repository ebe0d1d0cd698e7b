import type { StoreError } from '../errors.js'
import type { CancelSignal } from '../shared/backend.js'
import type { CasState } from '../store/cas-store.js'
import { warnOfStore } from '../warn-once.js'
import { hexOf } from './hex.js'
import {
  isLocked,
  isOvertaken,
  isReadOnly,
  isUnknownStatement,
  isWithoutColumns,
  readOnlyErrorOf,
  storeErrorOf,
  warnUnswept,
} from './sql-fault.js'
import { notSent, type SqlRow, type SqlRunner } from './sql-runner.js'
import { type Statement, type Statements, type StepVerb, statementsOf } from './statements.js'
import { isStepped, stateOf } from './step-rows.js'
import { storedKey } from './stored-key.js'
import { Sweeper } from './sweeper.js'
import { postgresTable } from './table-name.js'
import { Turns } from './turns.js'

/** A table without the columns of steps is looked at again after this long. */
const LOOK_AGAIN_MS = 10_000
/** Statements without an answer; others wait: a database that does not answer is not to lose all its connections too. */
const MOST_UNANSWERED = 16
/** Reads after which a state that others keep changing under `serializable` is an outage. */
const MOST_READS = 5

/** Statements on one table, and what becomes of those that the server refuses. */
export class TableStatements {
  readonly sweeper: Sweeper
  private readonly runner: SqlRunner
  private readonly name: string
  /** Of a table with the columns of steps, and of one without. */
  private readonly all: Statements
  private swapsOnly: Statements | undefined
  private looksAgainMs = Number.NEGATIVE_INFINITY
  private readonly turns = new Turns(MOST_UNANSWERED)
  /** Until a connection lacks a statement that was prepared, as behind a pooler that gives each transaction another connection. */
  private prepared = true

  constructor(runner: SqlRunner, name: string) {
    this.runner = runner
    this.name = name
    this.all = statementsOf(name, true)
    this.sweeper = new Sweeper(
      (after) => this.run('sweep', [hexOf(after)]),
      (error) => warnUnswept(error, name),
    )
  }

  connectionsOpened(): number | undefined {
    return this.runner.connectionsOpened === undefined ? 0 : this.runner.connectionsOpened()
  }

  async read(keys: readonly string[], signal?: CancelSignal): Promise<readonly CasState[]> {
    const hex = keys.map((key) => hexOf(storedKey(key)))
    const [only] = hex
    if (only === undefined || hex.length > 1) return (await this.reading('readAll', [JSON.stringify(hex)], signal)).map(stateOf)
    const [row] = await this.reading('read', [only], signal)
    return [stateOf(row)]
  }

  /** Whether steps are worth a try: the table is not known to lack their columns, or it is time to look again. */
  mayStep(): boolean {
    if (this.swapsOnly !== undefined && performance.now() < this.looksAgainMs) return false
    this.swapsOnly = undefined
    return true
  }

  /** Undefined: the table has no columns for it. `busy`: another transaction came first, or keeps a row locked, and nothing was written. */
  stepped(verb: StepVerb, values: readonly string[], signal: CancelSignal | undefined): Promise<readonly SqlRow[] | 'busy' | undefined> {
    return this.run(verb, values, signal).catch(async (error: unknown) => {
      if (isWithoutColumns(error)) return undefined
      if (isOvertaken(error) || isLocked(error)) return 'busy'
      throw await this.faultOf(error)
    })
  }

  /** Undefined: another transaction came first, or keeps a row locked, and nothing was written. */
  async changing(
    verb: keyof Statements,
    values: readonly string[],
    signal?: CancelSignal,
    onLocked?: () => void,
  ): Promise<readonly SqlRow[] | undefined> {
    try {
      return await this.run(verb, values, signal)
    } catch (error) {
      if (isLocked(error)) onLocked?.()
      if (isOvertaken(error) || isLocked(error)) return undefined
      throw await this.faultOf(error)
    }
  }

  private async reading(verb: keyof Statements, values: readonly string[], signal?: CancelSignal): Promise<readonly SqlRow[]> {
    for (let reads = 1; ; reads++) {
      try {
        return await this.run(verb, values, signal)
      } catch (error) {
        if (!isOvertaken(error) || reads === MOST_READS) throw await this.faultOf(error)
      }
    }
  }

  /** Of a server that cannot be written the error says which one it is. */
  private async faultOf(error: unknown): Promise<StoreError> {
    if (!isReadOnly(error)) return storeErrorOf(error, this.name, postgresTable({ table: this.name }))
    const [row] = await this.run('server', []).catch((): readonly SqlRow[] => [])
    const { host, port, standby } = row ?? {}
    const address = typeof host === 'string' ? `${host}:${String(port)}` : undefined
    return readOnlyErrorOf(error, row && { address, isStandby: standby === 'true' })
  }

  /** What a table without the columns of steps refuses is sent once more, for the columns that it has. */
  private run(verb: keyof Statements, values: readonly string[], signal?: CancelSignal): Promise<readonly SqlRow[]> {
    if (this.swapsOnly !== undefined) return this.swapping(this.swapsOnly[verb] as Statement, verb, values, signal)
    return this.sent(this.all[verb] as Statement, values, signal).catch((error: unknown) => {
      if (!isWithoutColumns(error) || this.swapsOnly !== undefined) throw error
      this.swapsOnly = statementsOf(this.name, false)
      this.looksAgainMs = performance.now() + LOOK_AGAIN_MS
      warnOfStore(
        'SLUICEGATE_OLD_TABLE',
        `the table ${this.name} has no columns by which the server decides, so values are swapped: run what postgresTable() returns once all processes have this version`,
      )
      const other = this.swapsOnly[verb]
      if (other === undefined) throw error
      return this.sent(other, values, signal)
    })
  }

  /** On a table that had no columns of steps. */
  private async swapping(
    statement: Statement,
    verb: keyof Statements,
    values: readonly string[],
    signal: CancelSignal | undefined,
  ): Promise<readonly SqlRow[]> {
    const rows = await this.sent(statement, values, signal)
    if (!rows.some(isStepped)) return rows
    // The table has got the columns meanwhile, and rows are written by them.
    this.swapsOnly = undefined
    return rows.some(({ swapped }) => swapped === 'true') ? rows : this.run(verb, values, signal)
  }

  /** What was refused for the statement's name is sent once more, without a name. */
  private sent(statement: Statement, values: readonly string[], signal?: CancelSignal): Promise<readonly SqlRow[]> {
    return this.turns.run(async () => {
      if (signal?.aborted === true) throw notSent()
      try {
        return await this.runner.run(statement, values, this.prepared, signal)
      } catch (error) {
        if (!isUnknownStatement(error)) throw error
        this.prepared = false
        return await this.runner.run(statement, values, false, signal)
      }
    })
  }
}
