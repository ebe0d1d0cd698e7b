import { type Clock, preciseClock } from 'sluicegate'

/** A store whose connections can be replaced. */
export interface WatchedStore {
  /** Writes as a limiter does. Rejects with the reason why it cannot; {@link StoreRefusal} where a server said so. */
  look(): Promise<void>
  /** Whether a server has answered anything since `sinceMs` of `performance.now()`: a look that waits in its turn is no sign of silence. */
  hasAnsweredSince?(sinceMs: number): boolean
  /**
   * Ends the connections and opens others, which looks the name of the server up again. False where there is none to end, as while the driver
   * opens one anyway.
   */
  renew(): boolean
}

/** A server answered that it does not do what a limiter needs. */
export class StoreRefusal extends Error {
  override readonly name = 'StoreRefusal'
  /** What to do; undefined where only the server's words are known. */
  readonly mend: string | undefined
  /** It passes by itself: the server starts, or is busy. */
  readonly isPassing: boolean
  /** Others answer, as in a cluster: they lose their connections, too, when these are replaced. */
  readonly isPartial: boolean

  constructor(reason: string, more: { mend?: string | undefined; isPassing?: boolean; isPartial?: boolean; cause?: unknown } = {}) {
    super(reason, { cause: more.cause })
    this.mend = more.mend
    this.isPassing = more.isPassing === true
    this.isPartial = more.isPartial === true
  }
}

type FaultKind = 'lost' | 'silent' | 'refused'

/** What a {@link StoreWatch} says: at the first failure of each kind and with each advice, once a minute while an outage lasts, and at its end. */
export type StoreNews =
  | { readonly isReachable: true; readonly outMs: number }
  | { readonly isReachable: false; readonly kind: FaultKind; readonly error: Error; readonly outMs: number }

/** An outage. */
interface Failing {
  readonly sinceMs: number
  /** Kinds, each with what to do. */
  readonly said: Set<string>
  kind: FaultKind
  error: Error
  sayMs: number
  pauseMs: number
  renewMs: number
}

/** How long a look may take. */
const ANSWER_MS = { sound: 1_000, failing: 500 } as const
/** Between two looks. */
const LOOK_MS = { starting: 50, failing: 250, sound: 1_000 } as const
/** How long looks fail before connections are replaced. At random down to half of it, so that many processes do not come at once. */
const RENEW_MS = { first: 1_000, most: 3_000, mostOfPart: 16_000 } as const
/** Between two reports of an outage that lasts. */
const SAY_MS = 60_000

/**
 * Looks at a store again and again: whether it can be written, not only whether a connection is open. A server that fails over by name leaves
 * an open connection behind, to a replica or to nothing.
 *
 * | state   | a look succeeds        | a look fails                                             | connections are lost |
 * |---------|------------------------|----------------------------------------------------------|----------------------|
 * | sound   | sound                  | failing: says it                                         | failing: says it     |
 * | failing | sound: says it         | failing: renews after a time, says it again each minute  | failing              |
 */
export class StoreWatch {
  readonly #store: WatchedStore
  readonly #say: (news: StoreNews) => void
  readonly #clock: Clock
  readonly #random: () => number
  #failing: Failing | undefined
  #lookMs: number | undefined
  #hasLooked = false
  #isLooking = false
  #isStarting = false
  #isEnded = false
  #cancel: (() => void) | undefined
  #renewals = 0

  constructor(store: WatchedStore, say: (news: StoreNews) => void, clock: Clock = preciseClock(), random: () => number = Math.random) {
    this.#store = store
    this.#say = say
    this.#clock = clock
    this.#random = random
  }

  /** Whether the last look succeeded; true before the first one. */
  get isSound(): boolean {
    return this.#failing === undefined
  }

  /** Why the last look failed. */
  get fault(): Error | undefined {
    return this.#failing?.error
  }

  /** How long the last look took, of one that succeeded. */
  get lookMs(): number | undefined {
    return this.#lookMs
  }

  /** How often connections were replaced. */
  get renewals(): number {
    return this.#renewals
  }

  /** Resolves when a look has succeeded, or after `withinMs`. Looks go on until {@link end}. */
  async start(withinMs: number): Promise<void> {
    const untilMs = this.#clock.nowMs() + withinMs
    this.#isStarting = true
    do {
      await this.#look()
      if (this.#hasLooked && this.isSound) break
      await new Promise<void>((resolve) => this.#after(LOOK_MS.starting, resolve))
    } while (!this.#isEnded && this.#clock.nowMs() < untilMs)
    this.#isStarting = false
    this.#sayFailing()
    this.#next()
  }

  /** The driver says that a connection was lost, or could not be opened. */
  lost(error: Error): void {
    this.#failed(error instanceof StoreRefusal ? 'refused' : 'lost', error)
  }

  /** The driver says that a connection is open: the next look comes at once. */
  opened(): void {
    if (this.isSound || this.#isEnded || this.#cancel === undefined) return
    this.#next(0)
  }

  end(): void {
    this.#isEnded = true
    this.#cancel?.()
  }

  #next(ms: number = this.isSound ? LOOK_MS.sound : LOOK_MS.failing): void {
    this.#cancel?.()
    if (this.#isEnded) return
    this.#cancel = this.#after(ms, () => void this.#look().then(() => this.#next()))
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const beganMs = performance.now()
    try {
      if (await this.#answersInTime()) this.#succeeded(performance.now() - beganMs)
      else if (this.#store.hasAnsweredSince?.(beganMs) !== true) this.#failed('silent', new Error('no answer to a write in time'))
    } catch (error) {
      if (error instanceof StoreRefusal) this.#failed('refused', error)
      else if (this.#store.hasAnsweredSince?.(beganMs) !== true) this.#failed('lost', error as Error)
    } finally {
      this.#isLooking = false
    }
  }

  async #answersInTime(): Promise<boolean> {
    let cancel = (): void => undefined
    const late = new Promise<false>((resolve) => {
      // This process may have stood still: sockets are read before the answer counts as late.
      cancel = this.#after(this.isSound ? ANSWER_MS.sound : ANSWER_MS.failing, () => void setImmediate(() => setImmediate(resolve, false)))
    })
    try {
      return await Promise.race([this.#store.look().then(() => true), late])
    } finally {
      cancel()
    }
  }

  #succeeded(tookMs: number): void {
    this.#hasLooked = true
    this.#lookMs = tookMs
    const failing = this.#failing
    this.#failing = undefined
    if (failing !== undefined && failing.said.size > 0) this.#say({ isReachable: true, outMs: this.#clock.nowMs() - failing.sinceMs })
  }

  #failed(kind: FaultKind, error: Error): void {
    if (this.#isEnded) return
    const nowMs = this.#clock.nowMs()
    this.#lookMs = undefined
    this.#failing ??= {
      sinceMs: nowMs,
      said: new Set(),
      kind,
      error,
      sayMs: nowMs,
      pauseMs: RENEW_MS.first,
      renewMs: nowMs + this.#jittered(RENEW_MS.first),
    }
    const failing = this.#failing
    failing.kind = kind
    failing.error = error
    // A connection that is not open yet is no news.
    if (!this.#isStarting) this.#sayFailing()
    if (nowMs < failing.renewMs) return
    const isPartial = error instanceof StoreRefusal && error.isPartial
    failing.pauseMs = Math.min(2 * failing.pauseMs, isPartial ? RENEW_MS.mostOfPart : RENEW_MS.most)
    failing.renewMs = nowMs + this.#jittered(failing.pauseMs)
    if (this.#store.renew()) this.#renewals++
  }

  #sayFailing(): void {
    const failing = this.#failing
    const nowMs = this.#clock.nowMs()
    if (failing === undefined) return
    const { kind, error } = failing
    const cause = `${kind} ${error instanceof StoreRefusal ? error.mend : ''}`
    if (nowMs < failing.sayMs && failing.said.has(cause)) return
    failing.said.add(cause)
    failing.sayMs = nowMs + SAY_MS
    this.#say({ isReachable: false, kind, error, outMs: nowMs - failing.sinceMs })
  }

  #jittered(ms: number): number {
    return ms * (1 - this.#random() / 2)
  }

  #after(ms: number, fn: () => void): () => void {
    if (this.#clock.after !== undefined) return this.#clock.after(ms, fn)
    const timer = setTimeout(fn, ms)
    if (!this.#isStarting) timer.unref()
    return () => clearTimeout(timer)
  }
}
