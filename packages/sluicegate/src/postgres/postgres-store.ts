import { checkOptions } from '../options/option-checks.js'
import type { CancelSignal } from '../shared/backend.js'
import type { CasOutcome, CasState, CasStep, CasStepped, CasStepRefusal, CasStore, CasSwap } from '../store/cas-store.js'
import { hexOf } from './hex.js'
import { newVersion } from './new-version.js'
import { PostgresSteps } from './postgres-steps.js'
import { RecentKeys } from './recent-keys.js'
import type { SqlRunner } from './sql-runner.js'
import { type PostgresClient, sqlRunnerFor } from './sql-runner-for.js'
import { stateOf } from './step-rows.js'
import { storedKey } from './stored-key.js'
import type { PostgresTableOptions } from './table-name.js'
import { TableStatements } from './table-statements.js'

export interface PostgresStoreOptions extends Pick<PostgresTableOptions, 'table'> {
  /**
   * A `Pool` or `Client` of `pg`, or what `postgres()` returns. You make it and you close it.
   *
   * @defaultValue required
   * @example postgresStore({ client: pool })
   */
  readonly client: PostgresClient
}

/**
 * Keys in a table of PostgreSQL (11 or later): one statement a step, the server's clock.
 *
 * @throws {PolicyError} `CLIENT_INVALID`, `OPTION_INVALID`, `OPTION_UNKNOWN`
 * @example
 * const store = postgresStore({ client: new pg.Pool({ connectionString }) })
 */
export function postgresStore(options: PostgresStoreOptions): Required<CasStore> {
  const { client, table = 'sluicegate' } = checkOptions(options, ['client', 'table'], '{ client: pool }', 'postgresStore()')
  return new PostgresStore(sqlRunnerFor(client), table)
}

class PostgresStore implements Required<CasStore> {
  readonly name = 'postgres'
  readonly #table: TableStatements
  readonly #steps: PostgresSteps
  /** Others kept them locked: statements do not wait for them again. */
  readonly #locked = new RecentKeys()

  constructor(runner: SqlRunner, table: string) {
    this.#table = new TableStatements(runner, table)
    this.#steps = new PostgresSteps(this.#table)
  }

  connectionsOpened(): number | undefined {
    return this.#table.connectionsOpened()
  }

  async read(key: string, signal?: CancelSignal): Promise<CasState> {
    const [state] = await this.#table.read([key], signal)
    return state as CasState
  }

  readAll(keys: readonly string[], signal?: CancelSignal): Promise<readonly CasState[]> {
    return this.#table.read(keys, signal)
  }

  step(
    groups: readonly (readonly CasStep[])[],
    signal?: CancelSignal,
  ): Promise<readonly (readonly CasStepped[] | CasStepRefusal)[] | undefined> {
    return this.#steps.step(groups, signal)
  }

  async swap({ key, version, value, ttlMs }: CasSwap, signal?: CancelSignal): Promise<CasOutcome> {
    const next = newVersion()
    const values = [hexOf(storedKey(key)), next, hexOf(value), microsecondsOf(ttlMs)]
    const wasLocked = this.#locked.has(key)
    const isNew = version === undefined
    const rows = await this.#table.changing(
      isNew ? (wasLocked ? 'createNow' : 'create') : wasLocked ? 'swapNow' : 'swap',
      isNew ? values : [...values, String(version)],
      signal,
      () => this.#locked.note(key),
    )
    const row = rows?.[0]
    if (row !== undefined && wasLocked) this.#locked.forget(key)
    if (row === undefined) return { swapped: false, state: await this.read(key, signal) }
    if (row.swapped !== 'true') return { swapped: false, state: stateOf(row) }
    this.#table.sweeper.swapped()
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
    const rows = await this.#table.changing('swapAll', [JSON.stringify(input)], signal)
    const keys = swaps.map(({ key }) => key)
    if (rows === undefined) return { swapped: false, states: await this.readAll(keys, signal) }
    if (rows[0]?.swapped !== 'true') return { swapped: false, states: rows.map(stateOf) }
    this.#table.sweeper.swapped()
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
    if (swaps.length === 0) return []
    if (swaps.length === 1 || swaps.some(({ key }) => this.#locked.has(key))) return this.#apart(swaps, signal)
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
    const rows = await this.#table.changing(isNew ? 'createMany' : 'swapMany', values, signal)
    // One key that others change under `serializable`, or keep locked, would hold up all of them.
    if (rows === undefined) return Promise.all(swaps.map((swap) => this.swap(swap, signal)))
    return rows.map((row, i) => {
      if (row.swapped !== 'true') return { swapped: false, state: stateOf(row) }
      this.#table.sweeper.swapped()
      return { swapped: true, state: { value: swaps[i]?.value, version: next[i], nowUs: Number(row.now) } }
    })
  }

  /** Keys that were locked of late each alone, the others together. */
  async #apart(swaps: readonly CasSwap[], signal: CancelSignal | undefined): Promise<readonly CasOutcome[]> {
    const isApart = ({ key }: CasSwap): boolean => swaps.length === 1 || this.#locked.has(key)
    const others = this.#swapEach(
      swaps.filter((swap) => !isApart(swap)),
      signal,
    )
    const alone = await Promise.all(swaps.map((swap) => (isApart(swap) ? this.swap(swap, signal) : undefined)))
    let i = 0
    const outcomes = await others
    return alone.map((outcome) => outcome ?? (outcomes[i++] as CasOutcome))
  }
}

/** Whole, not less than asked for, and far below what a `bigint` holds together with a time. */
function microsecondsOf(ttlMs: number): string {
  return Math.min(Math.max(1, Math.ceil(ttlMs * 1000)), 1e15).toFixed(0)
}
