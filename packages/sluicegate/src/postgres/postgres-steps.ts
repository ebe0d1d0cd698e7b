import type { CancelSignal } from '../shared/backend.js'
import type { CasState, CasStep, CasStepped, CasStepRefusal } from '../store/cas-store.js'
import { hexOf } from './hex.js'
import { newVersion } from './new-version.js'
import { RecentKeys } from './recent-keys.js'
import type { SqlRow } from './sql-runner.js'
import { denialIn, isPlain, keyLists, lentUsOf, needOf, outcomeOf, stepLists, steppedIn, takenIn } from './step-rows.js'
import { storedKey } from './stored-key.js'
import type { TableStatements } from './table-statements.js'

/** Steps that the server computes: takes that may pass as a whole by short statements, the others by one that tells all. */
export class PostgresSteps {
  readonly #table: TableStatements
  /** A take was denied: the next one reads, which locks nothing, before it tries. */
  readonly #denied = new RecentKeys()

  constructor(table: TableStatements) {
    this.#table = table
  }

  async step(
    groups: readonly (readonly CasStep[])[],
    signal?: CancelSignal,
  ): Promise<readonly (readonly CasStepped[] | CasStepRefusal)[] | undefined> {
    if (!this.#table.mayStep()) return undefined
    const only = groups.length === 1 && groups[0]?.length === 1 ? groups[0][0] : undefined
    if (only !== undefined && isPlain(only) && !this.#denied.has(only.key)) {
      const rows = await this.#rowsOfTake(only, signal)
      if (rows === undefined) return undefined
      if (rows === 'busy') return ['busy']
      const [row] = rows
      if (row !== undefined) {
        this.#table.sweeper.swapped()
        return [[takenIn(only, row)]]
      }
      this.#denied.note(only.key)
    }
    const groupsOf = (kind: GroupKind): (readonly CasStep[])[] => groups.filter((group) => kindOf(group) === kind)
    const [together, whole, others] = [groupsOf('takes'), groupsOf('changes'), groupsOf('each')]
    const [taken, changed, stepped] = await Promise.all([
      together.length === 0 ? [] : this.#takeAll(together, signal),
      Promise.all(whole.map((group) => this.#stepAll(group, signal))),
      others.length === 0 ? [] : this.#stepEach(others, signal),
    ])
    if (taken === undefined || changed.includes(undefined) || stepped === undefined) return undefined
    const left = { takes: taken.values(), changes: changed.values(), each: stepped.values() }
    return groups.map((group) => left[kindOf(group)].next().value as readonly CasStepped[] | CasStepRefusal)
  }

  /** A change of several keys: where one holds a swapped value, none is made, as the whole comes again. */
  async #stepAll(steps: readonly CasStep[], signal: CancelSignal | undefined): Promise<readonly CasStepped[] | CasStepRefusal | undefined> {
    const rows = await this.#table.stepped('stepAll', [...keyLists(steps), ...stepLists(steps)], signal)
    if (rows === undefined || rows === 'busy') return rows
    this.#table.sweeper.swapped(steps.length)
    return outcomeOf(rows.map((row, i) => steppedIn((steps[i] as CasStep).key, row)))
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
    this.#table.sweeper.swapped(steps.length)
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
    let rows = isLocked ? 'busy' : await this.#table.stepped('stepMany', values, signal)
    // One key that others keep locked does not hold up the rest: what is free is done, without waiting.
    if (rows === 'busy' && (isLocked || chosen.length > 1)) rows = await this.#table.stepped('stepFree', values, signal)
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
    if (pace === 0) return this.#table.stepped('takeWindow', values, signal)
    values.push(`${lentUsOf(take)}`)
    return this.#table.stepped('takeRate', values, signal)
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
    const rows = await this.#table.stepped(isWindow ? 'takeWindows' : 'takeRates', lists, signal)
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
    const states = await this.#table.read(keys, signal)
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
    const rows = await this.#table.stepped('takeAll', values, signal)
    if (rows === undefined) return undefined
    if (rows === 'busy') return groups.map(() => 'busy')
    this.#table.sweeper.swapped(keys.length)
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
}

/** How the steps of a group go: takes of several keys, which share a statement with others; changes of several keys; or each step for itself. */
type GroupKind = 'takes' | 'changes' | 'each'

function kindOf(group: readonly CasStep[]): GroupKind {
  const [{ verb } = {}] = group
  if (group.length === 1 || verb === 'peek') return 'each'
  return verb === 'take' ? 'takes' : 'changes'
}

function placesOf(steps: readonly CasStep[], isChosen: (step: CasStep, i: number) => boolean): readonly number[] {
  const places: number[] = []
  for (const [i, step] of steps.entries()) if (isChosen(step, i)) places.push(i)
  return places
}
