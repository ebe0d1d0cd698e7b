import type { CancelSignal } from '../shared/backend.js'
import { Deadlines, Expiring } from '../shared/calls/deadlines.js'
import { type Clock, tickerOf } from '../time/clock.js'
import { CallsTogether } from './calls-together.js'
import type { CasOutcome, CasOutcomes, CasState, CasStep, CasStepped, CasStepRefusal, CasStore, CasSwap } from './cas-store.js'
import { StoreTime } from './store-time.js'

/** A store each of whose calls is bounded in time; each answer tells its clock. */
export class TimedStore {
  readonly store: CasStore
  private readonly time: StoreTime
  private readonly clock: Clock
  readonly longestMs: number
  private readonly deadlines: Deadlines
  /** Of a store that makes many steps in one call. */
  private readonly reads: CallsTogether<string, CasState> | undefined
  private readonly swaps: CallsTogether<CasSwap, CasOutcome> | undefined

  /** @param longestMs after which an answer counts as lost. */
  constructor(store: CasStore, clock: Clock, longestMs: number, drift?: number) {
    this.store = store
    this.clock = clock
    this.longestMs = longestMs
    this.deadlines = new Deadlines(clock, longestMs, () => (store.connectionsOpened === undefined ? 0 : store.connectionsOpened()))
    this.time = new StoreTime(tickerOf(clock), drift)
    if (store.swapMany === undefined || store.readAll === undefined) return
    this.reads = new CallsTogether(
      (keys, signal) => this.readNow(keys, signal),
      (key) => key,
    )
    this.swaps = new CallsTogether(
      (swaps, signal) => this.swapNow(swaps, signal),
      ({ key }) => key,
    )
  }

  /** This process's clock. */
  nowMs(): number {
    return this.clock.nowMs()
  }

  /** The store's clock as far as it is known. */
  now(): ReturnType<StoreTime['now']> {
    return this.time.now()
  }

  async read(keys: readonly string[], signal?: CancelSignal): Promise<readonly CasState[]> {
    const [only = ''] = keys
    if (keys.length === 1 && this.reads !== undefined) return [await this.reads.ask(only, signal)]
    return this.readNow(keys, signal)
  }

  /** All or none. */
  async swap(swaps: readonly CasSwap[], signal?: CancelSignal): Promise<CasOutcomes> {
    const { store } = this
    if (swaps.length > 1) {
      const sentUs = this.time.sent()
      const outcome = await this.within(store.swapAll?.(swaps, signal) ?? Promise.reject(new Error('has no swapAll()')))
      return { swapped: outcome.swapped === true, states: this.noted(outcome.states, swaps.length, sentUs) }
    }
    const [only] = swaps as readonly [CasSwap]
    const { swapped, state } = await (this.swaps?.ask(only, signal) ?? this.swapNow(swaps, signal).then(([first]) => first as CasOutcome))
    return { swapped: swapped === true, states: [state] }
  }

  /** Undefined: the store makes no steps now. */
  async step(
    groups: readonly (readonly CasStep[])[],
    signal: CancelSignal | undefined,
  ): Promise<readonly (readonly CasStepped[] | CasStepRefusal)[] | undefined> {
    const outcomes = await this.within(this.store.step?.(groups, signal) ?? Promise.resolve(undefined))
    if (outcomes !== undefined && outcomes.length !== groups.length) {
      throw new Error(`answered with ${outcomes.length} outcomes for ${groups.length} steps`)
    }
    return outcomes
  }

  private readNow(keys: readonly string[], signal: CancelSignal | undefined): Promise<readonly CasState[]> {
    const { store } = this
    const asked = (): Promise<readonly CasState[]> =>
      keys.length === 1
        ? store.read(keys[0] as string, signal).then((state) => [state])
        : (store.readAll?.(keys, signal) ?? Promise.all(keys.map((key) => store.read(key, signal))))
    return this.timed(asked, keys.length, (state) => state)
  }

  /** Each for itself. */
  private swapNow(swaps: readonly CasSwap[], signal: CancelSignal | undefined): Promise<readonly CasOutcome[]> {
    const { store } = this
    const asked = (): Promise<readonly CasOutcome[]> =>
      swaps.length === 1
        ? store.swap(swaps[0] as CasSwap, signal).then((outcome) => [outcome])
        : (store.swapMany?.(swaps, signal) ?? Promise.reject(new Error('has no swapMany()')))
    return this.timed(asked, swaps.length, ({ state }) => state)
  }

  private async timed<Answer>(
    ask: () => Promise<readonly Answer[]>,
    count: number,
    stateOf: (answer: Answer) => CasState,
  ): Promise<readonly Answer[]> {
    const sentUs = this.time.sent()
    const answers = await this.within(ask())
    this.noted(answers.map(stateOf), count, sentUs)
    return answers
  }

  /** Resolves after `ms` on the limiter's clock. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve))
  }

  private noted(states: readonly CasState[], count: number, sentUs: number): readonly CasState[] {
    if (states.length !== count) throw new Error(`answered with ${states.length} states for ${count} keys`)
    for (const { nowUs } of states)
      if (!Number.isSafeInteger(nowUs) || nowUs < 0) throw new Error('answered without its time in microseconds')
    const latestUs = Math.max(...states.map(({ nowUs }) => nowUs))
    this.time.note(latestUs, sentUs)
    return states
  }

  private within<Value>(answer: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      const call = new LongestCall(this.longestMs, reject)
      this.deadlines.add(call)
      answer.then(
        (value) => {
          if (call.isOver) return
          this.deadlines.remove(call)
          resolve(value)
        },
        (error: unknown) => {
          if (call.isOver) return
          this.deadlines.remove(call)
          reject(error)
        },
      )
    })
  }

  private after(ms: number, call: () => void): () => void {
    if (this.clock.after !== undefined) return this.clock.after(ms, call)
    const timer = setTimeout(call, ms)
    return () => clearTimeout(timer)
  }
}

/** A call without an answer: it counts as lost after so long. */
class LongestCall extends Expiring {
  isOver = false
  private readonly longestMs: number
  private readonly reject: (error: unknown) => void

  constructor(longestMs: number, reject: (error: unknown) => void) {
    super()
    this.longestMs = longestMs
    this.reject = reject
  }

  override expire(): void {
    this.isOver = true
    this.reject(new Error(`no answer within ${this.longestMs} ms`))
  }
}
