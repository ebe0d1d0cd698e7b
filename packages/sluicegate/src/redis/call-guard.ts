import { Alarm, type Alert } from '../alarm.js'
import type { Clock } from '../clock.js'
import { PolicyError, StoreError } from '../errors.js'
import { Breaker } from './breaker.js'
import { ShardLoad } from './shard-load.js'

/** A timer that rings so much too late says that this process stood still. */
const LATE_US = 5_000
/** Where servers are not told apart, so many neighbouring slots have a breaker in common: a server has mostly neighbours. */
const SLOTS_TOGETHER = 256

/** What became of guarded calls. */
export interface CallCounts {
  answered: number
  failed: number
  /** Of the failed ones those that took too long. */
  timedOut: number
  /** How often a server was given up. */
  givenUp: number
  /** Tokens that takes, bookings and leases charged, as far as their answers came in time. */
  charged: number
}

/** Which server of a store is asked about a key, and which hash slot it is in, as far as that is known. */
export interface CallPlaces {
  serverOf(key: string): string | undefined
  slotOf(key: string): number | undefined
}

/** What a guard tells whoever asks through it. */
export interface CallEvents {
  /** A server was given up, or answers again. */
  outage(server: string | undefined, isOut: boolean): void
  answered(): void
  /** A take was charged after all, though its caller had been told that there is no answer: so many tokens of the key of each policy. */
  charged(keys: readonly string[], tokens: number): void
}

const NOBODY: CallEvents = { outage: () => undefined, answered: () => undefined, charged: () => undefined }

/**
 * Calls to whoever holds the true state, within bounded time: what takes longer has failed, and after failures in a row nobody is sent for
 * a while. Rejects with `OUTAGE`.
 */
export class CallGuard {
  readonly counts: CallCounts = { answered: 0, failed: 0, timedOut: 0, givenUp: 0, charged: 0 }
  events: CallEvents = NOBODY
  /** Where the calls go. */
  readonly load: ShardLoad
  private readonly places: CallPlaces
  private readonly clock: Clock
  private readonly timeoutMs: number
  private readonly alarm: Alarm
  /** One for each server, as far as they are told apart. */
  private readonly breakers = new Map<string | undefined, Breaker>()
  private calls = 0

  constructor(places: CallPlaces, clock: Clock, timeoutMs: number) {
    this.places = places
    this.clock = clock
    this.timeoutMs = timeoutMs
    this.alarm = new Alarm(clock, () => undefined)
    this.load = new ShardLoad(
      (key) => places.serverOf(key),
      (key) => places.slotOf(key),
    )
  }

  /** @param late is given an answer that comes after the caller was told that there is none. */
  guarded<Answer>(key: string, call: () => Promise<Answer>, late: (answer: Answer) => void = () => undefined): Promise<Answer> {
    const server = this.guardedOf(key)
    const breaker = this.breakerOf(server)
    const round = breaker.attempt(this.clock.nowMs())
    if (round === undefined) return Promise.reject(outage('is not asked for now, after failures in a row'))
    this.load.count(key)
    return new Promise((resolve, reject) => {
      let isOver = false
      const end = (): boolean => {
        if (isOver) return false
        isOver = true
        this.alarm.clear(timer)
        return true
      }
      const fail = (error: StoreError): void => {
        this.counts.failed++
        if (breaker.failed(this.clock.nowMs(), round)) {
          this.counts.givenUp++
          this.events.outage(server, true)
        }
        reject(error)
      }
      const answered = (settle: () => void): void => {
        this.counts.answered++
        const wasOpen = breaker.succeeded()
        settle()
        if (wasOpen) this.events.outage(server, false)
        this.events.answered()
      }
      const timer = this.timer(() => {
        if (!end()) return
        this.counts.timedOut++
        fail(outage(`did not answer within ${this.timeoutMs} ms`))
      })
      call().then(
        (answer) => (end() ? answered(() => resolve(answer)) : late(answer)),
        (error) => {
          if (!end()) return
          if (error instanceof PolicyError) {
            // Misuse: nobody was asked.
            breaker.untried(round)
            reject(error)
          } else if (isRefusal(error)) answered(() => reject(error))
          else fail(outage(messageOf(error), error))
        },
      )
    })
  }

  /** Milliseconds until the store is asked again about a key; 0 while it is. */
  pausedMs(key: string): number {
    return this.breakerOf(this.guardedOf(key)).leftMs(this.clock.nowMs())
  }

  /** Whether the server of a key has answered its last call, or was not asked yet. */
  isSound(key: string): boolean {
    return this.breakerOf(this.guardedOf(key)).isSound
  }

  /** Rings after the longest time that a call may take. */
  private timer(ring: () => void): Alert {
    const { alarm } = this
    let isSecond = false
    const timer: Alert = {
      dueUs: 0,
      order: 0,
      place: -1,
      ring: (nowUs) => {
        if (isSecond || nowUs - timer.dueUs <= LATE_US) return ring()
        // What came while this process stood still is still to be read.
        isSecond = true
        alarm.set(timer, nowUs + 1000, this.calls++)
      },
    }
    alarm.set(timer, alarm.inUs(this.timeoutMs), this.calls++)
    return timer
  }

  /** What fails together, as far as is known. */
  private guardedOf(key: string): string | undefined {
    const server = this.places.serverOf(key)
    if (server !== undefined) return server
    const slot = this.places.slotOf(key)
    return slot === undefined ? undefined : `slots from ${slot - (slot % SLOTS_TOGETHER)}`
  }

  private breakerOf(server: string | undefined): Breaker {
    let breaker = this.breakers.get(server)
    if (breaker === undefined) {
      breaker = new Breaker()
      this.breakers.set(server, breaker)
    }
    return breaker
  }
}

/** Whoever was asked has answered, and not as was hoped. */
function isRefusal(error: unknown): boolean {
  return error instanceof StoreError && error.code !== 'OUTAGE'
}

function outage(what: string, cause?: unknown): StoreError {
  return new StoreError('OUTAGE', `the store ${what}`, cause === undefined ? {} : { cause })
}

function messageOf(error: unknown): string {
  return `failed: ${error instanceof Error ? error.message : String(error)}`
}
