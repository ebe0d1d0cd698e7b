import { type Key, PolicyError } from 'sluicegate'
import { DEFAULT_MAX_SETTLE } from 'sluicegate-config/table-size.js'
import { type Awaitable, whenDone } from './awaitable.js'
import { type Cost, type Costs, WorkUsage } from './costs.js'
import { HeldById, SWEPT_AT_ONCE } from './held-by-id.js'
import type { Added, Closed, HoldFault, HoldVerbs, Opened } from './hold-verbs.js'
import { OldestFirst } from './oldest-first.js'
import { leaving } from './priorities.js'
import { nameOf } from './reservations.js'
import type { ServedPolicy } from './served-policy.js'
import { ServedWork, type WorkAsked, type WorkState } from './served-work.js'
import { numberOf, StoreHolds, unknownOfClosed } from './store-holds.js'

export type { WorkAsked, WorkState } from './served-work.js'

/** The longest time for which work is held without a call: `add` renews it. */
export const MAX_HOLD_MS = 3_600_000
export const DEFAULT_HOLD_MS = 15_000
/** As many keys of a table may have open work. */
const MAX_HOLDS = 100_000
const MAX_HOLDS_PER_KEY = 2_000
/** Work that has ended, whose answers are repeated: the oldest is forgotten first. */
const MAX_ENDED = 100_000

/** Open work, as it was last counted. */
interface Entry {
  readonly work: ServedWork
  readonly keyName: string
  /** The most debt that it may make. */
  readonly mostOver: number
  readonly usage: WorkUsage
  readonly opened: Opened
  /** When it was last heard of. */
  heardMs: number
  counted: Omit<WorkState, 'affordable'>
  /** The number of the last call, and its answer. */
  call: number
  answer: Awaitable<Added> | undefined
}

/** An answer that is repeated to whoever says its number again. */
interface Answered<Answer> {
  readonly call: number | undefined
  readonly answer: Awaitable<Answer>
}

/** Work that lapsed, which goes on when it is heard of again; or that was closed, of which the last answers are all that is kept. */
interface Ended {
  readonly entry: Entry | undefined
  readonly untilMs: number
  readonly closed: (Answered<Closed> & { readonly added: Pick<Entry, 'call' | 'answer'> }) | undefined
}

/** Open work in the process that has the keys, or of keys in a store. */
export class Holds implements HoldVerbs {
  readonly #held: HeldById<Entry>
  readonly #ended = new OldestFirst<Ended>()
  /** Work that has spent nothing, the one that is silent for the longest first. */
  readonly #unspent = new OldestFirst<Entry>()
  readonly #nowMs: () => number
  readonly #costs: Costs
  /** Of policies whose keys are in a store. */
  readonly #atStore: StoreHolds

  constructor(nowMs: () => number, costs: Costs, policyOf: (name: string) => ServedPolicy | undefined) {
    this.#nowMs = nowMs
    this.#costs = costs
    this.#atStore = new StoreHolds(nowMs, policyOf, costs)
    const bounds = { what: 'open holds', max: MAX_HOLDS, maxPerKey: MAX_HOLDS_PER_KEY }
    this.#held = new HeldById(bounds, nowMs, (entry, id) => this.#lapse(id, entry))
  }

  /** Open work. */
  get size(): number {
    return this.#held.size
  }

  open(served: ServedPolicy, key: Key, asked: WorkAsked, floor: number): Awaitable<Opened | HoldFault> {
    if (served.isShared) return this.#atStore.open(served, key, asked, floor)
    const keyName = nameOf(served, key)
    const id = numberOf(keyName, asked.id)
    const known = this.#held.get(id) ?? this.#endedNow(id)?.entry
    if (this.#ended.get(id)?.closed !== undefined) return { fault: 'closed' }
    if (known !== undefined) return this.#unlessGone(id, () => this.#openedBefore(known))
    if (!this.#held.hasRoom()) this.#makeRoom()
    this.#held.requireRoom(keyName)
    if (floor === 0) return this.#opened(served, key, asked, keyName, id)
    const least = asked.expect === 'learned' ? 1 : Math.min(asked.expect, asked.most)
    return whenDone(served.uncounted.peek(key, least, leaving(floor)), (seen) => {
      if (seen.allowed) return this.#opened(served, key, asked, keyName, id)
      served.count(seen)
      return { decision: seen, id: undefined, used: 0, held: 0, over: 0, affordable: 0 }
    }) as Awaitable<Opened>
  }

  add(id: string, cost: Cost, call?: number): Awaitable<Added | HoldFault> {
    checkCost(this.#costs.of(cost))
    if (this.#atStore.isOne(id)) return this.#atStore.add(id, cost, call)
    const entry = this.#held.get(id) ?? this.#endedNow(id)?.entry
    const closed = this.#ended.get(id)?.closed
    const last = closed?.added ?? entry
    if (last?.answer !== undefined && call === last.call) return last.answer
    if (entry === undefined) return { fault: closed === undefined ? 'unknown' : 'closed' }
    if (call !== undefined && call <= entry.call) return { fault: 'passed' }
    this.#reopen(id, entry)
    const answer = this.#unlessGone(id, () => this.#added(id, entry, cost))
    if (call !== undefined && !('fault' in answer)) {
      entry.call = call
      entry.answer = answer as Awaitable<Added>
    }
    return answer
  }

  close(id: string, whole?: Cost, call?: number): Awaitable<Closed | HoldFault> {
    const cost = whole === undefined ? undefined : this.#costs.of(whole)
    if (cost !== undefined) checkCost(cost)
    if (this.#atStore.isOne(id)) return this.#atStore.close(id, whole, call)
    // Its time may be over by now: then this ends it.
    const open = this.#held.get(id)
    const ended = this.#endedNow(id)
    if (ended?.closed !== undefined) return ended.closed.call === call ? ended.closed.answer : { fault: 'closed' }
    const entry = open ?? ended?.entry
    if (entry === undefined) return { fault: 'unknown' }
    if (call !== undefined && call <= entry.call) return { fault: 'passed' }
    return this.#unlessGone(id, () => {
      const { work } = entry
      const answer = whenDone(work.close(cost === undefined ? undefined : Math.min(cost, mostOf(entry))), (decision) => {
        const { used, over } = work.state
        const state = { used, over, held: 0 }
        this.#count(entry, state)
        return { decision: work.served.spent(work.key, decision), ...state, affordable: 0 }
      }) as Awaitable<Closed>
      if (this.#held.remove(id) !== undefined) work.served.holds.open--
      this.#unspent.delete(id)
      this.#end(id, { entry: undefined, closed: { call, answer, added: lastOf(entry) }, untilMs: this.#nowMs() + work.asked.ttlMs })
      return answer
    })
  }

  /** Ends work whose time is over. False: there is more. */
  sweep(): boolean {
    const isDone = this.#atStore.sweep()
    if (!this.#held.sweep()) return false
    const nowMs = this.#nowMs()
    let left = SWEPT_AT_ONCE
    for (let { oldest } = this.#ended; oldest !== undefined && oldest.value.untilMs <= nowMs; { oldest } = this.#ended) {
      if (left-- === 0) return false
      this.#ended.delete(oldest.key)
    }
    return isDone
  }

  /** With what it has by now: its time may be over, and other work may have taken what was free. */
  #openedBefore({ opened, call, counted, work }: Entry): Opened | HoldFault {
    return call > 0 || counted.used > 0 ? { fault: 'passed' } : { ...opened, ...work.state, ttlMs: work.asked.ttlMs }
  }

  #opened(served: ServedPolicy, key: Key, asked: WorkAsked, keyName: string, id: string): Opened {
    const work = new ServedWork(served, key, asked)
    const { state } = work
    const decision = served.spent(key, work.decision)
    served.count(decision)
    if (!decision.allowed) return { decision, id: undefined, ...state }
    const mostOver = (served.config.maxSettle ?? DEFAULT_MAX_SETTLE) * Math.max(1, state.held)
    const opened = { decision, id, ...state }
    const entry: Entry = {
      work,
      keyName,
      opened,
      mostOver,
      heardMs: this.#nowMs(),
      usage: new WorkUsage(),
      counted: NOTHING,
      call: 0,
      answer: undefined,
    }
    this.#count(entry, state)
    served.holds.open++
    this.#held.add(keyName, entry, asked.ttlMs, id)
    this.#unspent.set(id, entry)
    return opened
  }

  #added(id: string, entry: Entry, piece: Cost): Awaitable<Added> {
    const { work } = entry
    const { tokens: cost, keep } = entry.usage.piece(this.#costs, piece)
    const isBounded = work.asked.over === 'finish' && work.state.used + cost > mostOf(entry)
    return whenDone(isBounded ? false : work.add(cost), (isAdded): Awaitable<Added> => {
      if (isAdded) keep()
      const { state } = work
      this.#count(entry, state)
      entry.heardMs = this.#nowMs()
      this.#held.renew(id, work.asked.ttlMs)
      if (this.#unspent.delete(id) && state.used === 0) this.#unspent.set(id, entry)
      if (isAdded) return { isAdded, ...state }
      work.served.holds.cut++
      if (isBounded || cost > work.asked.most - state.used) return { isAdded, ...state }
      const missing = Math.max(1, cost - state.held)
      return whenDone(work.served.uncounted.peek(work.key, missing, leaving(0)), (decision) => ({
        isAdded,
        decision,
        ...state,
      })) as Awaitable<Added>
    }) as Awaitable<Added>
  }

  #endedNow(id: string): Ended | undefined {
    const ended = this.#ended.get(id)
    if (ended === undefined || ended.untilMs > this.#nowMs()) return ended
    // Its caller may use the id again.
    this.#ended.delete(id)
    return undefined
  }

  /** Work that lapsed goes on. */
  #reopen(id: string, entry: Entry): void {
    if (!this.#ended.has(id)) return
    this.#held.requireRoom(entry.keyName)
    this.#ended.delete(id)
    this.#held.add(entry.keyName, entry, entry.work.asked.ttlMs, id)
    entry.work.served.holds.open++
  }

  /** Of all places: those of work that was opened to hold them, and spends nothing, are not kept for long. */
  #makeRoom(): void {
    const id = this.#unspent.oldest?.key
    const entry = id === undefined ? undefined : this.#held.get(id)
    if (id === undefined || entry === undefined || entry.heardMs + DEFAULT_HOLD_MS > this.#nowMs()) return
    this.#held.remove(id)
    this.#lapse(id, entry)
    this.#ended.delete(id)
    entry.work.close(undefined)
  }

  #lapse(id: string, entry: Entry): void {
    const { holds } = entry.work.served
    holds.open--
    holds.lapsed++
    this.#count(entry, { ...entry.counted, held: 0 })
    this.#unspent.delete(id)
    this.#end(id, { entry, closed: undefined, untilMs: entry.heardMs + 2 * entry.work.asked.ttlMs })
  }

  #end(id: string, ended: Ended): void {
    this.#ended.set(id, ended)
    this.#ended.cutTo(MAX_ENDED)
  }

  #count(entry: Entry, { held, used, over }: Entry['counted']): void {
    const { counted } = entry
    const { holds } = entry.work.served
    holds.held += held - counted.held
    holds.spent += used - counted.used
    holds.over += over - counted.over
    entry.counted = { held, used, over }
  }

  /** What `step` answers. The keys of a policy that was removed went with it. */
  #unlessGone<Answer>(id: string, step: () => Awaitable<Answer | HoldFault>): Awaitable<Answer | HoldFault> {
    const gone = (error: unknown): HoldFault => {
      const fault = unknownOfClosed(error)
      const entry = this.#held.remove(id)
      this.#unspent.delete(id)
      if (entry !== undefined) entry.work.served.holds.open--
      return fault
    }
    try {
      const answer = step()
      return answer instanceof Promise ? answer.catch(gone) : answer
    } catch (error) {
      return gone(error)
    }
  }
}

/** The most that work may cost in all: taking is not penalizing, and without a bound whoever may open could close a key for long. */
function mostOf({ work, mostOver }: Entry): number {
  const { used, over, affordable } = work.state
  return used + affordable + Math.max(0, mostOver - over)
}

/** Without its work, which takes more memory than all else. */
function lastOf({ call, answer }: Entry): Pick<Entry, 'call' | 'answer'> {
  return { call, answer }
}

const NOTHING = { held: 0, used: 0, over: 0 }

/** @throws {PolicyError} `COST_INVALID` */
function checkCost(cost: number): void {
  if (!Number.isSafeInteger(cost) || cost < 0) throw new PolicyError('COST_INVALID', 'cost', cost, 'must be an integer of at least 0')
}
