import { StoreError } from '../errors.js'
import { areSame } from '../memory/byte-codec.js'
import type { CallerSignal } from '../shared/backend.js'
import type { CasState, CasSwap } from './cas-store.js'
import type { KeySession, SessionResult } from './key-session.js'
import type { KnownStates } from './known-states.js'
import { damaged, decodedValue, encodedValue, NO_VALUE, type StoredValue, wasWritten, writesAfter } from './stored-value.js'
import type { TimedStore } from './timed-store.js'
import type { WriteId, WriteIds } from './write-ids.js'
import type { SwapEnd, WriterTurns } from './writer-turns.js'

/** Callers that one swap decides for. */
const MOST_TOGETHER = 256
/** Keys that one swap of several changes. */
const MOST_KEYS = 32
/** Swaps that others may win before calls without a time limit of their own give up with `CONTENTION`. */
const MOST_ATTEMPTS = 25
/** After this many lost swaps, no more callers join: what waits in the lane must not grow until it cannot win. */
const LAST_JOIN = 12
/** Swaps in a row that may fail without an answer, while reads find that they were not made. */
const MOST_LOST = 3
/** Reads that may fail after a swap that was not answered. */
const MOST_LOOKS = 3
/** The pause before the second look is up to this long. */
const LOOK_PAUSE_MS = 2
/** The pause after a swap that was not made although its versions fit. */
const LOCK_PAUSE_MS = 20
/** Kept beyond the time at which a key is full: for drift, and to look for lost swaps. */
const LEAST_TTL_MS = 10_000

/** Of a key that the store does not have. */
const NO_STATE: CasState = { value: undefined, version: undefined, nowUs: 0 }

/** One call that waits for the states of its keys. */
export interface Work {
  readonly keys: readonly string[]
  /** Decides for it. */
  readonly session: KeySession
  readonly signal: CallerSignal | undefined
  /** Makes a key full that cannot be read. */
  readonly isReset: boolean
  readonly isLease: boolean
  /** Makes the change in the session. It may run several times; the last counts. `undo`: what an earlier run charged too early. */
  run(session: KeySession, undo: SessionResult | undefined): SessionResult
  /** @param atUs when it was made, by the store's clock; decided at `nowUs`. */
  resolve(result: SessionResult, nowUs: number, atUs: number, order: number): void
  reject(error: unknown): void
}

/** What one attempt has decided. */
interface Attempt {
  readonly works: readonly Work[]
  readonly results: readonly SessionResult[]
  readonly nowUs: number
  readonly id: WriteId
  readonly keys: readonly string[]
  /** The values that it found, and their versions. */
  readonly before: ReadonlyMap<string, StoredValue>
  readonly versions: readonly CasState['version'][]
}

/** What lanes have in common. */
export interface LaneParts {
  readonly calls: TimedStore
  readonly known: KnownStates
  readonly turns: WriterTurns
  /** One key is written by one lane at a time. */
  readonly writes: WriteIds
  /** No call of the lane needs the key any more. */
  readonly release: (key: string, lane: KeyLane) => void
}

/**
 * Calls of this process whose keys are connected, such as those of all users of one tenant: those that wait decide one after another on the
 * same states and are written by one swap. The states seen last are tried first.
 */
export class KeyLane {
  /** The newest call to the store that its callers wait for. */
  call = {}
  overtakenMs: number | undefined
  locked: { readonly atMs: number; readonly keys: readonly string[] } | undefined
  /** A call waits for this lane to end: no other joins. */
  isClosed = false
  /** Keys of this lane that nobody else may have before it ends, as it is closed. */
  readonly claims: string[] = []
  private readonly parts: LaneParts
  private readonly waiting: Work[] = []
  private works: Work[] = []
  /** Works of each key. */
  private readonly uses = new Map<string, number>()
  private readonly states = new Map<string, CasState>()
  /** Keys whose states the store has told since the last of their calls joined. */
  private readonly fresh = new Set<string>()
  /** Keys that are taken for new without a look. */
  private readonly guessed = new Set<string>()
  /** Keys with values that cannot be read, which resets replace. */
  private readonly unreadable = new Set<string>()
  private readonly lost: Attempt[] = []
  /** Of the last swaps, those in a row without an answer, and the error of the last. */
  private lostInARow = 0
  private fault: unknown
  private readonly undone = new Map<Work, SessionResult>()

  constructor(parts: LaneParts) {
    this.parts = parts
  }

  get count(): number {
    return this.waiting.length + this.works.length
  }

  add(work: Work): void {
    for (const key of work.keys) this.uses.set(key, (this.uses.get(key) ?? 0) + 1)
    if (work.signal !== undefined) work.signal.partOf = this
    this.waiting.push(work)
  }

  /** Decides until no call waits. The calls of one turn of the event loop decide together. Never rejects. */
  async run(): Promise<void> {
    await undefined
    while (this.waiting.length > 0) {
      try {
        await this.attempts()
      } catch (error) {
        this.parts.known.forget(this.uses.keys())
        for (const work of this.works) this.rejected(work, error)
        this.works = []
      }
      this.lost.length = 0
      this.lostInARow = 0
    }
  }

  private async attempts(): Promise<void> {
    const { calls, turns } = this.parts
    let mustLook = false
    for (let lost = 0; ; ) {
      const pauseMs = this.works.length === 0 ? turns.pauseMs(this.waiting[0]?.keys ?? []) : 0
      if (pauseMs > 0) await calls.pause(pauseMs)
      this.join(lost)
      this.dropCancelled(lost)
      if (this.works.length === 0) return
      const keys = this.keys()
      const missing = calls.now() === undefined ? keys : this.missing(keys, mustLook)
      if (missing.length > 0) {
        await this.read(missing, this.signalOfNext())
        this.dropCancelled(lost)
        if (this.works.length === 0) return
      }
      mustLook = false
      if (this.settleLost()) continue
      // A store that can be read and not written, such as one whose disk is full.
      if (this.lostInARow === MOST_LOST) throw this.fault
      const decided = this.attempt()
      if (decided === undefined) continue
      const { attempt, swaps } = decided
      if (swaps === undefined) {
        const stale = attempt.keys.filter((key) => !this.fresh.has(key))
        if (stale.length === 0) this.settle(attempt)
        for (const key of stale) this.states.delete(key)
        mustLook = true
        continue
      }
      const sentMs = calls.nowMs()
      const { versions } = attempt
      const outcome = await this.swapped(attempt, swaps)
      if (outcome === undefined) {
        await this.look(attempt.keys)
        lost++
        continue
      }
      this.note(attempt.keys, outcome.states)
      lost = outcome.swapped ? 0 : lost + 1
      turns.swapped(attempt.keys, endOf(attempt, outcome.swapped, calls.nowMs() - sentMs))
      if (outcome.swapped) this.settle(attempt)
      // Nobody has written: somebody keeps a lock.
      else if (outcome.states.every(({ version }, i) => version === versions[i])) {
        this.locked = { atMs: calls.nowMs(), keys: attempt.keys }
        await calls.pause(LOCK_PAUSE_MS * (0.5 + Math.random()))
      } else this.overtakenMs = calls.nowMs()
    }
  }

  private join(lost: number): void {
    if (lost >= LAST_JOIN) return
    const keys = new Set(this.keys())
    while (this.waiting.length > 0 && this.works.length < MOST_TOGETHER) {
      const next = this.waiting[0] as Work
      const more = next.keys.filter((key) => !keys.has(key))
      if (keys.size > 0 && keys.size + more.length > MOST_KEYS) return
      for (const key of more) keys.add(key)
      // What was told before it came may be older than what it has seen.
      for (const key of next.keys) this.fresh.delete(key)
      this.works.push(next)
      this.waiting.shift()
    }
  }

  private dropCancelled(lost: number): void {
    this.works = this.works.filter((work) => {
      if (work.signal?.aborted === true) {
        this.rejected(work, new StoreError('OUTAGE', 'the call was given up before it was sent'))
        return false
      }
      if (work.signal === undefined && lost >= MOST_ATTEMPTS) {
        this.rejected(work, new StoreError('CONTENTION', `other processes changed this key ${MOST_ATTEMPTS} times in a row`))
        return false
      }
      return true
    })
  }

  private rejected(work: Work, error: unknown): void {
    work.reject(error)
    this.ended(work)
  }

  private ended(work: Work): void {
    this.undone.delete(work)
    for (const key of work.keys) {
      const uses = (this.uses.get(key) ?? 1) - 1
      if (uses > 0) this.uses.set(key, uses)
      else {
        this.uses.delete(key)
        this.states.delete(key)
        this.fresh.delete(key)
        this.guessed.delete(key)
        this.parts.release(key, this)
      }
    }
  }

  /** Of the works at hand, each once. */
  private keys(): readonly string[] {
    const [only] = this.works
    if (this.works.length === 1 && only !== undefined) return only.keys
    const keys = new Set<string>()
    for (const work of this.works) for (const key of work.keys) keys.add(key)
    return [...keys]
  }

  /** Keys that have to be read first. */
  private missing(keys: readonly string[], mustLook: boolean): readonly string[] {
    const { known } = this.parts
    const missing: string[] = []
    for (const key of keys) {
      if (this.states.has(key)) continue
      const state = mustLook ? undefined : known.of(key)
      if (state !== undefined) this.states.set(key, state)
      else if (known.areOthersNew && !mustLook) {
        this.states.set(key, NO_STATE)
        this.guessed.add(key)
      } else {
        this.guessed.add(key)
        missing.push(key)
      }
    }
    return missing
  }

  private note(keys: readonly string[], states: readonly CasState[]): void {
    for (const [i, key] of keys.entries()) {
      this.states.set(key, states[i] as CasState)
      this.fresh.add(key)
    }
  }

  private async read(keys: readonly string[], signal: CallerSignal | undefined): Promise<void> {
    const states = await this.parts.calls.read(keys, signal)
    this.note(keys, states)
    for (const key of keys) if (this.guessed.delete(key)) this.parts.known.met(this.states.get(key)?.version === undefined)
  }

  /** Begins a call to the store. The signal of the one caller that it is for; a call for several is made while one of them waits. */
  private signalOfNext(): CallerSignal | undefined {
    this.call = {}
    return this.works.length === 1 ? this.works[0]?.signal : undefined
  }

  /**
   * Runs all works on the states, one after another. `swaps`: undefined when nothing changes. Undefined: some of the works were rejected, as a
   * value of their keys cannot be read.
   */
  private attempt(): { readonly attempt: Attempt; readonly swaps: readonly CasSwap[] | undefined } | undefined {
    const before = this.values()
    if (before === undefined) return undefined
    const keys = this.keys()
    const nowUs = this.timeFor(keys, before)
    const after = new Map<string, { readonly state: Uint8Array; readonly untilNewUs: number }>()
    const results: SessionResult[] = []
    let from = 0
    while (from < this.works.length) {
      // Works of the same keys that follow on one another decide in one go.
      const first = this.works[from] as Work
      let to = from + 1
      while (to < this.works.length && isAlike(first, this.works[to] as Work)) to++
      if (!this.decide(from, to, before, after, nowUs, results)) return undefined
      from = to
    }
    const id = this.parts.writes.next()
    const versions = keys.map((key) => this.states.get(key)?.version)
    const attempt = { works: [...this.works], results, nowUs, id, keys, before, versions }
    const isSame = keys.every((key) => areSame((after.get(key) as { state: Uint8Array }).state, (before.get(key) as StoredValue).state))
    if (isSame && keys.every((key) => !this.unreadable.has(key))) return { attempt, swaps: undefined }
    const swaps = keys.map((key, i): CasSwap => {
      const was = before.get(key) as StoredValue
      const { state, untilNewUs } = after.get(key) as { state: Uint8Array; untilNewUs: number }
      const value = encodedValue({
        number: was.number + 1,
        decidedUs: areSame(state, was.state) ? was.decidedUs : Math.max(was.decidedUs, nowUs),
        writes: writesAfter(was, id),
        state,
      })
      return { key, version: versions[i], value, ttlMs: ttlMs(untilNewUs) }
    })
    return { attempt, swaps }
  }

  private decide(
    from: number,
    to: number,
    before: Map<string, StoredValue>,
    after: Map<string, { readonly state: Uint8Array; readonly untilNewUs: number }>,
    nowUs: number,
    results: SessionResult[],
  ): boolean {
    const { keys, session } = this.works[from] as Work
    const states = keys.map((key) => {
      const was = before.get(key) as StoredValue
      return after.get(key)?.state ?? was.stepped ?? was.state
    })
    try {
      const writtenUs = keys.map((key) => (after.has(key) ? nowUs : (before.get(key) as StoredValue).decidedUs))
      session.load(states, nowUs, writtenUs)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      // Which of several keys it is cannot be known: none of them is decided for.
      for (const key of keys) this.unreadable.add(key)
      if (this.dropUnreadable(new Set(keys), damaged(error.message))) return false
      session.load(
        states.map(() => NO_VALUE.state),
        nowUs,
      )
    }
    if (states.some((state) => !(state instanceof Uint8Array))) {
      // What changes nothing swaps nothing: it would make a key one of these numbers, and forgive what was spent beyond them.
      const same = session.save()
      for (const [i, key] of keys.entries()) {
        const was = before.get(key) as StoredValue
        if (!after.has(key)) before.set(key, { ...was, state: same[i] as Uint8Array })
      }
    }
    for (let i = from; i < to; i++) {
      const work = this.works[i] as Work
      results.push(work.run(session, this.undone.get(work)))
    }
    const saved = session.save()
    const untilNewUs = session.untilNewUs()
    for (const [i, key] of keys.entries()) after.set(key, { state: saved[i] as Uint8Array, untilNewUs: untilNewUs[i] as number })
    return true
  }

  /** The values of all keys, decoded. Undefined: works of keys that cannot be read were rejected. */
  private values(): Map<string, StoredValue> | undefined {
    this.unreadable.clear()
    const values = new Map<string, StoredValue>()
    let areFewer = false
    for (const key of this.keys()) {
      try {
        values.set(key, decodedValue(this.states.get(key)?.value))
      } catch (error) {
        this.unreadable.add(key)
        if (this.dropUnreadable(new Set([key]), error)) areFewer = true
        values.set(key, NO_VALUE)
      }
    }
    return areFewer ? undefined : values
  }

  /** Rejects the works of these keys, except resets. @returns whether there were any. */
  private dropUnreadable(keys: ReadonlySet<string>, error: unknown): boolean {
    const { length } = this.works
    this.parts.known.forget(keys)
    this.works = this.works.filter((work) => {
      if (work.isReset || !work.keys.some((key) => keys.has(key))) return true
      this.rejected(work, error)
      return false
    })
    return this.works.length < length
  }

  /** The store's time as far as it has surely come; the time of the last decision, which other processes knew, where that may be. */
  private timeFor(keys: readonly string[], values: ReadonlyMap<string, StoredValue>): number {
    let [seenUs, decidedUs] = [0, 0]
    for (const key of keys) {
      seenUs = Math.max(seenUs, this.states.get(key)?.nowUs ?? 0)
      decidedUs = Math.max(decidedUs, values.get(key)?.decidedUs ?? 0)
    }
    const { nowUs, behindUs } = this.parts.calls.now() ?? { nowUs: seenUs, behindUs: 0 }
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
      for (const [i, key] of attempt.keys.entries()) {
        const isNew = outcome.swapped || outcome.states[i]?.version === undefined
        if (this.guessed.delete(key)) this.parts.known.met(isNew)
      }
      return outcome
    } catch (error) {
      this.lost.push(attempt)
      this.lostInARow++
      this.fault = error
      return undefined
    }
  }

  /** The states of this moment, after a lost answer. @throws what the last of several reads threw. */
  private async look(keys: readonly string[]): Promise<void> {
    for (let looks = 1; ; looks++) {
      try {
        this.call = {}
        return await this.read(keys, undefined)
      } catch (error) {
        if (looks === MOST_LOOKS) throw error
        await this.parts.calls.pause(Math.random() * LOOK_PAUSE_MS ** looks)
      }
    }
  }

  /** Answers what a swap has decided whose answer was lost. True: some of the works are settled. */
  private settleLost(): boolean {
    if (this.lost.length === 0) return false
    for (const attempt of this.lost) {
      const written = attempt.keys.map((key, i) => {
        const value = this.valueOf(key)
        // A step has no list of writes: it may have followed on the swap.
        if (value?.stepped !== undefined) return this.states.get(key)?.version === attempt.versions[i] ? false : undefined
        return value && wasWritten(value, attempt.id, (attempt.before.get(key) as StoredValue).number + 1)
      })
      if (written.includes(true)) {
        this.lost.length = 0
        this.settle(attempt)
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

  private valueOf(key: string): StoredValue | undefined {
    try {
      return decodedValue(this.states.get(key)?.value)
    } catch {
      return undefined
    }
  }

  /** Answers all works of an attempt that was made; those decided for a window that is over by now decide again. */
  private settle({ works, results, nowUs, keys, before }: Attempt): void {
    const { known } = this.parts
    let [atUs, number] = [nowUs, 0]
    for (const key of keys) {
      const state = this.states.get(key)
      if (state === undefined) continue
      known.keep(key, state)
      atUs = Math.max(atUs, state.nowUs)
      number = Math.max(number, (before.get(key) as StoredValue).number)
    }
    const order = (number + 1) * (MOST_TOGETHER + 1)
    const settled = new Set<Work>()
    const waiting = new Set(this.works)
    for (const [i, work] of works.entries()) {
      if (!waiting.has(work)) continue
      const result = results[i] as SessionResult
      if (result.charge !== undefined && work.session.isOver(result.charge.booking.atUs, atUs)) {
        this.undone.set(work, result)
        continue
      }
      settled.add(work)
    }
    this.works = this.works.filter((work) => !settled.has(work))
    for (const [i, work] of works.entries()) {
      if (!settled.has(work)) continue
      work.resolve(results[i] as SessionResult, nowUs, atUs, order + i)
      this.ended(work)
    }
  }
}

function isAlike(one: Work, other: Work): boolean {
  return one.session === other.session && one.keys.every((key, i) => key === other.keys[i])
}

function endOf(attempt: Attempt, isMade: boolean, tookMs: number): SwapEnd {
  const numbers = attempt.keys.map((key) => (attempt.before.get(key) as StoredValue).number + 1)
  return { isMade, tookMs, writers: writersIn(attempt), isLease: attempt.works.every(({ isLease }) => isLease), numbers }
}

/** Others that wrote one of these keys of late. */
function writersIn({ keys, before, id }: Attempt): number {
  let most = 0
  for (const key of keys) {
    const { writes, number } = before.get(key) as StoredValue
    const others = writes.filter((write) => write.id.writer !== id.writer && number - write.number < writes.length)
    most = Math.max(most, others.length)
  }
  return most
}

function ttlMs(untilNewUs: number): number {
  return Math.ceil((untilNewUs / 1000) * 1.001) + LEAST_TTL_MS
}
