import { BoundedMap } from '../bounded-map.js'
import { StoreError } from '../errors.js'
import type { CallerSignal } from '../shared/backend.js'
import type { CasStep, CasStepped, CasStepRefusal } from './cas-store.js'
import type { TimedStore } from './timed-store.js'

/** Statements under way at once; of keys that others keep locked, each alone, these beside them. */
const MOST_UNDER_WAY = 4
const MOST_ALONE = 2
/** Steps of one call, and different keys of one whose groups share keys. */
const MOST_STEPS = 256
const MOST_SHARED_KEYS = 64
/** Equal takes that are one step. */
const MOST_TIMES = 256
/** Calls that wait at all. */
const MOST_WAITING = 50_000
/** Of those that wait, so many are looked at to find what can go together. */
const MOST_SEEN = 2000
/** A key counts as locked for so long after a call has found it so; of more keys the oldest are forgotten. */
const LOCKED_MS = 1_000
const MOST_LOCKED = 1_000

/** That of the start: the fake timers of a test do not hold up calls. Not every runtime has it. */
const { setImmediate: atTurnsEnd } = globalThis as { readonly setImmediate?: (call: () => void) => unknown }

/** What came of the steps of one caller: of a take `index` is its place among the equal ones that went with it. */
export interface StepOutcome {
  readonly steps: readonly CasStepped[]
  readonly index: number
}

interface Caller {
  readonly signal: CallerSignal | undefined
  resolve(outcome: StepOutcome | undefined): void
  reject(error: unknown): void
}

/** Turns the value that a key has into the state from which a step starts. */
export type StateOf = (step: CasStep, refusal: Exclude<CasStepRefusal, 'busy'>) => CasStep['from']

/** Equal calls, which are one step. */
class Asked {
  steps: readonly CasStep[]
  readonly stateOf: StateOf
  readonly callers: Caller[] = []
  /** The newest call to the store that its callers wait for. */
  call: object = {}
  locked: { readonly atMs: number; readonly keys: readonly string[] } | undefined
  /** Others were faster, or keep a key locked: it goes alone. */
  isAlone = false
  /** Of a take: what it takes. */
  readonly name: string | undefined

  constructor(name: string | undefined, steps: readonly CasStep[], stateOf: StateOf) {
    this.name = name
    this.steps = steps
    this.stateOf = stateOf
  }

  get isShared(): boolean {
    return this.steps.length > 1 && this.steps[0]?.verb === 'take'
  }
}

/**
 * Steps of one store: those that come in one turn of the event loop, or while others are under way, go together. Equal takes are one step, each
 * key is in one call of this process at a time, and takes of several keys that share one of them go in one call.
 */
export class StepsTogether {
  private readonly calls: TimedStore
  private waiting: Asked[] = []
  private count = 0
  /** Takes that wait, by what they take. */
  private readonly equal = new Map<string, Asked>()
  private readonly busy = new Set<string>()
  /** Keys that others keep locked: until when each counts as such. */
  private readonly lockedUntilMs = new BoundedMap<string, number>(MOST_LOCKED)
  private underWay = 0
  private alone = 0
  private isPlanned = false
  /** Of the last calls one had several callers. */
  private isCrowd = false

  constructor(calls: TimedStore) {
    this.calls = calls
  }

  /** Resolves to undefined where the store cannot make steps now. */
  ask(steps: readonly CasStep[], stateOf: StateOf, signal: CallerSignal | undefined): Promise<StepOutcome | undefined> {
    return new Promise((resolve, reject) => {
      if (this.count >= MOST_WAITING) {
        reject(new StoreError('CONTENTION', `${MOST_WAITING} calls of this process wait for the store already`))
        return
      }
      this.count++
      const asked = this.askedOf(steps, stateOf)
      if (signal !== undefined) signal.partOf = asked
      asked.callers.push({ signal, resolve, reject })
      this.plan()
    })
  }

  private askedOf(steps: readonly CasStep[], stateOf: StateOf): Asked {
    const name = steps[0]?.verb === 'take' ? nameOf(steps) : undefined
    const equal = name === undefined ? undefined : this.equal.get(name)
    if (equal !== undefined && equal.callers.length < MOST_TIMES) return equal
    const asked = new Asked(name, steps, stateOf)
    if (name !== undefined) this.equal.set(name, asked)
    this.waiting.push(asked)
    return asked
  }

  /**
   * After the other calls of this turn. Where there are several callers, those who were answered together ask again within the turn, each after
   * some microtasks; a caller that is the only one need not wait for its end.
   */
  private plan(): void {
    if (this.isPlanned || this.waiting.length === 0) return
    this.isPlanned = true
    const send = (): void => {
      this.isPlanned = false
      while (this.underWay < MOST_UNDER_WAY && this.sent(this.next(false), false)) {}
      while (this.alone < MOST_ALONE && this.sent(this.next(true), true)) {}
    }
    if (this.isCrowd && atTurnsEnd !== undefined) atTurnsEnd(send)
    // Quicker than `queueMicrotask`.
    else void Promise.resolve().then(send)
  }

  /** The first that can go together: their keys are in no call, nor needed by one that came before. */
  private next(isAlone: boolean): readonly Asked[] {
    const next: Asked[] = []
    const left: Asked[] = []
    const mine = new Map<string, CasStep>()
    const needed = new Set<string>()
    let seen = 0
    let steps = 0
    for (const asked of this.waiting) {
      if (seen++ < MOST_SEEN && this.isUnwanted(asked)) continue
      const first = next[0]
      const fits =
        seen <= MOST_SEEN &&
        this.goesAlone(asked) === isAlone &&
        (first === undefined || (!isAlone && first.isShared === asked.isShared)) &&
        steps + asked.steps.length <= MOST_STEPS &&
        asked.steps.every(
          (step) => !needed.has(step.key) && !this.busy.has(step.key) && fitsWith(step, mine.get(step.key), asked.isShared),
        ) &&
        (!asked.isShared || first === undefined || mine.size + asked.steps.length <= MOST_SHARED_KEYS)
      if (!fits) {
        left.push(asked)
        for (const { key } of asked.steps) needed.add(key)
        continue
      }
      next.push(asked)
      steps += asked.steps.length
      for (const step of asked.steps) mine.set(step.key, step)
    }
    this.waiting = left
    return next
  }

  private goesAlone(asked: Asked): boolean {
    if (asked.isAlone || this.lockedUntilMs.size === 0) return asked.isAlone
    const nowMs = this.calls.nowMs()
    return asked.steps.some(({ key }) => (this.lockedUntilMs.get(key) ?? 0) > nowMs)
  }

  /** Drops the callers that have given up. */
  private isUnwanted(asked: Asked): boolean {
    const { callers } = asked
    for (let i = callers.length - 1; i >= 0; i--) {
      const caller = callers[i] as Caller
      if (caller.signal?.aborted !== true) continue
      callers.splice(i, 1)
      this.count--
      caller.reject(new StoreError('OUTAGE', 'the call was given up before it was sent'))
    }
    if (callers.length > 0) return false
    this.forgetEqual(asked)
    return true
  }

  private forgetEqual(asked: Asked): void {
    const { name } = asked
    if (name !== undefined && this.equal.get(name) === asked) this.equal.delete(name)
  }

  private sent(next: readonly Asked[], isAlone: boolean): boolean {
    if (next.length === 0) return false
    void this.send(next, isAlone)
    return true
  }

  private async send(next: readonly Asked[], isAlone: boolean): Promise<void> {
    const call = {}
    const keys = new Set<string>()
    for (const asked of next) {
      asked.call = call
      this.forgetEqual(asked)
      for (const { key } of asked.steps) keys.add(key)
    }
    for (const key of keys) this.busy.add(key)
    if (isAlone) this.alone++
    else this.underWay++
    try {
      const groups = next.map(({ steps, callers }) =>
        steps.map((step) => (step.verb === 'take' ? { ...step, times: callers.length } : step)),
      )
      const [only] = next
      this.isCrowd = this.underWay > 1 || next.length > 1 || (only?.callers.length ?? 0) > 1
      const signal = next.length === 1 && only?.callers.length === 1 ? only.callers[0]?.signal : undefined
      const outcomes = await this.calls.step(groups, signal)
      for (const [i, asked] of next.entries()) this.ended(asked, outcomes?.[i], isAlone)
    } catch (error) {
      for (const asked of next) this.settle(asked, (caller) => caller.reject(error))
    } finally {
      for (const key of keys) this.busy.delete(key)
      if (isAlone) this.alone--
      else this.underWay--
      this.plan()
    }
  }

  private ended(asked: Asked, outcome: readonly CasStepped[] | CasStepRefusal | undefined, isAlone: boolean): void {
    if (outcome === undefined) {
      this.settle(asked, (caller) => caller.resolve(undefined))
      return
    }
    if (outcome === 'busy') {
      // Locked by others for longer than a call waits: what else takes this key goes alone too, until one of them is answered.
      const atMs = this.calls.nowMs()
      if (isAlone) for (const { key } of asked.steps) this.lockedUntilMs.set(key, atMs + LOCKED_MS)
      asked.isAlone = true
      asked.locked = { atMs, keys: asked.steps.map(({ key }) => key) }
      this.waiting.unshift(asked)
      return
    }
    if (isAlone) for (const { key } of asked.steps) this.lockedUntilMs.delete(key)
    if ('swapped' in outcome) {
      try {
        asked.steps = asked.steps.map((step) => ({ ...step, from: asked.stateOf(step, outcome) ?? step.from }))
        this.waiting.unshift(asked)
      } catch (error) {
        this.settle(asked, (caller) => caller.reject(error))
      }
      return
    }
    this.settle(asked, (caller, index) => caller.resolve({ steps: outcome as readonly CasStepped[], index }))
  }

  private settle(asked: Asked, end: (caller: Caller, index: number) => void): void {
    this.count -= asked.callers.length
    for (const [index, caller] of asked.callers.entries()) end(caller, index)
  }
}

/** Takes of one call may share a key, under the same numbers. */
function fitsWith(step: CasStep, other: CasStep | undefined, isShared: boolean): boolean {
  if (other === undefined) return true
  return isShared && step.unit === other.unit && step.pace === other.pace && step.cap === other.cap && step.from === other.from
}

function nameOf(steps: readonly CasStep[]): string {
  let name = ''
  for (const { key, amount, unit, pace, cap } of steps) name += `${key} ${amount} ${unit} ${pace} ${cap} `
  return name
}
