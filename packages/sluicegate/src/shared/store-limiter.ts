import { keysUnder } from '../all-of-keys.js'
import { checkedCost, checkedTop } from '../arguments.js'
import type { Awaitable } from '../awaitable.js'
import type { Clock } from '../clock.js'
import type { Decision } from '../decision.js'
import { StoreError } from '../errors.js'
import type { HotKeys } from '../hot-keys.js'
import type { HeldThen } from '../lease/lease-table.js'
import { surelyUs } from '../lease/leasing.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { Duration } from '../policy/duration.js'
import type { Policy } from '../policy/policy.js'
import { closeQueueOf } from '../queue/create-queue.js'
import { QueuedLimiter } from '../queue/queued-limiter.js'
import { shownAs } from '../shown.js'
import { ownKey, type WaitRequest } from '../wait-request.js'
import type { CallGuard } from './call-guard.js'
import { FleetBooking } from './fleet-booking.js'
import type { FleetBoundKey, FleetLimiter, FleetReservation, FleetStats } from './fleet-limiter.js'
import type { Booked, FleetVerbs } from './fleet-verbs.js'
import type { LateAnswers } from './late-answers.js'
import type { LeasedTakes } from './leased-takes.js'
import type { Outage } from './outage.js'
import { OutageAccount } from './outage-account.js'
import { outages } from './outage-events.js'
import type { ShardLoads } from './shard-load.js'
import { StoreOrOutage } from './store-or-outage.js'
import { StorePermit } from './store-permit.js'
import { StoreWaiting } from './store-waiting.js'
import { ToldDecisions } from './told-decisions.js'
import type { WaitingDesk } from './waiting-desk.js'

/** What a limiter over a store is made of, all of one policy. */
export interface StoreLimiterParts {
  readonly policy: Policy
  /** Through which all of `verbs` and `leases` ask. */
  readonly store: CallGuard
  /** Of all that was asked of it for leases. */
  readonly late: LateAnswers
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
export class StoreLimiter extends QueuedLimiter implements FleetLimiter, WaitingDesk<Decision> {
  readonly calls: StoreOrOutage
  protected parts: StoreLimiterParts
  private readonly decisions: ToldDecisions
  private readonly waiting: StoreWaiting<Decision>
  private readonly account: OutageAccount
  private isClosed = false

  constructor(parts: StoreLimiterParts) {
    super()
    this.parts = parts
    this.calls = new StoreOrOutage(() => this.parts)
    this.decisions = new ToldDecisions(parts.hotKeys)
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
    if (leases === undefined) keysUnder(policy, key)
    if (this.waiting.isQueued(key)) return this.deny(key, tokens).then((decision) => this.decisions.tell(key, tokens, decision))
    const answer = leases === undefined ? this.calls.take(key, tokens) : leases.take(key, tokens)
    return answer instanceof Promise ? this.toldLater(key, tokens, answer) : this.decisions.tell(key, tokens, answer)
  }

  peek(key: Key, cost = 1): Awaitable<Decision> {
    this.checkOpen()
    return this.calls.peek(key, cost)
  }

  wait(key: Key, options?: WaitOptions): Promise<Decision> {
    if (this.isClosed) return Promise.reject(closed())
    const own = ownKey(key)
    return this.toldLater(own, options?.cost ?? 1, this.waiting.wait(own, options))
  }

  async reserve(key: Key, cost: number): Promise<FleetReservation> {
    this.checkOpen()
    const { verbs } = this.parts
    const own = ownKey(key)
    const tokens = checkedCost(cost)
    const booked = await this.calls.unlessOut<Booked | Decision>(verbs.book(own, tokens, Number.POSITIVE_INFINITY), () =>
      this.calls.without(own, tokens),
    )
    const booking = new FleetBooking(verbs, booked, () => this.waiting.released(own))
    this.decisions.tell(own, tokens, { ...booking.decision, allowed: booking.allowed })
    return booking
  }

  refund(key: Key, tokens: number): Promise<Decision> {
    return this.changed(key, (verbs) => verbs.refund(key, tokens), 'kept')
  }

  penalize(key: Key, tokens: number): Promise<Decision> {
    return this.changed(key, (verbs) => verbs.penalize(key, tokens))
  }

  block(key: Key, duration: Duration): Promise<Decision> {
    return this.changed(key, (verbs) => verbs.block(key, duration))
  }

  reset(key: Key): Promise<Decision> {
    return this.changed(key, (verbs) => verbs.reset(key), 'dropped')
  }

  key(key: Key): FleetBoundKey {
    this.checkOpen()
    keysUnder(this.policy, key)
    const own = ownKey(key)
    const bound: FleetBoundKey = { key: own, take: (cost) => this.take(own, cost), peek: (cost) => this.peek(own, cost) }
    return shownAs(bound, 'FleetBoundKey', this.toJSON())
  }

  update(policy: Policy): void {
    this.checkOpen()
    this.changeTo(this.parts.remake(policy))
  }

  stats(): FleetStats {
    this.checkOpen()
    const { store, late, leases, outage } = this.parts
    return {
      storeCalls: store.counts.answered,
      storeFailures: store.counts.failed,
      localDecisions: leases?.decisions ?? 0,
      outageDecisions: outage.decisions,
      timeouts: store.counts.timedOut,
      outages: store.counts.givenUp,
      lateAnswers: late.count,
      admittedTokens: this.decisions.admittedTokens,
      chargedTokens: Math.round(store.counts.charged),
      outageTokens: this.decisions.outageTokens,
      accountedTokens: this.account.tokens,
      leases: leases?.size ?? 0,
    }
  }

  hotKeys(n?: number): HotKeys {
    this.checkOpen()
    return this.decisions.top(n)
  }

  shards(n = 10): ShardLoads {
    this.checkOpen()
    return this.parts.store.load.top(checkedTop(n))
  }

  close(): void {
    closeQueueOf(this)
    this.isClosed = true
    this.waiting.close()
    this.parts.leases?.close()
    this.account.close()
    this.parts.outage.close()
  }

  // What waiting asks for.
  book(key: Key, cost: number, mostMs: number): Promise<Booked> {
    return this.parts.verbs.book(key, cost, mostMs * 1000)
  }

  async answer(booked: Booked, sinceMs: number): Promise<Decision | undefined> {
    const { verbs, leases, leaseUs } = this.parts
    // A process that was stopped has slept too long: its token is void, as a leased one would be.
    if (leases !== undefined && sinceMs * 1000 > booked.waitUs + surelyUs(leaseUs)) return undefined
    return verbs.answer(booked)
  }

  giveBack(booked: Booked): void {
    const { store, verbs } = this.parts
    store.unwanted.collect(booked.key, booked.order, () => verbs.discard(booked).then(() => this.waiting.released(booked.key)))
  }

  refuse(decision: Decision): Decision {
    return this.parts.verbs.refuse(decision)
  }

  async deny(key: Key, cost: number): Promise<Decision> {
    return this.refuse(await this.calls.peek(key, cost))
  }

  policyNow(): Policy {
    return this.parts.policy
  }

  waitWithout(request: WaitRequest): Promise<Decision> {
    return this.calls.waitWithout(request)
  }

  private async changed(key: Key, verb: (verbs: FleetVerbs) => Promise<Decision>, held?: HeldThen | 'kept'): Promise<Decision> {
    this.checkOpen()
    const { leases, verbs } = this.parts
    // What ended while the store forgets what it lent would be given back into what is spent afterwards.
    if (held === 'dropped') leases?.forget(key, held)
    const decision = await verb(verbs)
    if (held === 'kept') leases?.refunded(key, decision)
    else leases?.forget(key, held)
    this.waiting.released(key)
    return decision
  }

  /** What is held under the policy of before goes back at once: it is spent by nobody. */
  protected changeTo(parts: StoreLimiterParts): void {
    this.parts.leases?.close()
    this.parts = parts
  }

  protected toldLater(key: Key, cost: number, answer: Promise<Decision>): Promise<Decision> {
    return answer.then((decision) => {
      if (decision instanceof StorePermit) decision.onRelease(() => this.waiting.released(key))
      return this.decisions.tell(key, cost, decision)
    })
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
