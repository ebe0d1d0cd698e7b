import type { Decision } from '../decision/decision.js'
import { PolicyError, StoreError } from '../errors.js'
import type { Grant, Granted } from '../lease/grant.js'
import type { Key } from '../limiter.js'
import { onceInProcess } from '../once-in-process.js'

/**
 * One atomic step on the state of a key; of `allOf` on the state of each policy's key, all or none. Amounts were checked by the caller.
 *
 * | verb | effect |
 * | --- | --- |
 * | `take` | charges `cost` if it passes now; with `canSettle` it answers as `reserve` does, with a receipt for `giveBack` |
 * | `peek` | changes nothing; with `isAtHome` a region does not answer by the tokens that it holds |
 * | `refund`, `penalize` | gives back, or charges, `tokens` |
 * | `charge` | `penalize` with a number of tokens for each policy, some of them 0 |
 * | `block` | denies everything for `us` microseconds; the longest block wins, 0 lifts it |
 * | `reset` | makes the key full and lifts its block |
 * | `reserve` | charges `cost` at the earliest time at which it passes, within `maxWaitUs`; of permits and `allOf` only what passes now |
 * | `redeem` | reads the key when the time of a reservation has come; not `done` when the key is banned |
 * | `giveBack` | gives `tokens` of a charge back, as many as is safe; unspent ones of a grant all |
 * | `release`, `heartbeat` | ends or renews the permit that operation `id` took |
 * | `hold` | opens, moves or closes the hold of work whose cost is known afterwards, see {@link HoldOperation} |
 */
export type Operation =
  | TakeOperation
  | { readonly verb: 'peek'; readonly key: Key; readonly cost: number; readonly isAtHome?: boolean }
  | { readonly verb: 'refund' | 'penalize'; readonly key: Key; readonly tokens: number }
  | { readonly verb: 'charge'; readonly key: Key; readonly tokens: readonly number[] }
  | { readonly verb: 'block'; readonly key: Key; readonly us: number }
  | { readonly verb: 'reset'; readonly key: Key }
  | ReserveOperation
  | { readonly verb: 'redeem'; readonly key: Key; readonly charge: Reserved }
  | GiveBackOperation
  | HoldOperation
  | { readonly verb: 'release' | 'heartbeat'; readonly key: Key; readonly cost: number; readonly id: number }

/** `demand` is that of a {@link LeaseRequest}; default `cost`. */
export interface TakeOperation {
  readonly verb: 'take'
  readonly key: Key
  readonly cost: number
  readonly id: number
  readonly canSettle?: boolean
  readonly demand?: number | undefined
}

/** `isWait`: its caller sleeps, and hears of another time when the numbers change. */
export interface ReserveOperation {
  readonly verb: 'reserve'
  readonly key: Key
  readonly cost: number
  readonly id: number
  readonly maxWaitUs: number
  readonly isWait?: boolean
}

/** What charges or reserves tokens. */
export type ChargingOperation = TakeOperation | ReserveOperation

/** The one way back for what was charged. */
export interface GiveBackOperation {
  readonly verb: 'giveBack'
  readonly key: Key
  readonly charge: Charge
  readonly tokens: number
  /** Whether the answer is not needed: see {@link Backend.tell}. */
  readonly isSilent?: boolean
}

/**
 * A hold from what it was to what it is (ADR 26), for the keys of all policies or for none. In one step it charges `spent`, holds `hold`, and
 * grants some of that to this process, renewed for `ttlUs`.
 *
 * A granted token is one that this process may spend by itself until the hold ends. It stays held until it is reported as `spent`, so nothing is charged ahead,
 * and nothing has to return. When a hold ends that nobody renewed, what was granted is charged, as it may have been spent; the rest is free.
 *
 * | step | `before` | `spent` | `hold` |
 * | --- | --- | --- | --- |
 * | open | absent | 0 | the expectation, which has to fit |
 * | add | of the last answer | what was spent of the grant, or the piece itself | `'rest'` |
 * | close | of the last answer | the same, and what is missing of the true cost | 0 |
 *
 * What is beyond what was held has to fit beside all other holds, unless `isDebt`. Not `done`: nothing has changed, at the keys of all policies.
 */
export interface HoldOperation {
  readonly verb: 'hold'
  readonly key: Key
  /** Of the operation that opened it. */
  readonly id: number
  /** The hold as the last answer left it. With a record the backend knows it. After a lost answer absent, too: the rest then ends by itself. */
  readonly before?: OpenHold | undefined
  readonly spent: number
  readonly hold: number | 'rest'
  /** Opens so many that are alike, or as many as find room; the answer has their sum. */
  readonly count?: number | undefined
  /** Tokens that this process wants to have granted, of the rest and then of free room; not `done` when they would be fewer than `least`. */
  readonly want: number
  readonly least: number
  readonly ttlUs: number
  /** Whether `spent` is charged whatever is free. */
  readonly isDebt: boolean
  readonly record?: HoldRecord | undefined
  /**
   * Gets an answer that comes after the call was given up: what is held by then, and whether the step was made, or left what was held before. Undefined:
   * the work goes on with it; else the hold is closed, and so much of it was spent.
   */
  readonly late?: ((hold: OpenHold, done: boolean) => number | undefined) | undefined
}

/**
 * The backend remembers the hold by an id, for one `ttl` longer than it lasts: any process may add to it or close it. It keeps `ttlUs`, `isDebt`, `most` and `waits` of
 * the step that opened it, which those of later steps do not change.
 */
export interface HoldRecord {
  /** 128 random bits in hexadecimal digits, made by who opens. */
  readonly id: string
  /**
   * Counts the steps of the hold, from 0. A step with the number of the last one gets that answer again, and changes nothing. Undefined: the next one, or the
   * close that was made.
   */
  readonly call: number | undefined
  /** The most that the work may cost. */
  readonly most?: number | undefined
  /** A refused piece frees what is held, and counts as not said: it may come again with its number. */
  readonly waits?: boolean
  /** What it cost in all, in place of `spent`: what is missing is charged. */
  readonly total?: number | undefined
}

/** A hold, as the answer to a {@link HoldOperation} has it. All policies hold the same. */
export interface OpenHold {
  /** Tokens that are held, those granted to this process not counted. */
  readonly rest: number
  readonly granted: number
  /** How long it lasts, from the answer on. */
  readonly forUs: number
  /** Of what this step charged, or with a record of all: tokens that were beyond the policy. */
  readonly over: number
  /** With a record: what was spent in all, by this step, and of that as debt. */
  readonly used?: number | undefined
  readonly spent?: number | undefined
  readonly debt?: number | undefined
  /**
   * With a record: why nothing was done, apart from room. `unknown`: no such hold, or one of another key; `passed`: a later step was answered; `beyond`: it
   * would cost more than its `most`.
   */
  readonly fault?: 'unknown' | 'closed' | 'passed' | 'beyond' | undefined
  /** Of several that were to open: how many did; absent where the backend opens one at a time. */
  readonly count?: number | undefined
  /** What the backend needs for the next step. Opaque to everything else. */
  readonly state?: unknown
}

/** What an operation has charged, of which some may come back: a reservation, a take that can be settled, or tokens of a grant. */
export type Charge = Reserved | Granted

/** What came of an {@link Operation}. */
export interface Answer {
  /** Whether it did what it is for: the take or reservation was charged, the permit still held; of `peek`, whether a take would pass. */
  readonly done: boolean
  /** How the key stands. Absent of `release`, `heartbeat` and of what {@link Backend.tell} sends. */
  readonly decision?: Decision
  /** Of `reserve`: until the tokens may be spent. */
  readonly waitUs?: number
  /** Of `reserve`: of two reservations of a key the later one has the larger number. */
  readonly order?: number
  /** Of `reserve` and takes with `canSettle`: what the backend needs for `giveBack`. Opaque to everything else. */
  readonly receipt?: unknown
  /** Of `hold`. */
  readonly hold?: OpenHold
}

/** A reservation at a backend. */
export interface Reserved {
  readonly key: Key
  readonly cost: number
  /** Of the operation that made it. */
  readonly id: number
  readonly allowed: boolean
  /** Until the tokens may be spent, from the answer on. */
  readonly waitUs: number
  readonly decision: Decision
  readonly order: number
  readonly receipt?: unknown
}

/** A lease: at most `want` tokens; none when there are fewer than `least`. */
export interface LeaseRequest {
  readonly key: string
  /** Which policy of `allOf`; else 0. */
  readonly part: number
  readonly want: number
  readonly least: number
  /** Tokens that callers requested since the last lease of the key, those that were denied among them; default `want`. */
  readonly demand?: number
}

/**
 * Holds the true state of one policy: Redis, or a primary process. Timeouts, the circuit breaker, the local fallback and leases are
 * decorators of this shape.
 *
 * Each call is one atomic step on the backend's clock. It rejects with `StoreError` `OUTAGE` when no answer came; then it is unknown
 * whether the step was made, and the step is not tried again. A call that `signal` cancels before it was sent is not made.
 */
export interface Backend {
  execute(operation: Operation, signal?: CallerSignal): Promise<Answer>
  /** Charges tokens for this process to spend by itself. When it rejects, at most `want` tokens were charged and no process has them. */
  lease(request: LeaseRequest, signal?: CallerSignal): Promise<Grant>
  /** Sends what is silent, in order with all others; no answer comes. Where absent, `execute` does it. */
  tell?(operation: Operation): void
}

/** Of all limiters in this process: a backend knows permits, reservations and grants by these numbers. */
const ids = /* @__PURE__ */ onceInProcess('operation ids', () => ({ last: 0 }))

/** A number for one operation, larger than all before it. */
export function newOperationId(): number {
  return ++ids.last
}

/** @throws {StoreError} `OUTAGE` when the answer has none. */
export function decisionOf({ decision }: Answer): Decision {
  if (decision === undefined) throw new StoreError('OUTAGE', 'the store gave an answer without a decision')
  return decision
}

/** The decision of a take: one that can be settled answers with the state after it, which may deny the next take. */
export function takenBy({ canSettle }: { readonly canSettle?: boolean }, answer: Answer): Decision {
  const decision = decisionOf(answer)
  return canSettle && answer.done && decision.source !== 'outage' ? passed(decision) : decision
}

/** The decision of a take that passed, for the state that it left. */
export function passed({ parts, ...decision }: Decision): Decision {
  return { ...decision, allowed: true, retryAfterMs: 0, ...(parts && { parts: parts.map(passed) }) }
}

/** What a `reserve` with these arguments brought. */
export function reservedBy(operation: { readonly key: Key; readonly cost: number; readonly id: number }, answer: Answer): Reserved {
  const { key, cost, id } = operation
  const { done, waitUs = 0, order = 0, receipt } = answer
  return { key, cost, id, allowed: done, waitUs, decision: decisionOf(answer), order, receipt }
}

/** Whether tokens of it can come back. Without the backend nothing is held there, unless the answer has what `giveBack` needs. */
export function canComeBack({ allowed, decision, receipt }: Reserved): boolean {
  return allowed && (decision.source !== 'outage' || receipt !== undefined)
}

export function isGranted(charge: Charge): charge is Granted {
  return 'grantId' in charge
}

/** All of a reservation that nobody wants goes back. */
export function giveAllBack(reserved: Reserved): GiveBackOperation {
  return { verb: 'giveBack', key: reserved.key, charge: reserved, tokens: reserved.cost, isSilent: true }
}

/** Of several keys the one by which the server is known. */
export function firstKeyOf(key: Key): string {
  return typeof key === 'string' ? key : (key[0] as string)
}

/** Cancels a call that was not sent yet. The part of `AbortSignal` that clients use, at a fraction of its cost. */
export interface CancelSignal {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** The signal of one caller. Where a backend makes one call to its store for several callers, it says here which: that call fails once. */
export interface CallerSignal extends CancelSignal {
  /**
   * `call`: an object for each call to the store, the newest one of those that this caller waits for. `overtakenMs`, `locked`: when the store
   * answered last that others had changed the keys first, or kept them locked, by the limiter's clock.
   */
  partOf?:
    | {
        readonly call: object
        readonly overtakenMs?: number | undefined
        readonly locked?: { readonly atMs: number; readonly keys: readonly string[] } | undefined
      }
    | undefined
}

/** What a backend without such holds says. */
export function withoutHolds(store: string): PolicyError {
  return new PolicyError('OPTION_INVALID', 'open', store, 'keeps no such holds: use reserve() and settle()')
}
