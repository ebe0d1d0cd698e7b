import { blockUs, checkedAheadMs, checkedCost, checkedTokens, checkedTop, type ReserveOptions } from '../arguments.js'
import { type Awaitable, chained, type When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { DecisionCounter } from '../decision/decision-counts.js'
import { publishDenial } from '../decision/diagnostics.js'
import { type HotKeys, TopLists } from '../decision/hot-keys.js'
import { holdsPermits, isPermit } from '../decision/permit.js'
import { ChargedReservation, type Reservation, type Settling, TAKE, uncharged, WAIT } from '../decision/reservation.js'
import { closedError } from '../errors.js'
import type { Hold, OpenOptions } from '../holds/hold.js'
import type { HoldsById } from '../holds/holds-by-id.js'
import { isByName, type KeysByName, keyInOrder, keysUnder, ownKey } from '../key.js'
import type { BoundKey, Key, WaitOptions } from '../limiter.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { closeQueueOf, QueuedLimiter } from '../queue/create-queue.js'
import { shownAs } from '../shown.js'
import type { Duration } from '../time/duration.js'
import { canComeBack, decisionOf, newOperationId, type Operation, reservedBy, takenBy } from './backend.js'
import { CallGuard, type CallPlaces } from './calls/call-guard.js'
import type { ShardLoads } from './calls/shard-load.js'
import { SharedHolds } from './holds/shared-holds.js'
import { WorkPlace } from './holds/work-place.js'
import { KeyChanges } from './key-changes.js'
import { type LocalShare, localShareOf } from './outage/local-share.js'
import { Outage } from './outage/outage.js'
import { OutageAccount } from './outage/outage-account.js'
import { hasOtherNumbers, PolicyInForce, policyAfter, type SharedBase, type UnderPolicy } from './policy-in-force.js'
import type { RegionStats } from './region-stats.js'
import type { SharedLimiter, SharedStats } from './shared-limiter.js'
import type { SharedOptions } from './shared-options.js'
import { SharedPermit, withPermit } from './shared-permit.js'
import { AskedAccount, LaterReservation, StoreAccount } from './store-account.js'
import { LateAnswers } from './takes/late-answers.js'
import type { ForgottenTokens } from './takes/lease-table.js'
import { Reservations } from './waiting/reservations.js'
import { SharedWaiting } from './waiting/shared-waiting.js'

/** Counts and publishes the decisions that callers get, each once, wherever it was made. */
class DecisionStats {
  admittedTokens = 0
  outageTokens = 0
  readonly counter = new DecisionCounter()
  private readonly lists: TopLists

  constructor(hotKeys: number) {
    this.lists = new TopLists(hotKeys)
  }

  record<Answer extends Decision>(key: Key, cost: number, decision: Answer): Answer {
    this.counter.count(decision)
    this.lists.count(key, decision.allowed)
    if (decision.allowed) {
      this.admittedTokens += cost
      if (decision.source === 'outage') this.outageTokens += cost
    } else publishDenial(key, cost, decision)
    return decision
  }

  top(n?: number): HotKeys {
    return this.lists.top(n)
  }
}

/** What {@link BackedLimiter} is made of. */
export interface BackedLimiterParts extends Pick<SharedBase, 'connect' | 'crossSlot' | 'clock'> {
  readonly policy: Policy
  /** Where keys are, as far as that is known. */
  readonly places: CallPlaces
  readonly options: Omit<SharedOptions, 'store' | 'timeout'>
  /** How long a call to the backend may take. */
  readonly timeoutMs: number
  /** The share in an outage where no option says what it is. */
  readonly countedShare: () => LocalShare
  /** How far ahead tokens are leased; 0 for not at all. */
  readonly horizonMs: number
  /** What to do when answers take longer than a lease. */
  readonly lateAdvice: string
  /** Where a limiter in memory can be made only while a request is handled. */
  readonly isMadeLate?: boolean
  /** Of a limiter whose budget has its home elsewhere. */
  readonly region?: { isLeased(policy: Policy): boolean; stats(): RegionStats; close(): void } | undefined
}

/**
 * The limiter of a policy whose state a backend holds. `take` is decided by the tokens leased ahead if it can be, else by one call to the
 * backend, and in an outage by the option `outage`.
 */
export class BackedLimiter extends QueuedLimiter implements SharedLimiter, Settling {
  protected readonly guard: CallGuard
  private readonly inForce: PolicyInForce
  private readonly horizonMs: number
  private readonly late: LateAnswers
  private readonly decisions: DecisionStats
  private readonly reservations: Reservations
  private readonly waiting: SharedWaiting
  private readonly holds: SharedHolds
  private readonly changes: KeyChanges
  private readonly account: OutageAccount
  private readonly share: LocalShare
  private readonly region: BackedLimiterParts['region']
  private isClosed = false

  constructor(parts: BackedLimiterParts) {
    super()
    const { connect, crossSlot, policy, places, options, countedShare, timeoutMs, horizonMs, lateAdvice, isMadeLate, clock, region } = parts
    const { outage: mode = 'local', share: givenShare, maxKeys = 100_000, hotKeys = 0, maxWaiting = 10_000 } = options
    const isLeased = region && ((each: Policy) => region.isLeased(each))
    const share = localShareOf(mode, givenShare, countedShare)
    const guard = new CallGuard(places, clock, timeoutMs)
    const late = new LateAnswers(lateAdvice)
    const outage = new Outage(mode, policy, share, clock, isMadeLate)
    this.inForce = new PolicyInForce({ connect, crossSlot, guard, outage, late, clock, maxKeys, isLeased }, policy, horizonMs)
    this.account = new OutageAccount(this.inForce, clock, share)
    guard.events = this.account
    this.reservations = new Reservations(this.inForce)
    this.waiting = new SharedWaiting(this.reservations, clock, maxWaiting)
    this.changes = new KeyChanges(this.inForce, this.waiting)
    this.decisions = new DecisionStats(hotKeys)
    const record = (key: Key, cost: number, decision: Decision): Decision => this.record(key, cost, decision)
    this.holds = new SharedHolds(new WorkPlace(this.inForce, this.waiting, clock, record))
    this.guard = guard
    this.share = share
    this.late = late
    this.horizonMs = horizonMs
    this.region = region
  }

  protected get now(): UnderPolicy {
    return this.inForce.now
  }

  get policy(): Policy {
    this.checkOpen()
    return this.now.policy
  }

  take(given: Key | KeysByName, cost = 1): Awaitable<Decision> {
    this.checkOpen()
    const key = this.inOrder(given)
    const tokens = checkedCost(cost)
    const { leases } = this.now
    if (this.waiting.isQueued(key)) return this.waiting.deny(key, tokens).then((decision) => this.record(key, tokens, decision))
    if (leases === undefined) return this.takeExact(key, tokens)
    const decision = leases.take(key, tokens)
    return decision instanceof Promise
      ? decision.then((later) => this.record(key, tokens, later))
      : this.decisions.record(key, tokens, decision)
  }

  /** {@link take} that can be settled. */
  [TAKE](key: Key | KeysByName, cost = 1): Awaitable<Reservation<When>> {
    this.checkOpen()
    // A permit is released.
    if (holdsPermits(this.now.policy)) return chained(this.take(key, cost), uncharged)
    const own = ownKey(this.inOrder(key))
    const tokens = checkedCost(cost)
    if (this.waiting.isQueued(own)) return chained(this.take(own, tokens), uncharged)
    const account = new StoreAccount(this.changes, own, tokens)
    const { leases } = this.now
    const decision = leases === undefined ? this.takenAt(own, tokens, account) : leases.take(own, tokens, account.charges)
    return chained(decision, (decided) => this.reservationOf(own, tokens, decided, account))
  }

  /** {@link wait} that can be settled. */
  async [WAIT](key: Key | KeysByName, options?: WaitOptions): Promise<Reservation<When>> {
    if (this.isClosed) throw closedError()
    const own = ownKey(this.inOrder(key))
    const cost = options?.cost ?? 1
    const account = new StoreAccount(this.changes, own, cost)
    const { decision, reserved } = await this.waiting.wait(own, options)
    if (reserved && canComeBack(reserved)) account.charges.push(reserved)
    return this.reservationOf(own, cost, decision, account)
  }

  peek(key: Key | KeysByName, cost = 1): Awaitable<Decision> {
    this.checkOpen()
    return this.now.fallback.execute({ verb: 'peek', key: this.inOrder(key), cost: checkedCost(cost) }).then(decisionOf)
  }

  wait(key: Key | KeysByName, options?: WaitOptions): Promise<Decision> {
    if (this.isClosed) return Promise.reject(closedError())
    const own = ownKey(this.inOrder(key))
    const cost = options?.cost ?? 1
    return this.waiting.wait(own, options).then(({ decision }) => this.record(own, cost, decision))
  }

  async reserve(key: Key | KeysByName, cost: number, options?: ReserveOptions): Promise<Reservation<'later'>> {
    this.checkOpen()
    const maxWaitUs = checkedAheadMs(options) * 1000
    const own = ownKey(this.inOrder(key))
    const tokens = checkedCost(cost)
    const account = new AskedAccount(this.changes, own, tokens)
    const operation = { verb: 'reserve', key: own, cost: tokens, id: newOperationId(), maxWaitUs } as const
    const reserved = this.waiting.isQueued(own)
      ? await this.waiting.denyReservation(operation)
      : reservedBy(operation, await this.now.fallback.execute(operation))
    const { allowed, decision, waitUs } = reserved
    // One that was decided in an outage holds nothing at the backend: nothing of it comes back.
    const isCharged = canComeBack(reserved)
    if (isCharged) account.charges.push(reserved)
    this.decisions.record(own, tokens, { ...decision, allowed })
    const waitMs = isCharged ? Math.ceil(waitUs / 1000) : decision.retryAfterMs
    return new LaterReservation(decision, allowed, waitMs, tokens, isCharged ? account : undefined)
  }

  async open(key: Key | KeysByName, options: OpenOptions = {}): Promise<Hold<Awaitable<boolean>, 'later'>> {
    this.checkOpen()
    return this.holds.begin(ownKey(this.inOrder(key)), options)
  }

  get byId(): HoldsById {
    this.checkOpen()
    return this.holds.byId
  }

  async refund(given: Key | KeysByName, tokens: number): Promise<Decision> {
    this.checkOpen()
    const key = this.inOrder(given)
    const left = this.waiting.gift(key, checkedTokens(tokens))
    return left === 0 ? this.peek(key) : this.changed({ verb: 'refund', key, tokens: left }, 'kept')
  }

  async penalize(key: Key | KeysByName, tokens: number): Promise<Decision> {
    return this.changed({ verb: 'penalize', key: this.inOrder(key), tokens: checkedTokens(tokens) })
  }

  async block(key: Key | KeysByName, duration: Duration): Promise<Decision> {
    return this.changed({ verb: 'block', key: this.inOrder(key), us: blockUs(duration) })
  }

  async reset(given: Key | KeysByName): Promise<Decision> {
    const key = this.inOrder(given)
    const wake = this.waiting.resetting(key)
    const decision = await this.changed({ verb: 'reset', key }, 'dropped')
    wake()
    return decision
  }

  key(key: Key | KeysByName): BoundKey<Decision, 'later'> {
    this.checkOpen()
    const own = ownKey(this.inOrder(key))
    keysUnder(this.policy, own)
    const bound: BoundKey<Decision, 'later'> = { key: own, take: (cost) => this.take(own, cost), peek: (cost) => this.peek(own, cost) }
    return shownAs(bound, 'BoundKey', this.toJSON())
  }

  update(policy: Policy): void {
    this.checkOpen()
    const next = policyAfter(this.now.policy, checkedPolicy(policy))
    this.changeTo(next, this.horizonMs)
  }

  stats(): SharedStats {
    this.checkOpen()
    const { guard, late, account } = this
    const { leases, outage } = this.now
    return {
      decisions: this.decisions.counter.of(this.now.policy.name),
      storeCalls: guard.counts.answered,
      storeFailures: guard.counts.failed,
      localDecisions: leases?.decisions ?? 0,
      outageDecisions: outage.decisions,
      timeouts: guard.counts.timedOut,
      outages: guard.counts.circuitsOpened,
      openCircuits: guard.openCircuits,
      lateAnswers: late.count,
      admittedTokens: this.decisions.admittedTokens,
      chargedTokens: Math.round(guard.counts.charged),
      outageTokens: this.decisions.outageTokens,
      accountedTokens: account.tokens,
      leases: leases?.size ?? 0,
      nodes: this.share.nodes,
      share: this.share.inForce,
      ...(this.region && { region: this.region.stats() }),
    }
  }

  hotKeys(n?: number): HotKeys {
    this.checkOpen()
    return this.decisions.top(n)
  }

  shards(n = 10): ShardLoads {
    this.checkOpen()
    return this.guard.load.top(checkedTop(n))
  }

  close(): void {
    closeQueueOf(this)
    this.isClosed = true
    this.waiting.close()
    this.holds.close()
    this.now.leases?.close()
    this.account.close()
    this.now.outage.close()
    this.region?.close()
  }

  protected changeTo(policy: Policy, horizonMs: number): void {
    const isOther = hasOtherNumbers(policy, this.now.policy)
    if (isOther) this.waiting.changing()
    this.inForce.change(policy, horizonMs)
    if (isOther) this.waiting.changed()
  }

  private takeExact(key: Key, cost: number): Promise<Decision> {
    const { now } = this
    const operation = { verb: 'take', key, cost, id: newOperationId() } as const
    return now.fallback.execute(operation).then((answer) => this.record(key, cost, withPermit(now, decisionOf(answer), operation)))
  }

  /** A take at the backend that can be settled. */
  private async takenAt(key: Key, cost: number, account: StoreAccount): Promise<Decision> {
    const operation = { verb: 'take', key, cost, id: newOperationId(), canSettle: true } as const
    const answer = await this.now.fallback.execute(operation)
    const reserved = reservedBy(operation, answer)
    if (canComeBack(reserved)) account.charges.push(reserved)
    return takenBy(operation, answer)
  }

  /** Nothing comes back where nothing was charged: a decision of an outage has charged nothing at the backend. */
  private reservationOf(key: Key, cost: number, decision: Decision, account: StoreAccount): Reservation<When> {
    const recorded = this.record(key, cost, decision)
    const isCharged = decision.allowed && !isPermit(decision) && (account.charges.length > 0 || decision.source === 'lease')
    return isCharged ? new ChargedReservation(recorded, true, 0, cost, account) : uncharged(recorded)
  }

  protected record(key: Key, cost: number, decision: Decision): Decision {
    if (decision instanceof SharedPermit) decision.onRelease(() => this.waiting.released(key))
    return this.decisions.record(key, cost, decision)
  }

  /** Keys by name in the order of the policies. */
  protected inOrder(key: Key | KeysByName): Key {
    return isByName(key)
      ? keyInOrder(
          (this.now.policy.policies ?? []).map(({ name }) => name),
          key,
        )
      : key
  }

  protected checkOpen(): void {
    if (this.isClosed) throw closedError()
  }

  private async changed(operation: Operation, held?: ForgottenTokens | 'kept'): Promise<Decision> {
    this.checkOpen()
    return this.changes.make(operation, held)
  }
}
