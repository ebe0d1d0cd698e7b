import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type {
  Decision,
  Duration,
  Key,
  Limiter,
  LimiterOptions,
  LimiterStats,
  ManualClock,
  Permit,
  Policy,
  Reservation,
  WaitOptions,
} from 'sluicegate'
import { manualClock } from 'sluicegate'
import type { Awaitable } from '../../../sluicegate/dist/awaitable.js'
import { specOf } from '../kit.js'
import type { Oracle, OracleBooking, OracleDecision, PolicySpec, SlidingWindowSpec } from '../oracle/oracle.js'
import { oracleFor } from '../oracle/versioned-oracle.js'
import { countTimers, type TimerCount } from './timer-count.js'

/** What is published on a channel while `act` runs, and what that returned. */
export async function eventsDuring<Event, Answer>(
  channel: string,
  act: () => Awaitable<readonly Answer[]>,
): Promise<readonly [readonly Event[], readonly Answer[]]> {
  const events: Event[] = []
  const hear = (event: unknown): void => void events.push(event as Event)
  subscribe(channel, hear)
  try {
    return [events, await act()]
  } finally {
    unsubscribe(channel, hear)
  }
}

/** A reservation, and when it may be spent, which the library does not tell to the microsecond. */
interface CheckedReservation {
  readonly reservation: AnyReservation
  readonly atUs: number
}

/** A limiter and its oracle side by side: every answer is compared, field by field, and handed on. */
class CheckedLimiter {
  readonly #limiter: AnyLimiter
  readonly #oracle: Oracle
  readonly #clock: ManualClock
  readonly #bookings = new Map<AnyReservation, readonly [OracleBooking, cost: number]>()

  constructor(limiter: AnyLimiter, spec: PolicySpec, clock: ManualClock) {
    this.#limiter = limiter
    this.#oracle = oracleFor(spec)
    this.#clock = clock
  }

  async take(key: Key, cost = 1): Promise<Decision> {
    return agreed(await this.#limiter.take(key, cost), this.#oracle.take(key, cost, this.#clock.nowMs()))
  }

  async peek(key: Key, cost = 1): Promise<Decision> {
    return agreed(await this.#limiter.peek(key, cost), this.#oracle.peek(key, cost, this.#clock.nowMs()))
  }

  async refund(key: Key, tokens: number): Promise<Decision> {
    return agreed(await this.#limiter.refund(key, tokens), this.#oracle.refund(key, tokens, this.#clock.nowMs()))
  }

  async penalize(key: Key, tokens: number): Promise<Decision> {
    return agreed(await this.#limiter.penalize(key, tokens), this.#oracle.penalize(key, tokens, this.#clock.nowMs()))
  }

  /** The duration in milliseconds. */
  async block(key: Key, durationMs: number): Promise<Decision> {
    return agreed(await this.#limiter.block(key, durationMs), this.#oracle.block(key, durationMs, this.#clock.nowMs()))
  }

  async reset(key: Key): Promise<Decision> {
    return agreed(await this.#limiter.reset(key), this.#oracle.reset(key, this.#clock.nowMs()))
  }

  /** `more` is what the oracle is told beside the numbers of the policy. */
  update(policy: Policy, more: Partial<SlidingWindowSpec> = {}): void {
    this.#limiter.update(policy)
    this.#oracle.update({ ...specOf(policy), ...more } as PolicySpec, this.#clock.nowMs())
  }

  async reserve(key: Key, cost: number): Promise<CheckedReservation> {
    const reservation = await this.#limiter.reserve(key, cost)
    const booking = this.#oracle.reserve(key, cost, this.#clock.nowMs())
    assert.deepEqual([reservation.allowed, reservation.waitMs], [booking.allowed, booking.waitMs])
    agreed(reservation.decision, booking.decision)
    this.#bookings.set(reservation, [booking, cost])
    return { reservation, atUs: Number(booking.atUs) }
  }

  async cancel({ reservation }: CheckedReservation): Promise<Decision> {
    return this.#once(reservation, 0, await reservation.cancel())
  }

  async settle({ reservation }: CheckedReservation, actual: number): Promise<Decision> {
    return this.#once(reservation, actual, await reservation.settle(actual))
  }

  #once(reservation: AnyReservation, actual: number, answer: Decision): Decision {
    const nowMs = this.#clock.nowMs()
    const [booking, cost] = this.#bookings.get(reservation) ?? []
    this.#bookings.delete(reservation)
    if (booking?.allowed && cost !== undefined && actual < cost) return agreed(answer, this.#oracle.cancel(booking, cost - actual, nowMs))
    if (booking?.allowed && cost !== undefined && actual > cost) {
      return agreed(answer, this.#oracle.penalize(booking.key, actual - cost, nowMs))
    }
    return answer
  }
}

function agreed(answer: Decision, expected: OracleDecision): Decision {
  assert.deepEqual(numbersOf(answer), numbersOf(expected))
  for (const [i, part] of (expected.parts ?? []).entries()) agreed(answer.parts?.[i] as Decision, part)
  return answer
}

function numbersOf({ allowed, limit, remaining, retryAfterMs, resetAfterMs }: OracleDecision): OracleDecision {
  return { allowed, limit, remaining, retryAfterMs, resetAfterMs }
}

/** A {@link Reservation} of a limiter in memory or over a store. */
export interface AnyReservation extends Pick<Reservation, 'allowed' | 'waitMs' | 'decision'> {
  settle(actualCost: number): Awaitable<Decision>
  cancel(): Awaitable<Decision>
}

/** A {@link Permit} of a limiter in memory or over a store. */
export interface AnyPermit extends Decision {
  release(): Awaitable<boolean>
  heartbeat(): Awaitable<boolean>
  [Symbol.dispose](): void
}

/** A limiter in memory, which answers at once, or one over a store, which has no table. */
export interface AnyLimiter<Answer extends Decision = Decision>
  extends Pick<Limiter, 'policy' | 'update' | 'hotKeys' | 'close' | typeof Symbol.dispose>,
    Partial<Pick<Limiter, 'handle' | 'snapshot'>> {
  take(key: Key, cost?: number): Awaitable<Answer>
  peek(key: Key, cost?: number): Awaitable<Decision>
  refund(key: Key, tokens: number): Awaitable<Decision>
  penalize(key: Key, tokens: number): Awaitable<Decision>
  block(key: Key, duration: Duration): Awaitable<Decision>
  reset(key: Key): Awaitable<Decision>
  reserve(key: Key, cost: number): Awaitable<AnyReservation>
  wait(key: Key, options?: WaitOptions): Promise<Answer>
  key(key: Key): BoundVerbs<Answer>
  stats(): Partial<LimiterStats>
}

interface BoundVerbs<Answer> {
  readonly key: Key
  take(cost?: number): Awaitable<Answer>
  peek(cost?: number): Awaitable<Decision>
}

/** How the suite makes the limiters that it examines. The options are those of `createLimiter`; the clock is always given. */
export type MakeLimiter = (policy: Policy, options: LimiterOptions & { readonly clock: ManualClock }) => Awaitable<AnyLimiter | OverStore>

/** A limiter over a store that the suite can look into. */
export interface OverStore {
  readonly limiter: AnyLimiter
  /** How many keys the store has of this limiter. */
  keys(): Awaitable<number>
  /** The counters of the table where the keys are, where it is one. */
  table?(): LimiterStats
  /** Whether messages are under way. Left out: none ever is, the limiter answers within the turn. */
  isBusy?(): boolean
}

/** A limiter under examination and the clock that it reads. */
export interface Fixture {
  readonly limiter: AnyLimiter
  readonly clock: ManualClock
  /** The limiter beside its oracle: each call is made on both, and fails where they differ. */
  readonly checked: CheckedLimiter
  /** Timers that are set on the clock. */
  readonly timers: TimerCount
  /** How many keys are tracked. */
  keys(): Awaitable<number>
  /** The counters of the table where the keys are. */
  table(): LimiterStats
  /** Resolves when all that was sent has been answered, and all who wait for it have acted upon it. */
  settled(): Promise<void>
  /** Lets the clock run, millisecond by millisecond, and everybody act upon it. */
  passing(ms: number): Promise<void>
  /** What a promise comes to without time going by. */
  atOnce<Value>(promise: Promise<Value>): Promise<Value>
}

/** In what stores may differ. */
export interface StoreTraits {
  /** What its decisions say of where they were made. */
  readonly source: Decision['source']
  /** How far back its clock may step and it still answers as declared; what comes of longer steps is the store's affair. */
  readonly furthestBackMs: number
  /** How much of the long random runs is made, above 0 to 1: the whole of them is for a store that answers within microseconds. */
  readonly share: number
  /** Whether a key is carried over to another policy when it is next touched, and the policy stays known by its name. */
  readonly updatesLazily: boolean
}

export interface Fixtures {
  /** A fresh limiter on a fresh clock, which stands in September 2026 by default. */
  (policy: Policy, options?: Omit<LimiterOptions, 'clock'>, startMs?: number): Promise<Fixture>
  readonly store: StoreTraits
}

/** In September 2026, 26:40 into an hour, 40 s into a minute. */
export const START_MS = 1_789_000_000_000
/** A log or a permit takes memory for each of its tokens: room for fewer keys than the default. */
const FEW_KEYS = 500

export function fixturesOf(make: MakeLimiter, store: StoreTraits): Fixtures {
  const fixture = async (policy: Policy, options: Omit<LimiterOptions, 'clock'> = {}, startMs = START_MS): Promise<Fixture> => {
    const clock = manualClock(startMs)
    const timers = countTimers(clock)
    const maxKeys = policy.algorithm === 'token-bucket' || policy.algorithm === 'gcra' ? {} : { maxKeys: FEW_KEYS }
    const made = await make(policy, { ...maxKeys, ...options, clock })
    const over: OverStore = 'limiter' in made ? made : { limiter: made, keys: () => tableOf(made).keys }
    const { limiter, isBusy } = over
    const table = (): LimiterStats => over.table?.() ?? tableOf(limiter)
    const settled = (): Promise<void> => (isBusy === undefined ? nextTurn() : settledOver(isBusy))
    const passing = async (ms: number): Promise<void> => {
      await settled()
      for (let passed = 0; passed < ms; passed++) {
        clock.advance(1)
        await settled()
      }
    }
    const checked = new CheckedLimiter(limiter, specOf(policy), clock)
    return { clock, timers, limiter, keys: () => over.keys(), table, settled, passing, atOnce: atOnceBy(settled), checked }
  }
  return Object.assign(fixture, { store })
}

/** Makes a policy of one algorithm. */
export type MakePolicy = (options: { readonly limit: number; readonly window: Duration; readonly name?: string }) => Policy

/** How many entries of a table each key takes. */
export function entriesOf({ policies }: Policy): number {
  return policies?.length ?? 1
}

/** How many of `times` takes pass. */
export async function admitted(limiter: Pick<AnyLimiter, 'take'>, key: string, times: number, cost = 1): Promise<number> {
  let passed = 0
  for (let i = 0; i < times; i++) if ((await limiter.take(key, cost)).allowed) passed++
  return passed
}

/** Turns between a message and what comes of its answer, with some to spare. */
const IDLE_TURNS = 8

async function settledOver(isBusy: () => boolean): Promise<void> {
  for (let idle = 0; idle < IDLE_TURNS; idle = isBusy() ? 0 : idle + 1) await nextTurn()
}

function atOnceBy(settled: () => Promise<void>): Fixture['atOnce'] {
  const late = Symbol('late')
  return async (promise) => {
    const value = await Promise.race([promise, settled().then(() => late)])
    if (value === late) throw new Error('this should have been answered at once')
    return value as Awaited<typeof promise>
  }
}

/** The counters of a limiter in memory. */
function tableOf(limiter: AnyLimiter): LimiterStats {
  return limiter.stats() as LimiterStats
}

/** What calls for one item after another return. */
export async function inTurn<Item, Value>(items: Iterable<Item>, call: (item: Item) => Awaitable<Value>): Promise<Value[]> {
  const values: Value[] = []
  for (const item of items) values.push(await call(item))
  return values
}

/** What a number of calls return, one after another. */
export function times<Value>(count: number, call: (i: number) => Awaitable<Value>): Promise<Value[]> {
  return inTurn(Array(count).keys(), call)
}
