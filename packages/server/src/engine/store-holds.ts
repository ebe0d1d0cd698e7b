import { createHash, randomBytes } from 'node:crypto'
import { type Decision, type HoldsById, type Key, PolicyError, StoreError } from 'sluicegate'
import { DEFAULT_MAX_SETTLE } from 'sluicegate-config/table-size.js'
import type { Cost, Costs } from './costs.js'
import type { Added, Closed, HoldFault, Opened } from './hold-verbs.js'
import { leaving } from './priorities.js'
import { nameOf } from './reservations.js'
import type { ServedPolicy } from './served-policy.js'
import type { WorkAsked, WorkState } from './served-work.js'
import { type WaitingAhead, WaitingPieces } from './waiting-pieces.js'
import { WorkOpenedHere } from './work-opened-here.js'

type HoldAnswer = Awaited<ReturnType<HoldsById['open']>>

/** What the id of a hold says beside its number, so that any process can go on with it. */
interface Place {
  readonly served: ServedPolicy
  readonly key: Key
  /** The most that the work may cost. */
  readonly most: number
  /** How long a piece waits for room; 0 of work that does not wait. */
  readonly waitMs: number
}

/** The longest wait of a piece. */
export const MAX_HOLD_WAIT_MS = 60_000
const NUMBER_BYTES = 16
const LEAST_ID_LENGTH = 16
const MOST_ID_LENGTH = 200
const ID = /^[0-9a-f]{32}\.([A-Za-z0-9_-]+)$/
/** Longer ids do not fit a request. */
export const MAX_HOLD_ID_LENGTH = 12_000
const NOT_ADDED = { used: 0, held: 0, over: 0, affordable: 0 }

/**
 * Open work of policies whose keys are in a store, which keeps it: each call is one step there, any process answers, and none has anything to lose. An id is 128
 * random bits, and the policy and keys of the hold. The store knows it by a hash of all that: one who changes any of it finds nothing.
 */
export class StoreHolds {
  readonly #policyOf: (name: string) => ServedPolicy | undefined
  readonly #costs: Costs
  readonly #waiting = new WaitingPieces()
  readonly #openedHere: WorkOpenedHere

  constructor(nowMs: () => number, policyOf: (name: string) => ServedPolicy | undefined, costs: Costs) {
    this.#policyOf = policyOf
    this.#costs = costs
    this.#openedHere = new WorkOpenedHere(nowMs, ({ served, key }, number) => this.#step(served, key, (holds) => holds.peek(key, number)))
  }

  isOne(id: string): boolean {
    return ID.test(id)
  }

  async open(served: ServedPolicy, key: Key, asked: WorkAsked, floor: number): Promise<Opened | HoldFault> {
    const { expect, most, ttlMs: ttl, over } = asked
    const keyName = nameOf(served, key)
    // What it may cost as debt is bounded, as a close is.
    const bound = over === 'finish' ? Math.min(most, mostOf(served, key)) : most
    const place = [served.name, key, bound, over === 'wait' ? ttl : 0]
    const id = `${numberOf(keyName, asked.id)}.${Buffer.from(JSON.stringify(place)).toString('base64url')}`
    if (id.length > MAX_HOLD_ID_LENGTH) throw new PolicyError('KEY_INVALID', 'key', key, 'has levels whose keys are too long together')
    const number = hashOf(id)
    const ahead = this.#waiting.ahead(keyName)
    if ((floor > 0 || ahead !== undefined) && !(asked.id !== undefined && (await this.#isKnown(served, key, number)))) {
      const denied = await this.#denied(served, key, expect === 'learned' ? 1 : Math.min(expect, most), floor, ahead)
      if (denied !== undefined) return { decision: denied, id: undefined, ...NOT_ADDED }
    }
    const options = { expect, ttl, over, ...(bound < Number.POSITIVE_INFINITY && { most: bound }) }
    const answer = await this.#step(served, key, (holds) => holds.open(key, number, options))
    const { isDone, fault } = answer
    if (isFault(fault)) return { fault }
    const decision = served.spent(key, answer.decision)
    served.count(decision)
    if (!isDone) return { decision, id: undefined, ...NOT_ADDED }
    this.#openedHere.opened(number, served, key, ttl, answer)
    return { decision, id, ...stateOf(answer, bound) }
  }

  add(id: string, piece: Cost, call: number | undefined): Promise<Added | HoldFault> {
    return this.#added(id, piece, call).catch(unknownOfClosed)
  }

  close(id: string, whole: Cost | undefined, call: number | undefined): Promise<Closed | HoldFault> {
    return this.#closed(id, whole, call).catch(unknownOfClosed)
  }

  async #added(id: string, piece: Cost, call: number | undefined): Promise<Added | HoldFault> {
    const cost = this.#costs.of(piece)
    const found = this.#found(id)
    if (found === undefined) return { fault: 'unknown' }
    const [number, { served, key, most, waitMs }] = found
    const say = (): Promise<HoldAnswer> => this.#step(served, key, (holds) => holds.add(key, number, cost, call))
    const sayAgain = async (): Promise<HoldAnswer> => {
      // Its limiter ends a while after a policy was removed.
      if (this.#policyOf(served.name) !== served) throw new StoreError('CLOSED', 'the policy was removed')
      return say()
    }
    const first = await say()
    const answer = waitMs === 0 ? first : await this.#waiting.wait(nameOf(served, key), waitMs, cost, first, sayAgain)
    const { isDone, decision, fault } = answer
    if (isFault(fault)) return { fault }
    this.#openedHere.heard(number, answer)
    const state = stateOf(answer, most)
    count(served, answer)
    if (!isDone) served.holds.cut++
    return isDone || fault === 'beyond' ? { isAdded: isDone, ...state } : { isAdded: false, decision, ...state }
  }

  async #closed(id: string, whole: Cost | undefined, call: number | undefined): Promise<Closed | HoldFault> {
    const cost = whole === undefined ? undefined : this.#costs.of(whole)
    const found = this.#found(id)
    if (found === undefined) return { fault: 'unknown' }
    const [number, { served, key, most }] = found
    const total = cost === undefined ? undefined : Math.min(cost, mostOf(served, key))
    const answer = await this.#step(served, key, (holds) => holds.close(key, number, total, call))
    const { decision, fault } = answer
    if (isFault(fault)) return { fault }
    this.#openedHere.closed(number)
    count(served, answer)
    this.#waiting.wake(nameOf(served, key))
    return { decision: served.spent(key, decision), ...stateOf(answer, most), held: 0, affordable: 0 }
  }

  /** To be called about once a second. False: there is more. */
  sweep(): boolean {
    return this.#openedHere.sweep()
  }

  async #isKnown(served: ServedPolicy, key: Key, number: string): Promise<boolean> {
    return (await this.#step(served, key, (holds) => holds.peek(key, number))).fault !== 'unknown'
  }

  /**
   * What denies work that is to begin, which is counted: the tokens that its class must leave, or pieces that wait. What those need is not free before all of
   * them have passed or given up.
   */
  async #denied(
    served: ServedPolicy,
    key: Key,
    least: number,
    floor: number,
    ahead: WaitingAhead | undefined,
  ): Promise<Decision | undefined> {
    let denied = await served.uncounted.peek(key, least, leaving(floor))
    if (ahead === undefined && denied.allowed) return undefined
    if (ahead !== undefined) {
      const behind = await served.uncounted.peek(key, Math.min(least + ahead.cost, Number.MAX_SAFE_INTEGER - floor), leaving(floor))
      const passedMs = behind.allowed ? ahead.nextMs : behind.retryAfterMs
      const retryAfterMs = Math.max(1, Math.ceil(Math.min(passedMs, Math.max(ahead.lastMs, denied.retryAfterMs))))
      denied = { ...(denied.allowed ? behind : denied), allowed: false, retryAfterMs }
    }
    served.count(denied)
    return denied
  }

  /** @throws {PolicyError} where the policy keeps no holds by id. */
  #step(served: ServedPolicy, key: Key, step: (holds: HoldsById) => Promise<HoldAnswer>): Promise<HoldAnswer> {
    const { byId } = served.limiterOf(key)
    if (byId === undefined) throw new PolicyError('POLICY_INVALID', 'policy', served.name, 'opens no work: reserve and settle')
    return served
      .reaching(() => step(byId))
      .catch((error: unknown) => {
        if (!(error instanceof PolicyError && error.code === 'CROSS_SLOT')) throw error
        const mend =
          'has levels in several hash slots of the cluster, and a hold moves in one: give all levels one key, or reserve and settle with mode: leased'
        throw new PolicyError('CROSS_SLOT', 'key', key, mend)
      })
  }

  /** By what the store knows a hold, and where it is; undefined for what is no id of this configuration. */
  #found(id: string): readonly [number: string, place: Place] | undefined {
    const [, place] = ID.exec(id) ?? []
    const [policy, key, bound, waitMs] = place === undefined ? [] : placeIn(place)
    const most = bound ?? Number.POSITIVE_INFINITY
    const served = typeof policy === 'string' ? this.#policyOf(policy) : undefined
    const isKey = typeof key === 'string' || (Array.isArray(key) && key.every((each) => typeof each === 'string'))
    if (!served?.isShared || !isKey || typeof most !== 'number' || typeof waitMs !== 'number') return undefined
    return [hashOf(id), { served, key, most, waitMs: Math.min(waitMs, MAX_HOLD_WAIT_MS) }]
  }
}

/**
 * The number of a hold, by which it is known. With an id of the caller's it is made of that, the policy and the key, so that an open whose answer was lost is
 * said again.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function numberOf(keyName: string, id: string | undefined): string {
  if (id === undefined) return randomBytes(NUMBER_BYTES).toString('hex')
  if (id.length < LEAST_ID_LENGTH || id.length > MOST_ID_LENGTH) {
    const mend = `must have ${LEAST_ID_LENGTH} to ${MOST_ID_LENGTH} characters that nobody guesses, such as a UUID`
    throw new PolicyError('OPTION_INVALID', 'id', id, mend)
  }
  return hashOf(JSON.stringify([keyName, id]))
}

/** The keys of a policy that was removed went with it, and the work that was open. */
export function unknownOfClosed(error: unknown): HoldFault {
  if (!(error instanceof StoreError && error.code === 'CLOSED')) throw error
  return { fault: 'unknown' }
}

function hashOf(text: string): string {
  return createHash('sha256')
    .update(text)
    .digest('hex')
    .slice(0, 2 * NUMBER_BYTES)
}

function placeIn(text: string): readonly unknown[] {
  try {
    const place: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(place) ? place : []
  } catch {
    return []
  }
}

function count({ holds }: ServedPolicy, { spent, debt }: HoldAnswer): void {
  holds.spent += spent
  holds.over += debt
}

function stateOf({ used, held, over, decision }: HoldAnswer, most: number): WorkState {
  return { used, held, over, affordable: Math.max(0, Math.min(most - used, held + decision.remaining)) }
}

/** Why there is no answer; what is beyond its `most` is refused as a piece. */
function isFault(fault: HoldAnswer['fault']): fault is HoldFault['fault'] {
  return fault !== undefined && fault !== 'beyond'
}

/** The most that work may cost in all: taking is not penalizing, and without a bound whoever may open could close a key for long. */
function mostOf(served: ServedPolicy, key: Key): number {
  const { policies = [], burst } = served.policyOf(key)
  const least = Math.min(...(policies.length === 0 ? [burst] : policies.map((part) => part.burst)))
  return Math.min(Number.MAX_SAFE_INTEGER, least * (1 + (served.config.maxSettle ?? DEFAULT_MAX_SETTLE)))
}
