import { combined, type Decision, refusal } from '../../decision/decision.js'
import { keysFor } from '../../key.js'
import type { RefillOutcome } from '../../lease/grant.js'
import type { KeyLease } from '../../lease/key-lease.js'
import type { Key } from '../../limiter.js'
import { type Clock, type Ticker, tickerOf } from '../../time/clock.js'
import type { LeaseMiss } from './lease-miss.js'
import type { ForgottenTokens, LeaseTable } from './lease-table.js'
import type { LeasedTakes } from './leased-takes.js'
import type { Spending } from './spending.js'

/** Outcomes of refills, the worst last. */
const BADNESS: readonly RefillOutcome[] = ['in time', 'late', 'out']

/**
 * Leased takes of `allOf`: tokens of each policy are leased separately, in whatever slot its key is. A take checks the leases of all
 * policies and then spends from all or from none, in one synchronous step. Only leases that lack tokens are refilled, so a policy that
 * denies costs the others nothing but a refill that was on its way.
 */
export class LeasedAllOf implements LeasedTakes {
  decisions = 0
  private readonly tables: readonly LeaseTable[]
  private readonly ticker: Ticker
  private readonly mostTokens: number
  private readonly miss: LeaseMiss

  constructor(tables: readonly LeaseTable[], miss: LeaseMiss, clock: Clock) {
    this.tables = tables
    this.ticker = tickerOf(clock)
    this.mostTokens = Math.min(...tables.map(({ mostTokens }) => mostTokens))
    this.miss = miss
  }

  get size(): number {
    return this.tables.reduce((sum, { size }) => sum + size, 0)
  }

  take(key: Key, cost: number, spending?: Spending): Decision | Promise<Decision> {
    const keys = keysFor(this.tables.length, key)
    if (cost > this.mostTokens) return this.impossible(key, keys, cost, spending)
    const nowUs = this.ticker.read()
    const leases = this.leasesOf(keys, nowUs)
    if (leases === undefined) return this.atOnce(key, keys, cost, spending)
    const look = lookAt(leases, cost, nowUs)
    for (let i = 0; i < leases.length; i++) if (!look.isDenied || look.deniedUs[i] !== undefined) (leases[i] as KeyLease).demand.ask(cost)
    return this.decided(look, leases, keys, cost, nowUs, spending) ?? this.onMiss(look, key, keys, cost, spending)
  }

  giveBack(key: Key, spending: Spending, tokens: number): Promise<unknown> {
    const keys = keysFor(this.tables.length, key)
    return Promise.all(this.tables.map((table, i) => table.giveBack(keys[i] as string, spending.drawnOf(i), tokens)))
  }

  forget(key: Key, held: ForgottenTokens = 'returned'): void {
    const keys = keysFor(this.tables.length, key)
    for (const [i, table] of this.tables.entries()) table.forget(keys[i] as string, held)
  }

  refunded(key: Key, { parts = [] }: Decision): void {
    const keys = keysFor(this.tables.length, key)
    for (const [i, part] of parts.entries()) this.tables[i]?.refunded(keys[i] as string, part)
  }

  close(): void {
    for (const table of this.tables) table.close()
  }

  /** Undefined when the table of a policy is full. */
  private leasesOf(keys: readonly string[], nowUs: number): readonly KeyLease[] | undefined {
    const leases: KeyLease[] = []
    for (let i = 0; i < keys.length; i++) {
      const lease = (this.tables[i] as LeaseTable).of(keys[i] as string, nowUs)
      if (lease === undefined) return undefined
      leases.push(lease)
    }
    return leases
  }

  /** A decision, if this process can make one: it spends everything needed, or nothing. */
  private decided(
    look: Look,
    leases: readonly KeyLease[],
    keys: readonly string[],
    cost: number,
    nowUs: number,
    spending: Spending | undefined,
  ): Decision | undefined {
    const { isDenied, lacking, deniedUs } = look
    if (!isDenied && lacking.length > 0) return undefined
    this.decisions++
    const parts: Decision[] = []
    for (let i = 0; i < leases.length; i++) {
      const table = this.tables[i] as LeaseTable
      const lease = leases[i] as KeyLease
      const untilUs = deniedUs[i]
      if (!isDenied) lease.spend(nowUs, cost, spending?.drawnOf(i))
      if (!isDenied || untilUs !== undefined) table.refillIfLow(lease, keys[i] as string, nowUs)
      parts.push(table.decision(lease, nowUs, untilUs))
    }
    return combined(parts)
  }

  private onMiss(
    look: Look,
    key: Key,
    keys: readonly string[],
    cost: number,
    spending: Spending | undefined,
  ): Decision | Promise<Decision> {
    const { miss } = this
    if (look.lacking.some((i) => miss.isOut(keys[i] as string))) return miss.without(key, cost)
    return miss.decideAfterRefill({
      key,
      cost,
      decide: () => this.decide(keys, cost, spending),
      awaitRefill: () => this.awaitRefill(keys, cost),
      exact: () => this.atOnce(key, keys, cost, spending),
    })
  }

  private decide(keys: readonly string[], cost: number, spending: Spending | undefined): Decision | undefined {
    const nowUs = this.ticker.read()
    const leases = this.leasesOf(keys, nowUs)
    return leases && this.decided(lookAt(leases, cost, nowUs), leases, keys, cost, nowUs, spending)
  }

  /** Refills each lease that lacks tokens. */
  private async awaitRefill(keys: readonly string[], cost: number): Promise<RefillOutcome> {
    const nowUs = this.ticker.read()
    const leases = this.leasesOf(keys, nowUs)
    if (leases === undefined) return 'in time'
    const { lacking } = lookAt(leases, cost, nowUs)
    return worst(
      await Promise.all(lacking.map((i) => (this.tables[i] as LeaseTable).awaitRefill(leases[i] as KeyLease, keys[i] as string, cost))),
    )
  }

  /** A cost above what a lease may hold takes nothing from the leases: it passes where one call charges all policies, else never. */
  private async impossible(key: Key, keys: readonly string[], cost: number, spending: Spending | undefined): Promise<Decision> {
    if (this.miss.isTogether(keys)) return this.miss.exact(key, cost, spending)
    const decision = await this.refused(key, cost)
    return decision.source === 'outage' ? decision : { ...decision, retryAfterMs: Number.POSITIVE_INFINITY }
  }

  /** By one call if one server holds all keys; else from leases of its own, each of exactly the cost. */
  private atOnce(key: Key, keys: readonly string[], cost: number, spending: Spending | undefined): Promise<Decision> {
    return this.miss.isTogether(keys) ? this.exact(key, keys, cost, spending) : this.crossSlot(key, keys, cost, spending)
  }

  /** The denials of single policies are cached. */
  private async exact(key: Key, keys: readonly string[], cost: number, spending: Spending | undefined): Promise<Decision> {
    const decision = await this.miss.exact(key, cost, spending)
    const nowUs = this.ticker.read()
    const leases = this.leasesOf(keys, nowUs) ?? []
    for (const [i, { allowed, source, retryAfterMs }] of (decision.parts ?? []).entries()) {
      if (!allowed && source === 'store') leases[i]?.refuse(cost, nowUs + retryAfterMs * 1000, nowUs)
    }
    return decision
  }

  private async crossSlot(key: Key, keys: readonly string[], cost: number, spending: Spending | undefined): Promise<Decision> {
    const { miss } = this
    if (keys.some((own) => miss.isOut(own))) return miss.without(key, cost)
    const sentUs = this.ticker.read()
    const leases = this.tables.map((table) => table.aside(sentUs))
    const answer = worst(
      await Promise.all(this.tables.map((table, i) => table.awaitRefill(leases[i] as KeyLease, keys[i] as string, cost))),
    )
    const nowUs = this.ticker.read()
    const decision = this.decided(lookAt(leases, cost, nowUs), leases, keys, cost, nowUs, spending)
    return decision ?? (answer === 'out' ? miss.without(key, cost) : this.refused(key, cost))
  }

  /** Denied by what the backend says of each policy. */
  private async refused(key: Key, cost: number): Promise<Decision> {
    const { miss } = this
    const seen = await miss.peek(key, cost)
    return seen.source === 'outage' ? miss.without(key, cost) : refusal(seen)
  }
}

/** What a take finds in its leases. */
interface Look {
  /** Indexes of the leases that lack tokens. */
  readonly lacking: readonly number[]
  /** Until when each policy is known to deny it. */
  readonly deniedUs: readonly (number | undefined)[]
  readonly isDenied: boolean
}

function lookAt(leases: readonly KeyLease[], cost: number, nowUs: number): Look {
  const lacking: number[] = []
  const deniedUs: (number | undefined)[] = []
  let isDenied = false
  for (let i = 0; i < leases.length; i++) {
    const lease = leases[i] as KeyLease
    const isHeld = lease.readyAt(nowUs) >= cost
    const untilUs = isHeld ? undefined : lease.deniedUntil(nowUs, cost)
    if (!isHeld) lacking.push(i)
    if (untilUs !== undefined) isDenied = true
    deniedUs.push(untilUs)
  }
  return { lacking, deniedUs, isDenied }
}

function worst(answers: readonly RefillOutcome[]): RefillOutcome {
  return BADNESS.findLast((badness) => answers.includes(badness)) ?? 'in time'
}
