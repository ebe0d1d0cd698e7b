import type { Decision } from '../../decision/decision.js'
import { isOutage } from '../../errors.js'
import { type RefillOutcome, spentWithinUs } from '../../lease/grant.js'
import { KeyLease } from '../../lease/key-lease.js'
import { leaseUsOf, mostLeased, surelyUs } from '../../lease/leasing.js'
import type { Policy } from '../../policy/policy.js'
import { type Clock, type Ticker, tickerOf } from '../../time/clock.js'
import { Alarm, type Alert, alertOf } from '../../waiting/alarm.js'
import { type Backend, type Charge, isGranted } from '../backend.js'

/** Keys checked to make room for one. */
const LOOKED_AT = 16

/** What a table of leases is made of. */
export interface LeaseTableParts {
  readonly policy: Policy
  readonly backend: Backend
  /** Which policy of `allOf` the backend knows it as; else 0. */
  readonly part: number
  readonly clock: Clock
  readonly horizonMs: number
  readonly maxKeys: number
  /** Fractions; default `Math.random`. */
  readonly random?: () => number
  /** Called with the tokens of each grant. */
  readonly charged?: (tokens: number) => void
  /** Called with each answer: whether it came too late for its tokens to be spent. */
  readonly answered?: (isLate: boolean) => void
}

/** What happens to leased tokens when a verb changes their key: returned, unless the backend has forgotten that it granted them. */
export type ForgottenTokens = 'returned' | 'dropped'

/** The leases of one policy in this process, by key. */
export class LeaseTable {
  readonly policy: Policy
  readonly leaseUs: number
  /** A larger cost never passes. */
  readonly mostTokens: number
  private readonly parts: LeaseTableParts
  private readonly ticker: Ticker
  private readonly horizonUs: number
  private readonly leases = new Map<string, KeyLease>()
  private readonly returns: LeaseReturns
  /** The same key is often taken again. */
  private lastKey = ''
  private lastLease: KeyLease | undefined

  constructor(parts: LeaseTableParts) {
    this.parts = parts
    this.policy = parts.policy
    this.ticker = tickerOf(parts.clock)
    this.horizonUs = Math.round(parts.horizonMs * 1000)
    this.leaseUs = leaseUsOf(parts.horizonMs)
    this.mostTokens = mostLeased(parts.policy, this.leaseUs)
    this.returns = new LeaseReturns(parts)
  }

  /** Keys with a lease or a cached denial. */
  get size(): number {
    return this.leases.size
  }

  /** The lease of a key; undefined when the table is full. */
  of(key: string, nowUs: number): KeyLease | undefined {
    if (key === this.lastKey && this.lastLease !== undefined) return this.lastLease
    const lease = this.leases.get(key) ?? this.newLease(key, nowUs)
    this.lastKey = key
    this.lastLease = lease
    return lease
  }

  /** A lease for one take alone, outside the table. */
  aside(cost: number, nowUs: number): KeyLease {
    const lease = this.madeLease(nowUs)
    lease.demand.join(cost, nowUs)
    return lease
  }

  /** A verb changed the key: what is known of it is void. */
  forget(key: string, held: ForgottenTokens): void {
    const lease = this.leases.get(key)
    if (lease === undefined) return
    const nowUs = this.ticker.read()
    if (held === 'dropped') lease.drain(nowUs)
    else {
      lease.forget(nowUs)
      this.returns.send(lease, key)
    }
  }

  /** Tokens of the key were refunded at the backend, where it stands like `decision` now. */
  refunded(key: string, decision: Decision): void {
    this.leases.get(key)?.refunded(decision, this.ticker.read())
  }

  /**
   * The backend decided a cost that was requested by itself.
   *
   * @returns the decision; of a denial, with how long this process denies it.
   */
  answered(key: string, cost: number, decision: Decision): Decision {
    const lease = this.leases.get(key)
    if (lease === undefined) return decision
    if (decision.allowed) {
      lease.passed(cost, decision.remaining)
      return decision
    }
    const nowUs = this.ticker.read()
    const { retryAfterMs, resetAfterMs } = decision
    lease.refuse(cost, nowUs + retryAfterMs * 1000, nowUs + resetAfterMs * 1000, nowUs)
    const deniedMs = Math.ceil(((lease.deniedUntil(nowUs, cost) ?? 0) - nowUs) / 1000)
    return deniedMs > retryAfterMs ? { ...decision, retryAfterMs: deniedMs } : decision
  }

  /** Gives back `tokens` of what one take drew from grants, of the newest first. The leases of the key stay. */
  async giveBack(key: string, charges: readonly Charge[], tokens: number): Promise<void> {
    const { backend, part } = this.parts
    let left = tokens
    const returns: Promise<unknown>[] = []
    for (const charge of charges.toReversed()) {
      if (!isGranted(charge) || charge.part !== part) continue
      const back = Math.min(left, charge.cost)
      left -= back
      if (back > 0) returns.push(backend.execute({ verb: 'giveBack', key, charge, tokens: back, isSilent: true }))
    }
    await Promise.all(returns)
    this.leases.get(key)?.reopen(this.ticker.read())
  }

  /** Returns all returnable tokens, and those still on their way. */
  close(): void {
    this.returns.close()
  }

  /** Requests a refill for the takes to come, if one is due. */
  refillIfLow(lease: KeyLease, key: string, nowUs: number): void {
    if (lease.refill === undefined && lease.isLow(nowUs)) this.refill(lease, key, true).catch(() => undefined)
  }

  /**
   * The refill on its way, or a new one. A key has at most one request on its way: takes that come meanwhile wait for it, and then check
   * their lease again first.
   *
   * @param canBeAlone whether the backend can decide the take by itself; else a single token is leased.
   */
  refill(lease: KeyLease, key: string, canBeAlone: boolean): Promise<RefillOutcome> {
    lease.refill ??= this.requestTokens(lease, key, canBeAlone).finally(() => {
      lease.refill = undefined
    })
    return lease.refill
  }

  /** @param deniedUntilUs undefined where it passes, as far as this policy goes. */
  decision(lease: KeyLease, nowUs: number, deniedUntilUs: number | undefined): Decision {
    const { limit, name } = this.policy
    return {
      allowed: deniedUntilUs === undefined,
      limit,
      remaining: lease.remainingAt(nowUs),
      retryAfterMs: deniedUntilUs === undefined ? 0 : Math.max(1, Math.ceil((deniedUntilUs - nowUs) / 1000)),
      resetAfterMs: lease.resetAfterMs(nowUs),
      policy: name,
      source: 'lease',
    }
  }

  private async requestTokens(lease: KeyLease, key: string, canBeAlone: boolean): Promise<RefillOutcome> {
    // All takes of this turn are one request.
    await undefined
    const { backend, part } = this.parts
    const request = lease.want(this.ticker.read())
    const { want, least, isLease } = request
    if (!isLease && canBeAlone) return 'alone'
    try {
      const grant = await backend.lease({ key, part, want, least, demand: lease.demand.report() })
      const arrivedUs = this.ticker.read()
      if (grant.isNone && canBeAlone) return 'alone'
      this.parts.charged?.(grant.tokens)
      lease.addGrant(grant, request, arrivedUs)
      this.returns.watch(lease, key)
      const isLate = arrivedUs - request.sentUs > surelyUs(spentWithinUs(grant, this.leaseUs))
      this.parts.answered?.(isLate)
      return isLate ? 'late' : 'in time'
    } catch (error) {
      lease.failed(this.ticker.read())
      if (isOutage(error)) return 'out'
      throw error
    }
  }

  private newLease(key: string, nowUs: number): KeyLease | undefined {
    const { leases } = this
    const { maxKeys } = this.parts
    const isFull = leases.size >= maxKeys
    let looked = 0
    for (const [other, lease] of leases) {
      leases.delete(other)
      // The demand of a recently used key is forgotten only when room is needed.
      if (!lease.isEmpty(nowUs) || (!isFull && lease.demand.isRecent(nowUs))) leases.set(other, lease)
      // Two checks for each new key keep the table clean; a full table is searched further.
      if (++looked >= (leases.size < maxKeys ? 2 : LOOKED_AT)) break
    }
    if (leases.size >= maxKeys) return undefined
    const lease = this.madeLease(nowUs)
    leases.set(key, lease)
    return lease
  }

  private madeLease(nowUs: number): KeyLease {
    return new KeyLease(nowUs, this.horizonUs, this.mostTokens, this.parts.random, this.parts.part)
  }
}

/**
 * Returns unspent tokens to the backend. They expire here first and are returned after that, by one call for each grant of a key: so no
 * returned token is ever spent. If the call is lost, the tokens stay charged, as those of a crashed process do.
 */
export class LeaseReturns {
  private readonly parts: Pick<LeaseTableParts, 'backend' | 'clock'>
  private readonly ticker: Ticker
  /** One timer for all keys. */
  private readonly alarm: Alarm
  /** For the expiry of the leased tokens of each key. */
  private readonly endings = new Map<KeyLease, Alert>()
  private order = 0
  private isClosed = false

  constructor(parts: LeaseReturns['parts']) {
    this.parts = parts
    this.ticker = tickerOf(parts.clock)
    // Without a clock no token is spent either.
    this.alarm = new Alarm(parts.clock, () => {
      for (const ending of this.endings.values()) this.alarm.clear(ending)
      this.endings.clear()
    })
  }

  /** Returns the tokens of a key when they expire. Those of a later grant may expire before others: a region's last for different times. */
  watch(lease: KeyLease, key: string): void {
    this.send(lease, key)
    const { backUs } = lease
    const before = this.endings.get(lease)
    if (backUs >= (before?.dueUs ?? Number.POSITIVE_INFINITY)) return
    const ending =
      before ??
      alertOf(() => {
        this.endings.delete(lease)
        if (this.isClosed) lease.end()
        this.watch(lease, key)
      })
    this.endings.set(lease, ending)
    // Takes that wait for the grant are served first, also by a limiter that was closed meanwhile.
    this.alarm.set(ending, this.isClosed ? this.ticker.read() : backUs, this.order++)
  }

  /** Returns tokens that have expired. */
  send(lease: KeyLease, key: string): void {
    const { backend } = this.parts
    for (const charge of lease.unspentAt(this.ticker.read())) {
      const reopen = (): void => lease.reopen(this.ticker.read())
      backend.execute({ verb: 'giveBack', key, charge, tokens: charge.cost, isSilent: true }).then(reopen, () => undefined)
    }
  }

  /** Returns all tokens, and those still on their way. */
  close(): void {
    this.isClosed = true
    for (const ending of [...this.endings.values()]) {
      this.alarm.clear(ending)
      ending.ring(this.ticker.read())
    }
  }
}
