import type { StoreError } from '../errors.js'
import { checkOptions } from '../options/option-checks.js'
import { DEEPEST_DEBT_BURSTS, FURTHEST_US } from '../policy/policy-numbers.js'
import type { CancelSignal } from '../shared/backend.js'
import type { CasOutcome, CasState, CasStep, CasStepped, CasStepRefusal, CasStepState, CasStore, CasSwap } from '../store/cas-store.js'
import { decodedValue, NO_VALUE, STEPPED } from '../store/stored-value.js'
import { warnOfStore } from '../warn-once.js'
import { hexOf } from './hex.js'
import { newVersion } from './new-version.js'
import { RecentKeys } from './recent-keys.js'
import { isLocked, isOvertaken, isReadOnly, isUnknownStatement, isWithoutColumns, readOnlyErrorOf, storeErrorOf } from './sql-fault.js'
import { notSent, type SqlRow, type SqlRunner } from './sql-runner.js'
import { type PostgresClient, sqlRunnerFor } from './sql-runner-for.js'
import { type Statement, type Statements, type StepVerb, statementsOf } from './statements.js'
import { storedKey } from './stored-key.js'
import { Sweeper } from './sweeper.js'
import { postgresTable } from './table-name.js'
import { Turns } from './turns.js'

export interface PostgresStoreOptions {
  /**
   * A `Pool` or `Client` of `pg`, or what `postgres()` returns. You make it and you close it.
   *
   * @defaultValue required
   * @example postgresStore({ client: pool })
   */
  readonly client: PostgresClient
  /**
   * The table, also as `schema.table`; `postgresTable()` has the statement that makes it.
   *
   * @defaultValue `'sluicegate'`
   * @example postgresStore({ client: pool, table: 'limits.sluicegate' })
   */
  readonly table?: string
}

/** A table without the columns of steps is looked at again after this long. */
const LOOK_AGAIN_MS = 10_000
/** Statements without an answer; others wait: a database that does not answer is not to lose all its connections too. */
const MOST_UNANSWERED = 16
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
  return new PostgresStore(sqlRunnerFor(client), table)
}

class PostgresStore implements Required<CasStore> {
  readonly name = 'postgres'
  readonly #runner: SqlRunner
  readonly #table: string
  /** Of a table with the columns of steps, and of one without. */
  readonly #all: Statements
  #swapsOnly: Statements | undefined
  #looksAgainMs = Number.NEGATIVE_INFINITY
  /** Others kept them locked: statements do not wait for them again. */
  readonly #locked = new RecentKeys()
  /** A take was denied: the next one reads, which locks nothing, before it tries. */
  readonly #denied = new RecentKeys()
  readonly #turns = new Turns(MOST_UNANSWERED)
  readonly #sweeper: Sweeper
  /** Until a connection lacks a statement that was prepared, as behind a pooler that gives each transaction another connection. */
  #prepared = true

  constructor(runner: SqlRunner, table: string) {
    this.#runner = runner
    this.#table = table
    this.#all = statementsOf(table, true)
    this.#sweeper = new Sweeper((after) => this.#run('sweep', [hexOf(after)]))
  }

  connectionsOpened(): number | undefined {
    return this.#runner.connectionsOpened === undefined ? 0 : this.#runner.connectionsOpened()
  }

  async read(key: string, signal?: CancelSignal): Promise<CasState> {
    const [row] = await this.#reading('read', [hexOf(storedKey(key))], signal)
    return stateOf(row)
  }

  async readAll(keys: readonly string[], signal?: CancelSignal): Promise<readonly CasState[]> {
    const hex = keys.map((key) => hexOf(storedKey(key)))
    return (await this.#reading('readAll', [JSON.stringify(hex)], signal)).map(stateOf)
  }

  async swap({ key, version, value, ttlMs }: CasSwap, signal?: CancelSignal): Promise<CasOutcome> {
    const next = newVersion()
    const values = [hexOf(storedKey(key)), next, hexOf(value), microsecondsOf(ttlMs)]
    const wasLocked = this.#locked.has(key)
    const isNew = version === undefined
    const rows = await this.#changing(
      isNew ? (wasLocked ? 'createNow' : 'create') : wasLocked ? 'swapNow' : 'swap',
      isNew ? values : [...values, String(version)],
      signal,
      () => this.#locked.note(key),
    )
    const row = rows?.[0]
    if (row !== undefined && wasLocked) this.#locked.forget(key)
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
    const rows = await this.#changing('swapAll', [JSON.stringify(input)], signal)
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
    const rows = await this.#changing(isNew ? 'createMany' : 'swapMany', values, signal)
    // One key that others change under `serializable`, or keep locked, would hold up all of them.
    if (rows === undefined) return Promise.all(swaps.map((swap) => this.swap(swap, signal)))
    return rows.map((row, i) => {
      if (row.swapped !== 'true') return { swapped: false, state: stateOf(row) }
      this.#sweeper.swapped()
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

  async step(
    groups: readonly (readonly CasStep[])[],
    signal?: CancelSignal,
  ): Promise<readonly (readonly CasStepped[] | CasStepRefusal)[] | undefined> {
    if (this.#swapsOnly !== undefined && performance.now() < this.#looksAgainMs) return undefined
    this.#swapsOnly = undefined
    const only = groups.length === 1 && groups[0]?.length === 1 ? groups[0][0] : undefined
    if (only !== undefined && isPlain(only) && !this.#denied.has(only.key)) {
      const rows = await this.#rowsOfTake(only, signal)
      if (rows === undefined) return undefined
      if (rows === 'busy') return ['busy']
      const [row] = rows
      if (row !== undefined) {
        this.#sweeper.swapped()
        return [[takenIn(only, row)]]
      }
      this.#denied.note(only.key)
    }
    const areTogether = (group: readonly CasStep[]): boolean => group.length > 1 && group[0]?.verb === 'take'
    const [together, others] = [groups.filter(areTogether), groups.filter((group) => !areTogether(group))]
    const [first, second] = await Promise.all([
      together.length === 0 ? [] : this.#takeAll(together, signal),
      others.length === 0 ? [] : this.#stepEach(others, signal),
    ])
    if (first === undefined || second === undefined) return undefined
    let [i, j] = [0, 0]
    return groups.map((group) => (areTogether(group) ? first[i++] : second[j++]) as readonly CasStepped[] | CasStepRefusal)
  }

  async #stepEach(
    groups: readonly (readonly CasStep[])[],
    signal: CancelSignal | undefined,
  ): Promise<readonly (readonly CasStepped[] | CasStepRefusal)[] | undefined> {
    const steps = groups.flat()
    const outcomes = new Array<CasStepped | CasStepRefusal | undefined>(steps.length)
    // A lease of which part was granted of late is likely to be so again.
    const isTried = (step: CasStep): boolean => isPlain(step) && (step.verb === 'take' || !this.#denied.has(step.key))
    const lentUs = new Set(steps.map(lentUsOf))
    const ends = await Promise.all([
      ...[...lentUs].map((us) => this.#taken(steps, outcomes, (step) => isTried(step) && step.pace > 0 && lentUsOf(step) === us, signal)),
      this.#taken(steps, outcomes, (step) => isTried(step) && step.pace === 0, signal),
      this.#made(steps, outcomes, (step) => !isTried(step), false, signal),
    ])
    // What no plain take could tell.
    const isLeft = (_: CasStep, i: number): boolean => outcomes[i] === undefined
    if (ends.includes(undefined) || (await this.#made(steps, outcomes, isLeft, ends.includes('busy'), signal)) === undefined)
      return undefined
    this.#sweeper.swapped(steps.length)
    let at = 0
    return groups.map((group) => outcomeOf(group.map(() => outcomes[at++] as CasStepped | CasStepRefusal)))
  }

  /** Makes the chosen steps. Undefined: the table has no columns for it. @param isLocked some of their rows are: those are left at once. */
  async #made(
    steps: readonly CasStep[],
    outcomes: (CasStepped | CasStepRefusal | undefined)[],
    isChosen: (step: CasStep, i: number) => boolean,
    isLocked: boolean,
    signal: CancelSignal | undefined,
  ): Promise<'made' | undefined> {
    const places = placesOf(steps, isChosen)
    if (places.length === 0) return 'made'
    const chosen = places.map((i) => steps[i] as CasStep)
    const values = [...keyLists(chosen), ...stepLists(chosen)]
    let rows = isLocked ? 'busy' : await this.#stepped('stepMany', values, signal)
    // One key that others keep locked does not hold up the rest: what is free is done, without waiting.
    if (rows === 'busy' && (isLocked || chosen.length > 1)) rows = await this.#stepped('stepFree', values, signal)
    if (rows === undefined) return undefined
    for (const [at, i] of places.entries()) outcomes[i] = rows === 'busy' ? 'busy' : steppedIn((steps[i] as CasStep).key, rows[at])
    return 'made'
  }

  /** Makes those of the chosen takes, of one kind, that pass as a whole, and tells those of which nothing passes. `busy`: rows of others are locked. */
  async #taken(
    steps: readonly CasStep[],
    outcomes: (CasStepped | CasStepRefusal | undefined)[],
    isChosen: (step: CasStep) => boolean,
    signal: CancelSignal | undefined,
  ): Promise<'made' | 'busy' | undefined> {
    let places = placesOf(steps, isChosen)
    if (places.some((i) => this.#denied.has((steps[i] as CasStep).key))) {
      const [denied, others] = [true, false].map((is) => places.filter((i) => this.#denied.has((steps[i] as CasStep).key) === is))
      await this.#lookedAt(steps, outcomes, denied as readonly number[], signal)
      places = [...(denied as readonly number[]).filter((i) => outcomes[i] === undefined), ...(others as readonly number[])]
    }
    if (places.length === 0) return 'made'
    const rows = await this.#rowsOfTakes(
      places.map((i) => steps[i] as CasStep),
      signal,
    )
    if (rows === undefined || (rows === 'busy' && places.length > 1)) return rows
    if (rows === 'busy') {
      outcomes[places[0] as number] = 'busy'
      return 'made'
    }
    const left: number[] = []
    for (const [at, i] of places.entries()) {
      const { [at]: row } = rows
      const step = steps[i] as CasStep
      if (row !== undefined) outcomes[i] = takenIn(step, row)
      else if (step.verb === 'take') left.push(i)
      else this.#denied.note(step.key)
    }
    if (left.length > 0) await this.#lookedAt(steps, outcomes, left, signal)
    return 'made'
  }

  /** Of takes that passed what their rows have, in the order of the takes. */
  #rowsOfTakes(takes: readonly CasStep[], signal: CancelSignal | undefined): Promise<readonly (SqlRow | undefined)[] | 'busy' | undefined> {
    return takes.length === 1 ? this.#rowsOfTake(takes[0] as CasStep, signal) : this.#rowsOfSeveral(takes, signal)
  }

  #rowsOfTake(take: CasStep, signal: CancelSignal | undefined): Promise<readonly SqlRow[] | 'busy' | undefined> {
    const { key, unit, pace, cap } = take
    const values = [hexOf(storedKey(key)), newVersion(), `${unit}`, `${pace}`, `${cap}`, `${needOf(take)}`]
    if (pace === 0) return this.#stepped('takeWindow', values, signal)
    values.push(`${lentUsOf(take)}`)
    return this.#stepped('takeRate', values, signal)
  }

  async #rowsOfSeveral(
    takes: readonly CasStep[],
    signal: CancelSignal | undefined,
  ): Promise<readonly (SqlRow | undefined)[] | 'busy' | undefined> {
    const isWindow = takes[0]?.pace === 0
    const versions = takes.map(newVersion)
    const listOf = (textOf: (take: CasStep) => string | number): string => `{${takes.map(textOf).join()}}`
    const lists = [
      listOf(({ key }) => hexOf(storedKey(key))),
      `{${versions.join()}}`,
      listOf(({ unit }) => unit),
      listOf(({ pace }) => pace),
      listOf(({ cap }) => cap),
      listOf(needOf),
      ...(isWindow ? [] : [`${lentUsOf(takes[0] as CasStep)}`]),
    ]
    const rows = await this.#stepped(isWindow ? 'takeWindows' : 'takeRates', lists, signal)
    if (rows === undefined || rows === 'busy') return rows
    const byVersion = new Map(rows.map((row) => [row.version, row]))
    return versions.map((version) => byVersion.get(version))
  }

  /** Reads the keys of takes, and tells those of which nothing passes. */
  async #lookedAt(
    steps: readonly CasStep[],
    outcomes: (CasStepped | CasStepRefusal | undefined)[],
    places: readonly number[],
    signal: CancelSignal | undefined,
  ): Promise<void> {
    const keys = places.map((i) => (steps[i] as CasStep).key)
    const states = keys.length === 1 ? [await this.read(keys[0] as string, signal)] : await this.readAll(keys, signal)
    for (const [at, i] of places.entries()) {
      const step = steps[i] as CasStep
      const denial = denialIn(step, states[at] as CasState)
      if (denial === undefined) this.#denied.forget(step.key)
      else {
        this.#denied.note(step.key)
        outcomes[i] = denial
      }
    }
  }

  /** Takes in groups that may share keys. */
  async #takeAll(
    groups: readonly (readonly CasStep[])[],
    signal: CancelSignal | undefined,
  ): Promise<readonly (readonly CasStepped[] | CasStepRefusal)[] | undefined> {
    const places = new Map<string, number>()
    const keys: CasStep[] = []
    for (const step of groups.flat()) {
      if (places.has(step.key)) continue
      places.set(step.key, keys.push(step))
    }
    const listOf = (textOf: (group: readonly CasStep[]) => string | number): string => groups.map(textOf).join()
    const values = [
      ...keyLists(keys),
      listOf((group) => group.map(({ key }) => places.get(key)).join(' ')),
      listOf((group) => group.map(({ amount }) => amount).join(' ')),
      listOf(([first]) => (first as CasStep).times),
    ]
    const rows = await this.#stepped('takeAll', values, signal)
    if (rows === undefined) return undefined
    if (rows === 'busy') return groups.map(() => 'busy')
    this.#sweeper.swapped(keys.length)
    const states = rows.map((row, i) => steppedIn((keys[i] as CasStep).key, row))
    const placeOf = ({ key }: CasStep): number => (places.get(key) as number) - 1
    const dones = String(rows.find(({ done }) => done !== 'other')?.done ?? '').split(' ')
    // Each group as it was left by the ones before it: of the last the state is what is stored.
    const debts = states.map((state) => ('debt' in Object(state) ? (state as CasStepped).debt : 0))
    const outcomes = groups.map((group) => outcomeOf(group.map((step) => states[placeOf(step)] as CasStepped | CasStepRefusal)))
    for (let g = groups.length - 1; g >= 0; g--) {
      const outcome = outcomes[g]
      if (!Array.isArray(outcome)) continue
      const done = Number(dones[g])
      outcomes[g] = outcome.map((stepped: CasStepped, i) => {
        const place = placeOf((groups[g] as readonly CasStep[])[i] as CasStep)
        const debt = debts[place] as number
        debts[place] = debt - done * ((groups[g] as readonly CasStep[])[i] as CasStep).amount
        return { ...stepped, done, debt }
      })
    }
    return outcomes
  }

  /** Undefined: the table has no columns for it. `busy`: another transaction came first, or keeps a row locked, and nothing was written. */
  #stepped(verb: StepVerb, values: readonly string[], signal: CancelSignal | undefined): Promise<readonly SqlRow[] | 'busy' | undefined> {
    return this.#run(verb, values, signal).catch(async (error: unknown) => {
      if (isWithoutColumns(error)) return undefined
      if (isOvertaken(error) || isLocked(error)) return 'busy'
      throw await this.#faultOf(error)
    })
  }

  /** Undefined: another transaction came first, or keeps a row locked, and nothing was written. */
  async #changing(
    verb: keyof Statements,
    values: readonly string[],
    signal?: CancelSignal,
    onLocked?: () => void,
  ): Promise<readonly SqlRow[] | undefined> {
    try {
      return await this.#run(verb, values, signal)
    } catch (error) {
      if (isLocked(error)) onLocked?.()
      if (isOvertaken(error) || isLocked(error)) return undefined
      throw await this.#faultOf(error)
    }
  }

  async #reading(verb: keyof Statements, values: readonly string[], signal?: CancelSignal): Promise<readonly SqlRow[]> {
    for (let reads = 1; ; reads++) {
      try {
        return await this.#run(verb, values, signal)
      } catch (error) {
        if (!isOvertaken(error) || reads === MOST_READS) throw await this.#faultOf(error)
      }
    }
  }

  /** Of a server that cannot be written the error says which one it is. */
  async #faultOf(error: unknown): Promise<StoreError> {
    if (!isReadOnly(error)) return storeErrorOf(error, postgresTable({ table: this.#table }))
    const [row] = await this.#run('server', []).catch((): readonly SqlRow[] => [])
    const { host, port, standby } = row ?? {}
    const address = typeof host === 'string' ? `${host}:${String(port)}` : undefined
    return readOnlyErrorOf(error, row && { address, isStandby: standby === 'true' })
  }

  /** What a table without the columns of steps refuses is sent once more, for the columns that it has. */
  #run(verb: keyof Statements, values: readonly string[], signal?: CancelSignal): Promise<readonly SqlRow[]> {
    if (this.#swapsOnly !== undefined) return this.#swapping(this.#swapsOnly[verb] as Statement, verb, values, signal)
    return this.#sent(this.#all[verb] as Statement, values, signal).catch((error: unknown) => {
      if (!isWithoutColumns(error) || this.#swapsOnly !== undefined) throw error
      this.#swapsOnly = statementsOf(this.#table, false)
      this.#looksAgainMs = performance.now() + LOOK_AGAIN_MS
      warnOfStore(
        'SLUICEGATE_OLD_TABLE',
        `the table ${this.#table} has no columns by which the server decides, so values are swapped: run what postgresTable() returns once all processes have this version`,
      )
      const other = this.#swapsOnly[verb]
      if (other === undefined) throw error
      return this.#sent(other, values, signal)
    })
  }

  /** On a table that had no columns of steps. */
  async #swapping(
    statement: Statement,
    verb: keyof Statements,
    values: readonly string[],
    signal: CancelSignal | undefined,
  ): Promise<readonly SqlRow[]> {
    const rows = await this.#sent(statement, values, signal)
    if (!rows.some(isStepped)) return rows
    // The table has got the columns meanwhile, and rows are written by them.
    this.#swapsOnly = undefined
    return rows.some(({ swapped }) => swapped === 'true') ? rows : this.#run(verb, values, signal)
  }

  /** What was refused for the statement's name is sent once more, without a name. */
  #sent(statement: Statement, values: readonly string[], signal?: CancelSignal): Promise<readonly SqlRow[]> {
    return this.#turns.run(async () => {
      if (signal?.aborted === true) throw notSent()
      try {
        return await this.#runner.run(statement, values, this.#prepared, signal)
      } catch (error) {
        if (!isUnknownStatement(error)) throw error
        this.#prepared = false
        return await this.#runner.run(statement, values, false, signal)
      }
    })
  }
}

/** A take or lease of one key by its own row, which may pass as a whole. */
function isPlain(step: CasStep): boolean {
  const { verb, from, pace, cap } = step
  return (verb === 'take' || verb === 'lease') && from === undefined && needOf(step) + lentUsOf(step) * pace <= cap
}

/** Units that are charged when it passes as a whole. */
function needOf({ verb, unit, pace, amount, times }: CasStep): number {
  return verb === 'take' ? amount * times : pace === 0 ? amount : amount * unit
}

/** Of a lease of a rate how long the debt lasts at least that it is added to. */
function lentUsOf({ verb, pace, lent }: CasStep): number {
  return verb === 'lease' && pace > 0 ? lent / pace : 0
}

/** The outcome of a take of which nothing passes by the state that was read. Undefined: something may. */
function denialIn({ unit, pace, cap, amount }: CasStep, { value, nowUs }: CasState): CasStepped | undefined {
  const { stepped } = value?.[0] === STEPPED ? decodedValue(value) : NO_VALUE
  if (stepped === undefined || stepped.unit !== unit || stepped.pace !== pace || stepped.cap !== cap) return undefined
  const { debt, state } = inForce(stepped, nowUs)
  const isOpen = state.blocked <= nowUs && (pace > 0 || state.at <= nowUs)
  return isOpen && debt + amount <= cap ? undefined : { done: 0, debt, nowUs, state }
}

/** The outcome of a take that passed as a whole. */
function takenIn({ verb, unit, pace, cap, amount, times }: CasStep, { taken }: SqlRow): CasStepped {
  const [at = 0, rest = 0, nowUs = 0] = String(taken).split(' ').map(Number)
  const debt = pace === 0 ? rest : Math.max(0, at - nowUs) * pace + rest
  return { done: verb === 'take' ? times : amount, debt, nowUs, state: { at, rest, unit, pace, cap, ahead: false, blocked: 0 } }
}

function placesOf(steps: readonly CasStep[], isChosen: (step: CasStep, i: number) => boolean): readonly number[] {
  const places: number[] = []
  for (const [i, step] of steps.entries()) if (isChosen(step, i)) places.push(i)
  return places
}

function keyLists(steps: readonly CasStep[]): readonly string[] {
  const listOf = (textOf: (step: CasStep) => string | number): string => steps.map(textOf).join()
  return [
    listOf(({ key }) => hexOf(storedKey(key))),
    listOf(newVersion),
    listOf(({ unit }) => unit),
    listOf(({ pace }) => pace),
    listOf(({ cap }) => cap),
    listOf(({ from }) => (from === undefined ? '' : String(from.version))),
    listOf(({ from }) => from?.state.at ?? 0),
    listOf(({ from }) => from?.state.rest ?? 0),
    listOf(({ from }) => (from?.state.ahead === true ? 1 : 0)),
    listOf(({ from }) => from?.state.blocked ?? 0),
  ]
}

function stepLists(steps: readonly CasStep[]): readonly string[] {
  const listOf = (textOf: (step: CasStep) => string | number): string => steps.map(textOf).join()
  return [
    listOf(({ verb }) => verb),
    listOf(({ lent }) => lent),
    listOf(({ amount }) => amount),
    listOf(({ times }) => times),
    listOf(({ bound }) => bound),
    listOf(({ booking: [units] }) => units),
    listOf(({ booking: [, debt] }) => debt),
    listOf(({ booking: [, , atUs] }) => atUs),
  ]
}

/** A state as it counts at a time, as the statements have it for a take: of a window that is over nothing. */
function inForce(state: CasStepState, nowUs: number): { readonly debt: number; readonly state: CasStepState } {
  const { at, rest, unit, pace, cap, ahead } = state
  if (pace > 0) {
    const deepest = Math.max(DEEPEST_DEBT_BURSTS * cap, cap + FURTHEST_US * pace)
    return { debt: Math.max(0, Math.min((at - nowUs) * pace + rest, deepest)), state }
  }
  const count = at + unit > nowUs ? rest : 0
  return { debt: count, state: { ...state, at: Math.max(at, nowUs - (nowUs % unit)), rest: count, ahead: ahead && at > nowUs } }
}

/** `state`: the columns of steps and the time of the last one. */
function steppedIn(key: string, row: SqlRow | undefined): CasStepped | CasStepRefusal {
  const { done, state } = row ?? {}
  if (done === 'busy') return 'busy'
  if (done === 'other') return { key, swapped: stateOf(row) }
  const [at = 0, rest = 0, unit = 0, pace = 0, cap = 0, ahead = 0, blocked = 0, seen = 0] = String(state).split(' ').map(Number)
  const stored = { at, rest, unit, pace, cap, ahead: ahead === 1, blocked }
  const { debt, state: now } = inForce(stored, seen)
  return { done: Number(done), debt, nowUs: seen, state: now }
}

function outcomeOf(outcomes: readonly (CasStepped | CasStepRefusal)[]): readonly CasStepped[] | CasStepRefusal {
  const refusal = outcomes.find((outcome): outcome is CasStepRefusal => outcome === 'busy' || 'swapped' in outcome)
  return refusal ?? (outcomes as readonly CasStepped[])
}

/** Whether a row was written by a step: it has no value of its own. */
function isStepped({ value }: SqlRow): boolean {
  return value instanceof Uint8Array && value.length === 0
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
