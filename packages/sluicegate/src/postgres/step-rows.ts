import { DEEPEST_DEBT_BURSTS, FURTHEST_US } from '../policy/policy-numbers.js'
import type { CasState, CasStep, CasStepped, CasStepRefusal, CasStepState } from '../store/cas-store.js'
import { decodedValue, NO_VALUE, STEPPED } from '../store/stored-value.js'
import { hexOf } from './hex.js'
import { newVersion } from './new-version.js'
import type { SqlRow } from './sql-runner.js'
import { storedKey } from './stored-key.js'

/** A take or lease of one key by its own row, which may pass as a whole. */
export function isPlain(step: CasStep): boolean {
  const { verb, from, pace, cap } = step
  return (verb === 'take' || verb === 'lease') && from === undefined && needOf(step) + lentUsOf(step) * pace <= cap
}

/** Units that are charged when it passes as a whole. */
export function needOf({ verb, unit, pace, amount, times }: CasStep): number {
  return verb === 'take' ? amount * times : pace === 0 ? amount : amount * unit
}

/** Of a lease of a rate how long the debt lasts at least that it is added to. */
export function lentUsOf({ verb, pace, lent }: CasStep): number {
  return verb === 'lease' && pace > 0 ? lent / pace : 0
}

/** The outcome of a take of which nothing passes by the state that was read. Undefined: something may. */
export function denialIn({ unit, pace, cap, amount }: CasStep, { value, nowUs }: CasState): CasStepped | undefined {
  const { stepped } = value?.[0] === STEPPED ? decodedValue(value) : NO_VALUE
  if (stepped === undefined || stepped.unit !== unit || stepped.pace !== pace || stepped.cap !== cap) return undefined
  const { debt, state } = inForce(stepped, nowUs)
  const isOpen = state.blocked <= nowUs && (pace > 0 || state.at <= nowUs)
  return isOpen && debt + amount <= cap ? undefined : { done: 0, debt, nowUs, state }
}

/** The outcome of a take that passed as a whole. */
export function takenIn({ verb, unit, pace, cap, amount, times }: CasStep, { taken }: SqlRow): CasStepped {
  const [at = 0, rest = 0, nowUs = 0] = String(taken).split(' ').map(Number)
  const debt = pace === 0 ? rest : Math.max(0, at - nowUs) * pace + rest
  return { done: verb === 'take' ? times : amount, debt, nowUs, state: { at, rest, unit, pace, cap, ahead: false, blocked: 0 } }
}

export function keyLists(steps: readonly CasStep[]): readonly string[] {
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

export function stepLists(steps: readonly CasStep[]): readonly string[] {
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
export function steppedIn(key: string, row: SqlRow | undefined): CasStepped | CasStepRefusal {
  const { done, state } = row ?? {}
  if (done === 'busy') return 'busy'
  if (done === 'other') return { key, swapped: stateOf(row) }
  const [at = 0, rest = 0, unit = 0, pace = 0, cap = 0, ahead = 0, blocked = 0, seen = 0] = String(state).split(' ').map(Number)
  const stored = { at, rest, unit, pace, cap, ahead: ahead === 1, blocked }
  const { debt, state: now } = inForce(stored, seen)
  return { done: Number(done), debt, nowUs: seen, state: now }
}

export function outcomeOf(outcomes: readonly (CasStepped | CasStepRefusal)[]): readonly CasStepped[] | CasStepRefusal {
  const refusal = outcomes.find((outcome): outcome is CasStepRefusal => outcome === 'busy' || 'swapped' in outcome)
  return refusal ?? (outcomes as readonly CasStepped[])
}

/** Whether a row was written by a step: it has no value of its own. */
export function isStepped({ value }: SqlRow): boolean {
  return value instanceof Uint8Array && value.length === 0
}

export function stateOf(row: SqlRow | undefined): CasState {
  const { version, value, now } = row ?? {}
  const isThere = typeof version === 'string' && value instanceof Uint8Array
  return { value: isThere ? value : undefined, version: isThere ? version : undefined, nowUs: Number(now) }
}
