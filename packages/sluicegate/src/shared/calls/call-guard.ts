import { PolicyError, StoreError } from '../../errors.js'
import type { Clock } from '../../time/clock.js'
import { isExplained, warnOfOutage, warnOfStore } from '../../warn-once.js'
import type { CallerSignal, CancelSignal } from '../backend.js'
import { CircuitBreaker } from './circuit-breaker.js'
import { Deadlines, Expiring } from './deadlines.js'
import { ShardLoad } from './shard-load.js'
import { isUnconnected } from './unconnected.js'
import { UnwantedBookings } from './unwanted-bookings.js'

/** Where the client does not name servers, this many neighbouring slots share a circuit breaker: a server mostly holds neighbours. */
const SLOTS_TOGETHER = 256

/** A probe ends by its timeout, which a process that stands still makes longer; after so many of them it counts as lost. */
const LOST_TIMEOUTS = 10

/** More of them are one failure each time. */
const MOST_LOCKED = 100

/** The answer of a primary that does not serve a policy of this name. */
const NAME_UNKNOWN = 'NAME_UNKNOWN'

/** The server and the hash slot of a key, as far as they are known. */
export interface CallPlaces {
  serverOf(key: string): string | undefined
  slotOf(key: string): number | undefined
  /** {@link CasStore.connectionsOpened} */
  connectionsOpened?(): number | undefined
}

/** Of a store that is one server, or says nothing of its parts. */
export const ONE_PLACE: CallPlaces = { serverOf: () => undefined, slotOf: () => undefined }

/** What a guard reports. */
export interface CallEvents {
  /** The circuit of a server opened (`isOut`) or closed. */
  outage(server: string | undefined, isOut: boolean): void
  answered(): void
  /** A take was charged although it had timed out: `tokens` of the key of each policy. */
  charged(keys: readonly string[], tokens: number): void
}

export const NO_EVENTS: CallEvents = { outage: () => undefined, answered: () => undefined, charged: () => undefined }

/** What else hears of the answer to a call. */
export interface CallEnds<Answer> {
  /** An answer in time, before the caller gets it. */
  readonly inTime?: ((answer: Answer) => void) | undefined
  /** An answer after the timeout, when the caller has been rejected. */
  readonly late?: ((answer: Answer) => void) | undefined
}

/** A call as its guard sees it when it ends. */
interface EndedCall extends Expiring {
  readonly server: string | undefined
  readonly round: number
  readonly reject: (error: unknown) => void
  readonly partOf?: CallerSignal['partOf']
}

/** One call on its way: it ends by its answer, an error, or the timeout, of which its guard hears once. It is also the signal that cancels it. */
export class PendingCall<Answer> extends Expiring implements CallerSignal {
  readonly promise: Promise<Answer>
  private readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
  readonly server: string | undefined
  readonly round: number
  private readonly guard: CallGuard
  private readonly on: CallEnds<Answer>
  private abortListener: (() => void) | undefined
  isOver = false
  /** It timed out: no caller waits for it. */
  aborted = false
  partOf: CallerSignal['partOf']

  constructor(guard: CallGuard, server: string | undefined, round: number, on: CallEnds<Answer>) {
    super()
    this.guard = guard
    this.server = server
    this.round = round
    this.on = on
    let settle: [(answer: Answer) => void, (error: unknown) => void] = [() => undefined, () => undefined]
    this.promise = new Promise((resolve, reject) => {
      settle = [resolve, reject]
    })
    ;[this.resolve, this.reject] = settle
  }

  static rejected<Answer>(guard: CallGuard, error: unknown): PendingCall<Answer> {
    const call = new PendingCall<Answer>(guard, undefined, 0, {})
    call.isOver = true
    call.reject(error)
    return call
  }

  /** Ends as the promise does that `call` returns. */
  follow(call: () => Promise<Answer>): void {
    try {
      this.followed(call())
    } catch (error) {
      this.fail(error)
    }
  }

  followed(answer: Promise<Answer>): void {
    answer.then(
      (value) => this.answer(value),
      (error) => this.fail(error),
    )
  }

  fail(error: unknown): void {
    if (this.isOver) return
    this.isOver = true
    this.guard.failed(this, error)
  }

  override expire(): void {
    this.isOver = true
    this.aborted = true
    this.guard.timedOut(this)
    this.abortListener?.()
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.abortListener = listener
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    if (this.abortListener === listener) this.abortListener = undefined
  }

  private answer(answer: Answer): void {
    if (this.isOver) {
      this.on.late?.(answer)
      return
    }
    this.isOver = true
    this.on.inTime?.(answer)
    // Its caller is answered before listeners run.
    this.resolve(answer)
    this.guard.answered(this)
  }
}

/**
 * Calls to a backend within bounded time. A call that takes longer fails, and after consecutive failures the circuit of its server opens.
 * Rejects with `OUTAGE`. A {@link KeyFault} fails its call and is a sign of life at the same time: it opens no circuit. Neither does a key that
 * others change all the time; keys that others keep locked are one failure each.
 */
export class CallGuard {
  /**
   * Calls by how they ended; the failed ones that timed out are `timedOut`, too. `circuitsOpened`: how often a circuit did. `charged`: tokens of takes,
   * reservations and leases whose answers came in time.
   */
  readonly counts = { answered: 0, failed: 0, timedOut: 0, circuitsOpened: 0, charged: 0 }
  /** Who hears of calls. A limiter sets it afterwards: its account, which needs the guard itself. */
  events: CallEvents
  /** Reservations to cancel. */
  readonly unwanted: UnwantedBookings = new UnwantedBookings(this)
  /** Calls by server, slot and key. */
  readonly load: ShardLoad
  readonly timeoutMs: number
  private readonly places: CallPlaces
  private readonly clock: Clock
  private readonly deadlines: Deadlines
  /** One for each server or group of slots. */
  private readonly breakers = new Map<string | undefined, CircuitBreaker>()
  private readonly isInner: boolean
  /** Keys that others keep locked, since the last answer: each is one failure, as a table may be locked, too. */
  private readonly locked = new Set<string>()

  /** @param isInner another guard around this one has the circuits: none opens here. */
  constructor(places: CallPlaces, clock: Clock, timeoutMs: number, events: CallEvents = NO_EVENTS, isInner = false) {
    this.places = places
    this.events = events
    this.isInner = isInner
    this.clock = clock
    this.timeoutMs = timeoutMs
    this.deadlines = new Deadlines(clock, timeoutMs, () => this.connectionsOpened())
    this.load = new ShardLoad(
      (key) => places.serverOf(key),
      (key) => places.slotOf(key),
    )
  }

  /**
   * Calls `call` unless the circuit of the key's server is open. The promise rejects with `OUTAGE` after the timeout.
   *
   * @param call gets a signal that aborts after the timeout.
   * @param late gets an answer that comes after it.
   */
  guarded<Answer>(key: string, call: (signal: CancelSignal) => Promise<Answer>, late?: (answer: Answer) => void): Promise<Answer> {
    const pending = this.begin<Answer>(key, { late })
    if (!pending.isOver) pending.follow(() => call(pending))
    return pending.promise
  }

  /** Begins a call; the result is over already when the circuit is open. */
  begin<Answer>(key: string, on: CallEnds<Answer>): PendingCall<Answer> {
    let server: string | undefined
    try {
      server = this.guardedOf(key)
    } catch (error) {
      // `hashTag` is a function of the caller's, and may throw.
      return PendingCall.rejected(this, error)
    }
    const breaker = this.breakerOf(server)
    const round = breaker.attempt(breaker.isOpen ? this.clock.nowMs() : 0)
    if (round === undefined) return PendingCall.rejected(this, outage('is not asked for now, after failures in a row', breaker.fault))
    try {
      this.load.count(key)
    } catch (error) {
      breaker.untried(round)
      return PendingCall.rejected(this, error)
    }
    const pending = new PendingCall<Answer>(this, server, round, on)
    this.deadlines.add(pending)
    return pending
  }

  // The ends of a call.

  answered(call: EndedCall): void {
    this.deadlines.remove(call)
    this.counts.answered++
    this.alive(call)
  }

  failed(call: EndedCall, error: unknown): void {
    this.deadlines.remove(call)
    if (error instanceof PolicyError) {
      // Misuse: nothing was sent.
      call.reject(error)
      this.breakerOf(call.server).untried(call.round)
    } else if (isRefusal(error)) {
      call.reject(error)
      this.counts.answered++
      this.alive(call)
    } else if (error instanceof KeyFault) {
      call.reject(outage(`cannot decide about this key: ${error.message}`, error.cause))
      this.counts.failed++
      this.alive(call)
    } else this.out(call, outage(messageOf(error), error))
  }

  timedOut(call: EndedCall): void {
    this.counts.timedOut++
    const { server, round, partOf } = call
    const breaker = this.breakerOf(server)
    const { overtakenMs, locked } = partOf ?? {}
    if (this.isRecent(overtakenMs)) {
      this.counts.failed++
      call.reject(outage(`answers, but for ${this.timeoutMs} ms others changed the key each time`))
      this.alive(call)
    } else if (!this.isRecent(locked?.atMs)) {
      this.out(call, outage(`did not answer within ${this.timeoutMs} ms`))
    } else {
      const error = outage(`answers, but for ${this.timeoutMs} ms others kept the key locked`)
      if (!breaker.isOpen && this.isFirstLocked(locked?.keys ?? [])) this.out(call, error)
      else {
        // Says nothing of other keys, of which the next probe may be.
        this.counts.failed++
        call.reject(error)
        breaker.untried(round)
      }
    }
  }

  private isFirstLocked(keys: readonly string[]): boolean {
    const isFirst = !keys.some((key) => this.locked.has(key))
    for (const key of keys) if (this.locked.size < MOST_LOCKED) this.locked.add(key)
    return isFirst
  }

  /** Whether one call can change the keys together. */
  isTogether(keys: readonly string[]): boolean {
    const slot = this.places.slotOf(keys[0] as string)
    return keys.every((key) => this.places.slotOf(key) === slot)
  }

  /** Milliseconds until the store is asked again about a key; 0 while it is. */
  pausedMs(key: string): number {
    return this.breakerOf(this.guardedOf(key)).leftMs(this.clock.nowMs())
  }

  /** Servers that are out: the circuit is open, and a call failed of late. */
  get openCircuits(): number {
    const nowMs = this.clock.nowMs()
    let open = 0
    for (const breaker of this.breakers.values()) if (breaker.isOutAt(nowMs)) open++
    return open
  }

  /** Whether the last call to a server failed, and of late. */
  get isFailing(): boolean {
    const nowMs = this.clock.nowMs()
    return [...this.breakers.values()].some((breaker) => breaker.isFailingAt(nowMs))
  }

  /** Whether the server of a key has answered its last call, or was not asked yet. */
  isSound(key: string): boolean {
    return this.breakerOf(this.guardedOf(key)).isSound
  }

  /** Nobody waits for connections to a store that failed before. */
  private connectionsOpened(): number | undefined {
    const { places } = this
    if (places.connectionsOpened === undefined) return 0
    for (const breaker of this.breakers.values()) if (!breaker.isSound) return 0
    return places.connectionsOpened()
  }

  /** Whether it was within the timeout. */
  private isRecent(ms: number | undefined): boolean {
    const agoMs = ms === undefined ? -1 : this.clock.nowMs() - ms
    return agoMs >= 0 && agoMs < this.timeoutMs
  }

  private alive({ server }: EndedCall): void {
    if (this.locked.size > 0) this.locked.clear()
    if (this.breakerOf(server).succeeded()) this.events.outage(server, false)
    this.events.answered()
  }

  private out({ server, round, reject, partOf }: EndedCall, error: StoreError): void {
    reject(error)
    this.counts.failed++
    if (this.isInner) return
    const breaker = this.breakerOf(server)
    const hasOpened = breaker.failed(this.clock.nowMs(), round, error, partOf?.call)
    if (breaker.isOpen) warnOfSilence(error, this.counts.answered > 0)
    if (!hasOpened) return
    this.counts.circuitsOpened++
    this.events.outage(server, true)
  }

  /** Keys with the same answer share a circuit. */
  private guardedOf(key: string): string | undefined {
    const server = this.places.serverOf(key)
    if (server !== undefined) return server
    const slot = this.places.slotOf(key)
    return slot === undefined ? undefined : `slots from ${slot - (slot % SLOTS_TOGETHER)}`
  }

  private breakerOf(server: string | undefined): CircuitBreaker {
    let breaker = this.breakers.get(server)
    if (breaker === undefined) {
      breaker = new CircuitBreaker(LOST_TIMEOUTS * this.timeoutMs)
      this.breakers.set(server, breaker)
    }
    return breaker
  }
}

/** The backend answered with an error of its own: no outage. */
function isRefusal(error: unknown): boolean {
  return error instanceof StoreError && error.code !== 'OUTAGE'
}

function outage(what: string, cause?: unknown): StoreError {
  return new StoreError('OUTAGE', `the store ${what}`, cause === undefined ? {} : { cause })
}

function messageOf(error: unknown): string {
  return `failed: ${error instanceof Error ? error.message : typeof error}`
}

/**
 * The server is well and cannot decide about one key: another data type is stored under its name, its data is damaged, or what it gave came
 * too late to be spent. To the caller it is an outage of this key alone.
 */
export class KeyFault extends Error {
  override readonly name = 'KeyFault'
}

/** Warns while a circuit is open, as its client is not connected; once where the store has never answered: usually the client has another host. */
function warnOfSilence(error: StoreError, hasAnswered: boolean): void {
  const { message, cause } = error
  if (isExplained(error)) return
  if (isUnconnected(cause)) warnOfOutage('SLUICEGATE_SILENT_STORE', `${message}: ${CONNECT}`, 'unconnected')
  // It answers, and its answer says what is wrong.
  else if (!hasAnswered && !message.includes(NAME_UNKNOWN)) {
    const mend = 'until one does the option outage decides; is the client connected, and to the right server?'
    warnOfStore('SLUICEGATE_SILENT_STORE', `${message}, and no call has ever succeeded: ${mend}`)
  }
}

const CONNECT =
  'connect the client, as by client.connect(); does the server run, and can it be reached from here at the address of the client?'
