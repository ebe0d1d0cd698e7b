import { keysFor } from '../all-of-keys.js'
import { checkedCost, checkedTop } from '../arguments.js'
import type { Clock } from '../clock.js'
import type { Decision } from '../decision.js'
import { tellDenial } from '../diagnostics.js'
import type { Duration } from '../duration.js'
import { StoreError } from '../errors.js'
import type { HotKeys } from '../hot-keys.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { Policy } from '../policy.js'
import { CLOCK_DRIFT } from '../lease/leasing.js'
import { TopLists } from '../top-lists.js'
import { ownKey, type WaitRequest } from '../wait-request.js'
import type { Awaitable, FleetBoundKey, FleetLimiter, FleetReservation, FleetStats } from './fleet-limiter.js'
import { FleetBooking } from './fleet-booking.js'
import type { GuardedStore } from './guarded-store.js'
import type { LeasedTakes } from './leased-takes.js'
import type { Outage } from './outage.js'
import type { ShardLoads } from './shard-load.js'
import type { StoreBooked, StoreVerbs } from './store-verbs.js'
import { StoreWaiting, type WaitingDesk } from './store-waiting.js'

/** Keys of which the store is told at once what was used without it. */
const TOLD_AT_ONCE = 32

/** What a limiter over a store is made of, all of one policy. */
export interface RedisLimiterParts {
  readonly policy: Policy
  readonly store: GuardedStore
  readonly verbs: StoreVerbs
  readonly outage: Outage
  /** Undefined where nothing is leased. */
  readonly leases: LeasedTakes | undefined
  /** The length of a lease. */
  readonly leaseUs: number
  /** What makes all of these anew for another policy. */
  readonly remake: (policy: Policy) => RedisLimiterParts
  readonly clock: Clock
  readonly hotKeys: number
  readonly maxWaiters: number
}

/** The limiter over a store: from a lease where it can, else by one call; without the store as the caller chose. */
export class RedisLimiter implements FleetLimiter, WaitingDesk<Decision> {
  private parts: RedisLimiterParts
  private readonly lists: TopLists
  private readonly waiting: StoreWaiting<Decision>
  private isClosed = false
  private isAccounting = false

  constructor(parts: RedisLimiterParts) {
    this.parts = parts
    this.lists = new TopLists(parts.hotKeys)
    this.waiting = new StoreWaiting<Decision>(this, parts.clock, parts.maxWaiters)
    parts.store.onRecovery = () => void this.account()
  }

  get policy(): Policy {
    return this.parts.policy
  }

  take(key: Key, cost = 1): Awaitable<Decision> {
    this.checkOpen()
    const tokens = checkedCost(cost)
    const { leases, verbs } = this.parts
    keysFor(verbs.policies.forms.length, key)
    if (this.waiting.isQueued(key)) return this.refused(key, tokens)
    const answer = leases !== undefined && typeof key === 'string' ? leases.take(key, tokens) : this.exactly(key, tokens)
    return answer instanceof Promise ? answer.then((decision) => this.told(key, tokens, decision)) : this.told(key, tokens, answer)
  }

  peek(key: Key, cost = 1): Awaitable<Decision> {
    this.checkOpen()
    const { verbs, outage } = this.parts
    return this.unlessOut(verbs.peek(key, cost), () => outage.peek(key, cost, this.pausedMs(key)))
  }

  wait(key: Key, options?: WaitOptions): Promise<Decision> {
    if (this.isClosed) return Promise.reject(closed())
    const own = ownKey(key)
    return this.waiting.wait(own, options).then((decision) => this.told(own, options?.cost ?? 1, decision))
  }

  async reserve(key: Key, cost: number): Promise<FleetReservation> {
    this.checkOpen()
    const { verbs, outage } = this.parts
    const own = ownKey(key)
    const tokens = checkedCost(cost)
    const booked = await this.unlessOut<StoreBooked | Decision>(verbs.book(own, tokens, Number.POSITIVE_INFINITY), () =>
      outage.take(own, tokens, this.pausedMs(own)),
    )
    const booking = new FleetBooking(verbs, booked)
    this.told(own, tokens, { ...booking.decision, allowed: booking.allowed })
    return booking
  }

  refund(key: Key, tokens: number): Promise<Decision> {
    return this.changed(key, (verbs) => verbs.refund(key, tokens))
  }

  penalize(key: Key, tokens: number): Promise<Decision> {
    return this.changed(key, (verbs) => verbs.penalize(key, tokens))
  }

  block(key: Key, duration: Duration): Promise<Decision> {
    return this.changed(key, (verbs) => verbs.block(key, duration))
  }

  reset(key: Key): Promise<Decision> {
    return this.changed(key, (verbs) => verbs.reset(key))
  }

  key(key: Key): FleetBoundKey {
    const own = ownKey(key)
    return { key: own, take: (cost) => this.take(own, cost), peek: (cost) => this.peek(own, cost) }
  }

  update(policy: Policy): void {
    this.checkOpen()
    this.parts = this.parts.remake(policy)
  }

  stats(): FleetStats {
    const { store, leases, outage } = this.parts
    return {
      storeCalls: store.counts.answered,
      storeFailures: store.counts.failed,
      localDecisions: leases?.decisions ?? 0,
      outageDecisions: outage.decisions,
      leases: leases?.size ?? 0,
    }
  }

  hotKeys(n?: number): HotKeys {
    this.checkOpen()
    return this.lists.top(n)
  }

  shards(n = 10): ShardLoads {
    this.checkOpen()
    return this.parts.store.load.top(checkedTop(n))
  }

  close(): void {
    this.isClosed = true
    this.waiting.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  // What waiting asks for.

  book(key: Key, cost: number, mostMs: number): Promise<StoreBooked> {
    return this.parts.verbs.book(key, cost, mostMs * 1000)
  }

  async answer(booked: StoreBooked, sinceMs: number): Promise<Decision | undefined> {
    const { verbs, leases, leaseUs } = this.parts
    // A process that was stopped has slept too long: its token is void, as a leased one would be.
    if (leases !== undefined && sinceMs * 1000 > booked.waitUs + leaseUs - leaseUs / CLOCK_DRIFT) return undefined
    return verbs.answer(booked)
  }

  giveBack(booked: StoreBooked): Promise<Decision> {
    return this.parts.verbs.giveBack(booked, booked.cost)
  }

  refuse(decision: Decision): Decision {
    return this.parts.verbs.refuse(decision)
  }

  waitWithout(request: WaitRequest): Promise<Decision> {
    return this.parts.outage.wait(request, this.pausedMs(request.key))
  }

  /** One atomic call. */
  exactly(key: Key, cost: number): Promise<Decision> {
    const { verbs, outage } = this.parts
    return this.unlessOut(verbs.take(key, cost), () => outage.take(key, cost, this.pausedMs(key)))
  }

  private refused(key: Key, cost: number): Promise<Decision> {
    const { verbs, outage } = this.parts
    const peeked = this.unlessOut(verbs.peek(key, cost), () => outage.peek(key, cost, this.pausedMs(key)))
    return peeked.then((decision) => this.told(key, cost, verbs.refuse(decision)))
  }

  private async changed(key: Key, verb: (verbs: StoreVerbs) => Promise<Decision>): Promise<Decision> {
    this.checkOpen()
    const { leases, verbs } = this.parts
    const decision = await verb(verbs)
    for (const own of keysFor(verbs.policies.forms.length, key)) leases?.forget(own)
    this.waiting.released(key)
    return decision
  }

  /** Tells the store what was used without it, a few keys at a time. What is lost on the way may have been told, and is not told again. */
  private async account(): Promise<void> {
    if (this.isAccounting) return
    this.isAccounting = true
    const { outage, verbs } = this.parts
    const used = outage.settle((key) => this.pausedMs(key) === 0)
    const tellOneByOne = async (): Promise<void> => {
      for (const [key, tokens] of used) {
        await verbs.penalize(key, tokens).catch(() => undefined)
        this.parts.leases?.forget(typeof key === 'string' ? key : '')
      }
    }
    await Promise.all(Array.from({ length: TOLD_AT_ONCE }, tellOneByOne))
    this.isAccounting = false
  }

  private async unlessOut<Value>(asked: Promise<Value>, without: () => Value): Promise<Value> {
    try {
      return await asked
    } catch (error) {
      if (error instanceof StoreError && error.code === 'OUTAGE') return without()
      throw error
    }
  }

  private pausedMs(key: Key): number {
    return this.parts.store.pausedMs(typeof key === 'string' ? key : (key[0] as string))
  }

  private told(key: Key, cost: number, decision: Decision): Decision {
    this.lists.count(key, decision.allowed)
    tellDenial(key, cost, decision)
    return decision
  }

  private checkOpen(): void {
    if (this.isClosed) throw closed()
  }
}

function closed(): StoreError {
  return new StoreError('CLOSED', 'this limiter was closed')
}
