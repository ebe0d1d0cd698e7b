import { keysUnder } from '../all-of-keys.js'
import { checkedCost, checkedTop, checkKey } from '../arguments.js'
import type { Clock } from '../clock.js'
import type { Decision } from '../decision.js'
import { outages, tellDenial } from '../diagnostics.js'
import type { Duration } from '../duration.js'
import { StoreError } from '../errors.js'
import type { HotKeys } from '../hot-keys.js'
import { CLOCK_DRIFT } from '../lease/leasing.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { Policy } from '../policy.js'
import { TopLists } from '../top-lists.js'
import { ownKey, type WaitRequest } from '../wait-request.js'
import type { CallGuard } from './call-guard.js'
import { FleetBooking } from './fleet-booking.js'
import type { Awaitable, FleetBoundKey, FleetLimiter, FleetReservation, FleetStats } from './fleet-limiter.js'
import type { Booked, FleetVerbs } from './fleet-verbs.js'
import type { LeasedTakes } from './leased-takes.js'
import type { Outage } from './outage.js'
import { OutageAccount } from './outage-account.js'
import type { ShardLoads } from './shard-load.js'
import { StoreWaiting, type WaitingDesk } from './store-waiting.js'

/** What a limiter over a store is made of, all of one policy. */
export interface StoreLimiterParts {
  readonly policy: Policy
  /** Through which all of `verbs` and `leases` ask. */
  readonly store: CallGuard
  readonly verbs: FleetVerbs
  readonly outage: Outage
  /** Undefined where nothing is leased. */
  readonly leases: LeasedTakes | undefined
  /** The length of a lease. */
  readonly leaseUs: number
  /** What makes all of these anew for another policy. */
  readonly remake: (policy: Policy) => StoreLimiterParts
  readonly clock: Clock
  readonly hotKeys: number
  readonly maxWaiters: number
}

/** The limiter over a store: from a lease where it can, else by one call; without the store as the caller chose. */
export class StoreLimiter implements FleetLimiter, WaitingDesk<Decision> {
  protected parts: StoreLimiterParts
  private readonly lists: TopLists
  private readonly waiting: StoreWaiting<Decision>
  private readonly account: OutageAccount
  private isClosed = false
  private admittedTokens = 0
  private outageTokens = 0

  constructor(parts: StoreLimiterParts) {
    this.parts = parts
    this.lists = new TopLists(parts.hotKeys)
    this.waiting = new StoreWaiting<Decision>(this, parts.clock, parts.maxWaiters)
    this.account = new OutageAccount(() => this.parts, parts.clock)
    parts.store.events = {
      outage: (server, isOut) => this.tellOutage(server, isOut),
      answered: () => this.account.answered(),
      charged: (keys, tokens) => this.account.covered(keys, tokens),
    }
  }

  get policy(): Policy {
    this.checkOpen()
    return this.parts.policy
  }

  take(key: Key, cost = 1): Awaitable<Decision> {
    this.checkOpen()
    const tokens = checkedCost(cost)
    const { leases, policy } = this.parts
    // What is leased has one key.
    if (leases === undefined) keysUnder(policy, key)
    else checkKey(key)
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
    const booked = await this.unlessOut<Booked | Decision>(verbs.book(own, tokens, Number.POSITIVE_INFINITY), () =>
      outage.take(own, tokens, this.pausedMs(own)),
    )
    const booking = new FleetBooking(verbs, booked)
    this.told(own, tokens, { ...booking.decision, allowed: booking.allowed })
    return booking
  }

  refund(key: Key, tokens: number): Promise<Decision> {
    return this.changed(key, (verbs) => verbs.refund(key, tokens), true)
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
    this.checkOpen()
    keysUnder(this.policy, key)
    const own = ownKey(key)
    return { key: own, take: (cost) => this.take(own, cost), peek: (cost) => this.peek(own, cost) }
  }

  update(policy: Policy): void {
    this.checkOpen()
    this.parts = this.parts.remake(policy)
  }

  stats(): FleetStats {
    this.checkOpen()
    const { store, leases, outage } = this.parts
    return {
      storeCalls: store.counts.answered,
      storeFailures: store.counts.failed,
      localDecisions: leases?.decisions ?? 0,
      outageDecisions: outage.decisions,
      timeouts: store.counts.timedOut,
      outages: store.counts.givenUp,
      admittedTokens: this.admittedTokens,
      chargedTokens: store.counts.charged,
      outageTokens: this.outageTokens,
      accountedTokens: this.account.tokens,
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
    this.account.close()
    this.parts.outage.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  // What waiting asks for.

  book(key: Key, cost: number, mostMs: number): Promise<Booked> {
    return this.parts.verbs.book(key, cost, mostMs * 1000)
  }

  async answer(booked: Booked, sinceMs: number): Promise<Decision | undefined> {
    const { verbs, leases, leaseUs } = this.parts
    // A process that was stopped has slept too long: its token is void, as a leased one would be.
    if (leases !== undefined && sinceMs * 1000 > booked.waitUs + leaseUs - leaseUs / CLOCK_DRIFT) return undefined
    return verbs.answer(booked)
  }

  giveBack(booked: Booked): Promise<Decision> {
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

  private async changed(key: Key, verb: (verbs: FleetVerbs) => Promise<Decision>, keepsTokens = false): Promise<Decision> {
    this.checkOpen()
    const { leases, verbs } = this.parts
    const decision = await verb(verbs)
    for (const own of keysUnder(this.parts.policy, key)) leases?.forget(own, keepsTokens)
    this.waiting.released(key)
    return decision
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
    if (decision.allowed) this.admitted(cost, decision)
    tellDenial(key, cost, decision)
    return decision
  }

  private admitted(cost: number, { source }: Decision): void {
    this.admittedTokens += cost
    if (source === 'outage') this.outageTokens += cost
  }

  private tellOutage(server: string | undefined, isOut: boolean): void {
    if (outages.hasSubscribers) outages.publish({ policy: this.parts.policy.name, server, isOut })
    if (!isOut) this.account.recovered()
  }

  protected checkOpen(): void {
    if (this.isClosed) throw closed()
  }
}

function closed(): StoreError {
  return new StoreError('CLOSED', 'this limiter was closed')
}
