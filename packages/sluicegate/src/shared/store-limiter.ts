import { blockUs, checkedAheadMs, checkedCost, checkedTokens, checkedTop, type ReserveOptions } from '../arguments.js'
import { type Awaitable, chained } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { DecisionCounter } from '../decision/decision-counts.js'
import { publishDenial } from '../decision/diagnostics.js'
import { type HotKeys, TopLists } from '../decision/hot-keys.js'
import { holdsPermits, isPermit } from '../decision/permit.js'
import { emptyReceipt, type Receipt, type Receipting, TAKE, WAIT } from '../decision/receipt.js'
import type { Reservation } from '../decision/reservation.js'
import { closedError } from '../errors.js'
import { keysUnder, ownKey } from '../key.js'
import type { BoundKey, Key, WaitOptions } from '../limiter.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { closeQueueOf, QueuedLimiter } from '../queue/create-queue.js'
import { shownAs } from '../shown.js'
import type { Duration } from '../time/duration.js'
import { type Booked, bookedBy, canComeBack, decisionOf, newOperationId, type Operation, takenBy } from './backend.js'
import { CallGuard, type CallPlaces } from './calls/call-guard.js'
import type { ShardLoads } from './calls/shard-load.js'
import { LateAnswers } from './leases/late-answers.js'
import type { ForgottenTokens } from './leases/lease-table.js'
import type { LeasedTakes } from './leases/leased-takes.js'
import { Spending } from './leases/spending.js'
import type { InForce } from './leases/waiting-takes.js'
import { type LocalShare, localShareOf } from './outage/local-share.js'
import { Outage } from './outage/outage.js'
import { OutageAccount } from './outage/outage-account.js'
import type { RegionStats } from './region-stats.js'
import type { SharedLimiter, SharedStats } from './shared-limiter.js'
import type { SharedOptions } from './shared-options.js'
import { partsOver, policyAfter, type SharedBase, type SharedParts, withPermit } from './shared-parts.js'
import { SharedPermit } from './shared-permit.js'
import { Reservations, SharedReservation } from './waiting/reservations.js'
import { type ChargedAccount, SharedReceipt } from './waiting/shared-receipt.js'
import { SharedWaiting } from './waiting/shared-waiting.js'

/** Counts and publishes the decisions that callers get, each once, wherever it was made. */
export class DecisionStats {
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

/** What {@link StoreLimiter} is made of. */
export interface StoreLimiterParts extends Pick<SharedBase, 'connect' | 'crossSlot' | 'clock'> {
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
export class StoreLimiter extends QueuedLimiter implements SharedLimiter, Receipting {
  protected parts: SharedParts
  protected readonly guard: CallGuard
  private readonly base: SharedBase
  private readonly horizonMs: number
  private readonly late: LateAnswers
  private readonly decisions: DecisionStats
  private readonly reservations: Reservations
  private readonly waiting: SharedWaiting
  private readonly account: OutageAccount
  private readonly share: LocalShare
  private readonly region: StoreLimiterParts['region']
  private isClosed = false
  /** Grows with each change of the numbers: what was charged before it may have been forgiven, and does not come back. */
  private generation = 0

  constructor({
    connect,
    crossSlot,
    policy,
    places,
    options,
    countedShare,
    timeoutMs,
    horizonMs,
    lateAdvice,
    isMadeLate,
    clock,
    region,
  }: StoreLimiterParts) {
    super()
    this.region = region
    const { outage = 'local', localShare, maxKeys = 100_000, hotKeys = 0, maxWaiters = 10_000 } = options
    const current = (): SharedParts => this.parts
    this.share = localShareOf(outage, localShare, countedShare)
    this.account = new OutageAccount(current, clock, this.share)
    this.guard = new CallGuard(places, clock, timeoutMs, this.account)
    this.late = new LateAnswers(lateAdvice)
    this.horizonMs = horizonMs
    this.base = {
      connect,
      crossSlot,
      guard: this.guard,
      outage: new Outage(outage, policy, this.share, clock, isMadeLate),
      late: this.late,
      inForce: {} as InForce,
      clock,
      maxKeys,
      isLeased: region && ((each) => region.isLeased(each)),
    }
    this.parts = partsOver(this.base, policy, horizonMs)
    this.decisions = new DecisionStats(hotKeys)
    this.reservations = new Reservations(current)
    this.waiting = new SharedWaiting(this.reservations, clock, maxWaiters)
  }

  get policy(): Policy {
    this.checkOpen()
    return this.parts.policy
  }

  take(key: Key, cost = 1): Awaitable<Decision> {
    this.checkOpen()
    const tokens = checkedCost(cost)
    const { leases } = this.parts
    if (this.waiting.isQueued(key)) return this.reservations.deny(key, tokens).then((decision) => this.record(key, tokens, decision))
    if (leases === undefined) return this.takeExact(key, tokens)
    const decision = leases.take(key, tokens)
    return decision instanceof Promise
      ? decision.then((later) => this.record(key, tokens, later))
      : this.decisions.record(key, tokens, decision)
  }

  /** {@link take} with a receipt. */
  [TAKE](key: Key, cost = 1): Awaitable<Receipt> {
    this.checkOpen()
    // A permit is its own receipt.
    if (holdsPermits(this.parts.policy)) return chained(this.take(key, cost), emptyReceipt)
    const own = ownKey(key)
    const tokens = checkedCost(cost)
    const { leases } = this.parts
    if (this.waiting.isQueued(own)) return chained(this.take(own, tokens), emptyReceipt)
    if (leases === undefined) return this.takeHeld(own, tokens)
    const spending = new Spending()
    const account = this.leasedAccount(own, leases, spending)
    return chained(leases.take(own, tokens, spending), (decision) =>
      this.receipt(own, tokens, decision, decision.source === 'outage' && spending.booked === undefined ? undefined : account),
    )
  }

  /** {@link wait} with a receipt. */
  [WAIT](key: Key, options?: WaitOptions): Promise<Receipt> {
    if (this.isClosed) return Promise.reject(closedError())
    const own = ownKey(key)
    const cost = options?.cost ?? 1
    const { generation } = this
    return this.waiting
      .wait(own, options)
      .then(({ decision, booked }) =>
        this.receipt(own, cost, decision, booked && canComeBack(booked) ? this.accountOf(booked, generation) : undefined),
      )
  }

  peek(key: Key, cost = 1): Awaitable<Decision> {
    this.checkOpen()
    return this.parts.fallback.execute({ verb: 'peek', key, cost: checkedCost(cost) }).then(decisionOf)
  }

  wait(key: Key, options?: WaitOptions): Promise<Decision> {
    if (this.isClosed) return Promise.reject(closedError())
    const own = ownKey(key)
    const cost = options?.cost ?? 1
    return this.waiting.wait(own, options).then(({ decision }) => this.record(own, cost, decision))
  }

  async reserve(key: Key, cost: number, options?: ReserveOptions): Promise<Reservation<'later'>> {
    this.checkOpen()
    const maxWaitUs = checkedAheadMs(options) * 1000
    const { generation } = this
    const { fallback, backend } = this.parts
    const own = ownKey(key)
    const tokens = checkedCost(cost)
    const operation = { verb: 'reserve', key: own, cost: tokens, id: newOperationId(), maxWaitUs } as const
    const booked = bookedBy(operation, await fallback.execute(operation))
    const reservation = new SharedReservation(backend, booked, this.accountOf(booked, generation))
    this.decisions.record(own, tokens, { ...reservation.decision, allowed: reservation.allowed })
    return reservation
  }

  async refund(key: Key, tokens: number): Promise<Decision> {
    this.checkOpen()
    const left = this.waiting.gift(key, checkedTokens(tokens))
    return left === 0 ? this.peek(key) : this.changed({ verb: 'refund', key, tokens: left }, 'kept')
  }

  async penalize(key: Key, tokens: number): Promise<Decision> {
    return this.changed({ verb: 'penalize', key, tokens: checkedTokens(tokens) })
  }

  async block(key: Key, duration: Duration): Promise<Decision> {
    return this.changed({ verb: 'block', key, us: blockUs(duration) })
  }

  async reset(key: Key): Promise<Decision> {
    const wake = this.waiting.resetting(key)
    const decision = await this.changed({ verb: 'reset', key }, 'dropped')
    wake()
    return decision
  }

  key(key: Key): BoundKey<Decision, 'later'> {
    this.checkOpen()
    keysUnder(this.policy, key)
    const own = ownKey(key)
    const bound: BoundKey<Decision, 'later'> = { key: own, take: (cost) => this.take(own, cost), peek: (cost) => this.peek(own, cost) }
    return shownAs(bound, 'BoundKey', this.toJSON())
  }

  update(policy: Policy): void {
    this.checkOpen()
    const next = policyAfter(this.parts.policy, checkedPolicy(policy))
    this.changeTo(next, this.horizonMs)
  }

  stats(): SharedStats {
    this.checkOpen()
    const { guard, late, account } = this
    const { leases, outage } = this.parts
    return {
      decisions: this.decisions.counter.of(this.parts.policy.name),
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
      localShare: this.share.inForce,
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
    this.parts.leases?.close()
    this.account.close()
    this.parts.outage.close()
    this.region?.close()
  }

  /** Tokens leased under the policy before go back at once: no take spends them. */
  protected changeTo(policy: Policy, horizonMs: number): void {
    const isOther = numbersOf(policy) !== numbersOf(this.parts.policy)
    if (isOther) this.generation++
    if (isOther) this.waiting.changing()
    const next = partsOver(this.base, policy, horizonMs)
    this.base.outage.update(policy)
    this.parts.leases?.close()
    this.parts = next
    if (isOther) this.waiting.changed()
  }

  protected takeExact(key: Key, cost: number): Promise<Decision> {
    const { parts } = this
    const operation = { verb: 'take', key, cost, id: newOperationId() } as const
    return parts.fallback.execute(operation).then((answer) => this.record(key, cost, withPermit(parts, decisionOf(answer), operation)))
  }

  private takeHeld(key: Key, cost: number): Promise<Receipt> {
    const { generation } = this
    const operation = { verb: 'take', key, cost, id: newOperationId(), isHeld: true } as const
    return this.parts.fallback.execute(operation).then((answer) => {
      const booked = bookedBy(operation, answer)
      return this.receipt(key, cost, takenBy(operation, answer), canComeBack(booked) ? this.accountOf(booked, generation) : undefined)
    })
  }

  /** @param account undefined where nothing of it comes back: a decision of an outage has charged nothing at the backend. */
  private receipt(key: Key, cost: number, decision: Decision, account: ChargedAccount | undefined): Receipt {
    const recorded = this.record(key, cost, decision)
    const isCharged = decision.allowed && !isPermit(decision)
    return isCharged && account !== undefined ? new SharedReceipt(recorded, cost, account) : emptyReceipt(recorded)
  }

  /** Of what one operation has charged at the backend. @param generation of the numbers when it began. */
  private accountOf(booked: Booked, generation: number): ChargedAccount {
    const { key, cost, id } = booked
    return {
      giveBack: async (tokens) => {
        const { backend, leases, policy } = this.parts
        if (this.generation !== generation && policy.algorithm !== 'concurrency') {
          // A place is held or not, whatever the numbers.
          if (holdsPermits(policy) && tokens === cost) await backend.execute({ verb: 'release', key, cost, id })
          return this.peek(key)
        }
        const decision = decisionOf(await backend.execute({ verb: 'giveBack', key, charge: booked, tokens }))
        leases?.refunded(key, decision)
        this.waiting.released(key, decision.retryAfterMs)
        return decision
      },
      charge: (tokens) => this.penalize(key, tokens),
    }
  }

  /** Of what one take has spent of leases, or charged at the backend because these did not decide it. */
  private leasedAccount(key: Key, leases: LeasedTakes, spending: Spending): ChargedAccount {
    const { generation } = this
    return {
      giveBack: async (tokens) => {
        if (spending.booked !== undefined) return this.accountOf(spending.booked, generation).giveBack(tokens)
        if (this.generation !== generation) return undefined
        await leases.giveBack(key, spending, tokens)
        return this.waiting.released(key)
      },
      charge: (tokens) => this.penalize(key, tokens),
    }
  }

  protected record(key: Key, cost: number, decision: Decision): Decision {
    if (decision instanceof SharedPermit) decision.onRelease(() => this.waiting.released(key))
    return this.decisions.record(key, cost, decision)
  }

  protected checkOpen(): void {
    if (this.isClosed) throw closedError()
  }

  private async changed(operation: Operation, held?: ForgottenTokens | 'kept'): Promise<Decision> {
    this.checkOpen()
    const { leases, backend } = this.parts
    const { key } = operation
    // Tokens that expire while the backend forgets its leases would reduce later charges when returned.
    if (held === 'dropped') leases?.forget(key, held)
    const decision = decisionOf(await backend.execute(operation))
    if (held === 'kept') leases?.refunded(key, decision)
    else leases?.forget(key, held)
    this.waiting.released(key, decision.retryAfterMs)
    return decision
  }
}

/** What of a policy its numbers at the backend depend on. */
function numbersOf({ name, ...numbers }: Policy): string {
  return JSON.stringify({ ...numbers, policies: numbers.policies?.map(numbersOf) })
}
