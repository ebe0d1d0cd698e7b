import { StoreError } from '../errors.js'
import type { CallerSignal } from '../shared/backend.js'
import { areSame } from './byte-codec.js'
import type { CasState, CasSwap } from './cas-store.js'
import type { KeySession, Ran } from './key-session.js'
import type { KnownStates } from './known-states.js'
import type { StoreCalls } from './store-calls.js'
import { damaged, decodedValue, encodedValue, NO_VALUE, type StoredValue, wasWritten, writesAfter } from './stored-value.js'
import type { WriteId } from './write-ids.js'

/** Callers that one swap decides for. */
const MOST_TOGETHER = 256
/** Swaps that others may win before a call gives up with `CONTENTION`. */
const MOST_ATTEMPTS = 25
/** After this many, no more callers join: each has a chance to win. */
const LAST_JOIN = 12
/** Swaps in a row that may fail without an answer, while reads find that they were not made. */
const MOST_LOST = 3
/** Reads that may fail after a swap that was lost or not answered. */
const MOST_LOOKS = 3
/** The pause after the second lost swap is up to this long, and doubles with each up to the other. */
const FIRST_PAUSE_MS = 1
const LONGEST_PAUSE_MS = 32
/** Kept beyond the time at which a key is full: for drift, and to look for lost swaps. */
const LEAST_TTL_MS = 10_000

/** Of a key that the store does not have. */
const NO_STATE: CasState = { value: undefined, version: undefined, nowUs: 0 }

/** One call that waits for the state of its key. */
export interface Work {
  readonly signal: CallerSignal | undefined
  /** Makes a key full that cannot be read. */
  readonly isReset: boolean
  /** Makes the change in the session. It may run several times; the last counts. `undo`: what an earlier run charged too early. */
  run(session: KeySession, undo: Ran | undefined): Ran
  /** @param atUs when it was made, by the store's clock; decided at `nowUs`. */
  resolve(ran: Ran, nowUs: number, atUs: number, order: number): void
  reject(error: unknown): void
}

/** What one attempt has decided. */
interface Attempt {
  readonly works: readonly Work[]
  readonly rans: readonly Ran[]
  readonly nowUs: number
  readonly id: WriteId
  /** Write numbers that it found. */
  readonly numbers: readonly number[]
}

/** The calls of one key that wait, and the call to the store that they wait for. */
export interface Waiting {
  readonly works: Work[]
  call: object
}

/** What a lane needs of its backend. */
export interface LaneParts {
  readonly waiting: Waiting
  readonly session: KeySession
  readonly calls: StoreCalls
  readonly known: KnownStates
}

/**
 * The calls of this process for one key, or for the keys of one `allOf`: those that wait decide together on one state and are written by one
 * swap. The state seen last is tried first.
 */
export class KeyLane {
  private readonly parts: LaneParts
  private readonly keys: readonly string[]
  private works: Work[] = []
  /** A value that cannot be read, which a reset replaces. */
  private isUnreadable = false
  private readonly lost: Attempt[] = []
  /** Of the last swaps, those in a row without an answer, and the error of the last. */
  private lostInARow = 0
  private fault: unknown
  private readonly undone = new Map<Work, Ran>()

  constructor(parts: LaneParts, keys: readonly string[]) {
    this.parts = parts
    this.keys = keys
  }

  /** Decides for all that wait; more join before each attempt. Never rejects. */
  async decide(): Promise<void> {
    try {
      await this.attempts()
    } catch (error) {
      this.parts.known.forget(this.keys)
      for (const work of this.works) work.reject(error)
    }
  }

  private async attempts(): Promise<void> {
    const { calls, known, waiting } = this.parts
    let states = known.of(this.keys)
    let areMet = states !== undefined
    const met = (isNew: boolean): void => {
      if (!areMet) known.met(isNew)
      areMet = true
    }
    if (states === undefined && known.areOthersNew) states = this.keys.map(() => NO_STATE)
    let isFresh = false
    for (let lost = 0; lost < MOST_ATTEMPTS; ) {
      if (lost < LAST_JOIN) this.works.push(...waiting.works.splice(0, MOST_TOGETHER - this.works.length))
      this.dropCancelled()
      if (this.works.length === 0) return
      if (states === undefined || calls.now() === undefined) {
        states = await calls.read(this.keys, this.signalOfNext())
        met(states.every(({ version }) => version === undefined))
        isFresh = true
        this.dropCancelled()
        if (this.works.length === 0) return
      }
      if (this.settleLost(states)) continue
      // A store that can be read and not written, such as one whose disk is full.
      if (this.lostInARow === MOST_LOST) throw this.fault
      const { attempt, swaps } = this.attempt(states)
      if (swaps === undefined) {
        if (isFresh) return this.settle(attempt, states)
        states = undefined
        continue
      }
      const outcome = await this.swapped(attempt, swaps)
      if (outcome === undefined) {
        states = await this.look()
        isFresh = true
        lost++
        continue
      }
      met(outcome.swapped)
      states = outcome.states
      isFresh = true
      if (outcome.swapped) {
        this.settle(attempt, states)
        if (this.works.length === 0) return
      }
      lost++
      if (!outcome.swapped && lost > 1) {
        await calls.pause(pauseMs(lost))
        // Others have gone on meanwhile: what the lost swap returned would lose again.
        states = await this.look()
      }
    }
    throw new StoreError('CONTENTION', `other processes changed this key ${MOST_ATTEMPTS} times in a row: call again, or lease`)
  }

  private dropCancelled(): void {
    this.works = this.works.filter((work) => {
      if (work.signal?.aborted !== true) return true
      work.reject(new StoreError('OUTAGE', 'the call was given up before it was sent'))
      return false
    })
  }

  /** Begins a call to the store. The signal of the one caller that it is for; a call for several is made while one of them waits. */
  private signalOfNext(): CallerSignal | undefined {
    this.parts.waiting.call = {}
    return this.works.length === 1 ? this.works[0]?.signal : undefined
  }

  /** Runs all works on the states. `swaps`: undefined when nothing changes. */
  private attempt(states: readonly CasState[]): { readonly attempt: Attempt; readonly swaps: readonly CasSwap[] | undefined } {
    const { session } = this.parts
    this.isUnreadable = false
    const values = this.valuesIn(states)
    const nowUs = this.timeFor(states, values)
    this.load(values, nowUs)
    const rans = this.works.map((work) => work.run(session, this.undone.get(work)))
    const saved = session.save()
    const id = this.parts.session.writes.next()
    const attempt = { works: [...this.works], rans, nowUs, id, numbers: values.map(({ number }) => number) }
    const isSame = saved.every((state, i) => areSame(state, (values[i] as StoredValue).state))
    if (isSame && !this.isUnreadable) return { attempt, swaps: undefined }
    const untilNewUs = session.untilNewUs()
    const swaps = this.keys.map((key, i): CasSwap => {
      const before = values[i] as StoredValue
      const { number, decidedUs } = before
      const value = encodedValue({
        number: number + 1,
        decidedUs: Math.max(decidedUs, nowUs),
        writes: writesAfter(before, id),
        state: saved[i] as Uint8Array,
      })
      return { key, version: states[i]?.version, value, ttlMs: ttlMs(untilNewUs[i] as number) }
    })
    return { attempt, swaps }
  }

  /** @throws {KeyFault} where a value cannot be read, except to resets. */
  private valuesIn(states: readonly CasState[]): readonly StoredValue[] {
    return states.map(({ value }) => {
      try {
        return decodedValue(value)
      } catch (error) {
        return this.anew(error)
      }
    })
  }

  private anew(error: unknown): StoredValue {
    const others = this.works.filter(({ isReset }) => !isReset)
    for (const work of others) work.reject(error)
    this.works = this.works.filter(({ isReset }) => isReset)
    if (this.works.length === 0) throw error
    this.isUnreadable = true
    return NO_VALUE
  }

  private load(values: readonly StoredValue[], nowUs: number): void {
    const { session } = this.parts
    try {
      session.load(
        values.map(({ state }) => state),
        nowUs,
      )
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      this.anew(damaged(error.message))
      session.load(
        values.map(() => NO_VALUE.state),
        nowUs,
      )
    }
  }

  /** The store's time as far as it has surely come; the time of the last decision, which other processes knew, where that may be. */
  private timeFor(states: readonly CasState[], values: readonly StoredValue[]): number {
    const seenUs = Math.max(...states.map((state) => state.nowUs))
    const { nowUs, behindUs } = this.parts.calls.now() ?? { nowUs: seenUs, behindUs: 0 }
    const decidedUs = Math.max(...values.map((value) => value.decidedUs))
    return decidedUs > nowUs && decidedUs - nowUs <= behindUs ? decidedUs : nowUs
  }

  /** Undefined: the answer was lost. */
  private async swapped(
    attempt: Attempt,
    swaps: readonly CasSwap[],
  ): Promise<{ swapped: boolean; states: readonly CasState[] } | undefined> {
    try {
      const outcome = await this.parts.calls.swap(swaps, this.signalOfNext())
      this.lostInARow = 0
      return outcome
    } catch (error) {
      this.lost.push(attempt)
      this.lostInARow++
      this.fault = error
      return undefined
    }
  }

  /** The states of this moment, after a lost answer or a pause. @throws what the last of several reads threw. */
  private async look(): Promise<readonly CasState[]> {
    for (let looks = 1; ; looks++) {
      try {
        this.parts.waiting.call = {}
        return await this.parts.calls.read(this.keys)
      } catch (error) {
        if (looks === MOST_LOOKS) throw error
        await this.parts.calls.pause(pauseMs(looks + 1))
      }
    }
  }

  /** Answers what a swap has decided whose answer was lost. True: some of the works are settled. */
  private settleLost(states: readonly CasState[]): boolean {
    if (this.lost.length === 0) return false
    const values = this.valuesIn(states)
    for (const attempt of this.lost) {
      const written = values.map((value, i) => wasWritten(value, attempt.id, (attempt.numbers[i] as number) + 1))
      if (written.includes(true)) {
        this.lost.length = 0
        this.settle(attempt, states)
        return true
      }
      if (written.includes(undefined)) {
        throw new StoreError(
          'OUTAGE',
          'the answer of the store was lost, and more writers have followed than it remembers: it is unknown whether it was made',
        )
      }
    }
    return false
  }

  /** Answers all works of an attempt that was made; those decided for a window that is over by now decide again. */
  private settle({ works, rans, nowUs, numbers }: Attempt, states: readonly CasState[]): void {
    const { session, known } = this.parts
    known.keep(this.keys, states)
    const atUs = Math.max(nowUs, ...states.map((state) => state.nowUs))
    const order = (Math.max(...numbers) + 1) * (MOST_TOGETHER + 1)
    const settled = new Set<Work>()
    for (const [i, work] of works.entries()) {
      const ran = rans[i] as Ran
      if (ran.held !== undefined && session.isOver(ran.held.booking.atUs, atUs)) {
        this.undone.set(work, ran)
        continue
      }
      settled.add(work)
      work.resolve(ran, nowUs, atUs, order + i)
    }
    this.works = this.works.filter((work) => !settled.has(work))
  }
}

/** Full jitter: anything up to a bound that doubles. */
function pauseMs(lost: number): number {
  return Math.random() * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (lost - 2))
}

function ttlMs(untilNewUs: number): number {
  return Math.ceil((untilNewUs / 1000) * 1.001) + LEAST_TTL_MS
}
