import { Alarm, type Alert } from '../alarm.js'
import type { Clock } from '../clock.js'
import { PolicyError, StoreError } from '../errors.js'
import { Breaker } from './breaker.js'
import { ShardLoad } from './shard-load.js'
import type { Store, StoreAnswer, StoreLease, StoreRequest, StoreVerb } from './store.js'
import type { StoreForm } from './store-form.js'

/** What became of a guarded store's calls. */
export interface CallCounts {
  answered: number
  failed: number
}

/** A store within bounded time: what takes longer has failed, and after failures in a row nobody is sent for a while. Rejects with `OUTAGE`. */
export class GuardedStore implements Store {
  readonly counts: CallCounts = { answered: 0, failed: 0 }
  /** Called when a server answers that had failed. */
  onRecovery: () => void = () => undefined
  private readonly store: Store
  private readonly clock: Clock
  private readonly timeoutMs: number
  private readonly alarm: Alarm
  /** One for each server, as far as the client tells them apart. */
  private readonly breakers = new Map<string | undefined, Breaker>()
  private calls = 0
  /** Where the calls go. */
  readonly load: ShardLoad

  constructor(store: Store, clock: Clock, timeoutMs: number) {
    this.store = store
    this.clock = clock
    this.timeoutMs = timeoutMs
    this.alarm = new Alarm(clock, () => undefined)
    this.load = new ShardLoad(
      (key) => store.serverOf(key),
      (key) => store.slotOf(key),
    )
  }

  serverOf(key: string): string | undefined {
    return this.store.serverOf(key)
  }

  slotOf(key: string): number | undefined {
    return this.store.slotOf(key)
  }

  ask(verb: StoreVerb, requests: readonly StoreRequest[]): Promise<StoreAnswer> {
    return this.guarded((requests[0] as StoreRequest).key, () => this.store.ask(verb, requests))
  }

  lease(form: StoreForm, key: string, want: number, horizonUs: number): Promise<StoreLease> {
    return this.guarded(key, () => this.store.lease(form, key, want, horizonUs))
  }

  private guarded<Answer>(key: string, call: () => Promise<Answer>): Promise<Answer> {
    const breaker = this.breakerOf(key)
    const { clock, alarm, counts } = this
    if (!breaker.admits(clock.nowMs())) return Promise.reject(outage('is not asked for now, after failures in a row'))
    this.load.count(key)
    return new Promise((resolve, reject) => {
      let isOver = false
      const end = (hasAnswered: boolean): boolean => {
        if (isOver) return false
        isOver = true
        alarm.clear(timer)
        if (!hasAnswered) breaker.failed(clock.nowMs())
        else if (breaker.succeeded()) this.onRecovery()
        counts[hasAnswered ? 'answered' : 'failed']++
        return true
      }
      const timer: Alert = {
        dueUs: 0,
        order: 0,
        place: -1,
        ring: () => {
          if (end(false)) reject(outage(`did not answer within ${this.timeoutMs} ms`))
        },
      }
      alarm.set(timer, alarm.inUs(this.timeoutMs), this.calls++)
      call().then(
        (answer) => {
          if (end(true)) resolve(answer)
        },
        (error) => {
          // Misuse is no outage: the server was never asked.
          if (end(error instanceof PolicyError)) reject(error instanceof PolicyError ? error : outage(messageOf(error), error))
        },
      )
    })
  }

  /** Milliseconds until the store is asked again about a key; 0 while it is. */
  pausedMs(key: string): number {
    return this.breakerOf(key).leftMs(this.clock.nowMs())
  }

  private breakerOf(key: string): Breaker {
    const server = this.store.serverOf(key)
    let breaker = this.breakers.get(server)
    if (breaker === undefined) {
      breaker = new Breaker()
      this.breakers.set(server, breaker)
    }
    return breaker
  }
}

function outage(what: string, cause?: unknown): StoreError {
  return new StoreError('OUTAGE', `the store ${what}`, cause === undefined ? {} : { cause })
}

function messageOf(error: unknown): string {
  return `failed: ${error instanceof Error ? error.message : String(error)}`
}
