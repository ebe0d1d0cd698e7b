import { combined, type Decision, refusal } from '../../decision/decision.js'
import { keysFor } from '../../key.js'
import type { RefillOutcome } from '../../lease/grant.js'
import type { KeyLease } from '../../lease/key-lease.js'
import type { Key } from '../../limiter.js'
import type { Charge } from '../backend.js'
import type { ForgottenTokens, LeaseTable } from './lease-table.js'
import type { LeasedTakes } from './leased-takes.js'
import { WaitingTakes, type WaitingTakesParts } from './waiting-takes.js'

/** Outcomes of refills, the worst last. */
const BADNESS: readonly RefillOutcome[] = ['in time', 'alone', 'late', 'out']

/**
 * Leased takes of `allOf`: tokens of each policy are leased separately, in whatever slot its key is. A take checks the leases of all
 * policies and then spends from all or from none, in one synchronous step. Only leases that lack tokens are refilled, so a policy that
 * denies costs the others nothing but a refill that was on its way.
 */
export class LeasedAllOf extends WaitingTakes implements LeasedTakes {
  decisions = 0
  private readonly tables: readonly LeaseTable[]
  private readonly mostTokens: number

  constructor(tables: readonly LeaseTable[], parts: WaitingTakesParts) {
    super(parts)
    this.tables = tables
    this.mostTokens = Math.min(...tables.map(({ mostTokens }) => mostTokens))
  }

  get size(): number {
    return this.tables.reduce((sum, { size }) => sum + size, 0)
  }

  take(key: Key, cost: number, charges?: Charge[]): Decision | Promise<Decision> {
    const keys = keysFor(this.tables.length, key)
    if (cost > this.mostTokens) return this.impossible(key, keys, cost, charges)
    const nowUs = this.ticker.read()
    const leases = this.leasesOf(keys, nowUs)
    if (leases === undefined) return this.alone(key, cost, charges)
    const look = lookAt(leases, cost, nowUs)
    for (let i = 0; i < leases.length; i++)
      if (!look.isDenied || look.deniedUs[i] !== undefined) (leases[i] as KeyLease).demand.request(cost)
    const decision = this.decided(look, leases, keys, cost, nowUs, charges)
    if (decision !== undefined) return decision
    return look.lacking.some((i) => this.isOut(keys[i] as string)) ? this.without(key, cost) : this.decideLater(key, cost, charges)
  }

  giveBack(key: Key, charges: readonly Charge[], tokens: number): Promise<unknown> {
    const keys = keysFor(this.tables.length, key)
    return Promise.all(this.tables.map((table, i) => table.giveBack(keys[i] as string, charges, tokens)))
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
    charges: Charge[] | undefined,
  ): Decision | undefined {
    const { isDenied, lacking, deniedUs } = look
    if (!isDenied && lacking.length > 0) return undefined
    this.decisions++
    const parts: Decision[] = []
    for (let i = 0; i < leases.length; i++) {
      const table = this.tables[i] as LeaseTable
      const lease = leases[i] as KeyLease
      const untilUs = deniedUs[i]
      if (!isDenied) lease.spend(nowUs, cost, charges)
      if (!isDenied || untilUs !== undefined) table.refillIfLow(lease, keys[i] as string, nowUs)
      parts.push(table.decision(lease, nowUs, untilUs))
    }
    return combined(parts)
  }

  protected decide(key: Key, cost: number, charges: Charge[] | undefined): Decision | undefined {
    const keys = keysFor(this.tables.length, key)
    const nowUs = this.ticker.read()
    const leases = this.leasesOf(keys, nowUs)
    return leases && this.decided(lookAt(leases, cost, nowUs), leases, keys, cost, nowUs, charges)
  }

  /**
   * Refills each lease that lacks tokens. Where one of them is not worth a lease, and one call can charge all keys, that call decides: it costs
   * no more than the single token of that policy would.
   */
  protected async awaitRefill(key: Key, cost: number): Promise<RefillOutcome> {
    const keys = keysFor(this.tables.length, key)
    const nowUs = this.ticker.read()
    const leases = this.leasesOf(keys, nowUs)
    if (leases === undefined) return 'alone'
    const lacking = lookAt(leases, cost, nowUs).lacking.map((i) => ({
      table: this.tables[i] as LeaseTable,
      lease: leases[i] as KeyLease,
      own: keys[i] as string,
    }))
    for (const { lease } of lacking) lease.demand.join(cost, nowUs)
    try {
      // All takes of this turn join first.
      await undefined
      if (this.parts.guard.isTogether(keys) && lacking.some(({ lease }) => !lease.isLeased(nowUs))) return 'alone'
      return worst(await Promise.all(lacking.map(({ table, lease, own }) => table.refill(lease, own, false))))
    } finally {
      for (const { lease } of lacking) lease.demand.leave(cost)
    }
  }

  /** A cost above what a lease may hold takes nothing from the leases: it passes where one call charges all policies, else never. */
  private async impossible(key: Key, keys: readonly string[], cost: number, charges: Charge[] | undefined): Promise<Decision> {
    if (this.parts.guard.isTogether(keys)) return this.exact(key, cost, charges)
    const decision = await this.refused(key, cost)
    return decision.source === 'outage' ? decision : { ...decision, retryAfterMs: Number.POSITIVE_INFINITY }
  }

  /** By one call if one server holds all keys; else from leases of its own, each of exactly the cost. */
  protected async alone(key: Key, cost: number, charges: Charge[] | undefined): Promise<Decision> {
    const keys = keysFor(this.tables.length, key)
    if (!this.parts.guard.isTogether(keys)) return this.crossSlot(key, keys, cost, charges)
    const decision = await this.exact(key, cost, charges)
    if (decision.source !== 'store') return decision
    const parts = (decision.parts ?? []).map((part, i) => {
      // What passes is charged only if all do.
      if (!decision.allowed && part.allowed) return part
      return this.tables[i]?.answered(keys[i] as string, cost, part) ?? part
    })
    return combined(parts)
  }

  private async crossSlot(key: Key, keys: readonly string[], cost: number, charges: Charge[] | undefined): Promise<Decision> {
    if (keys.some((own) => this.isOut(own))) return this.without(key, cost)
    const sentUs = this.ticker.read()
    const leases = this.tables.map((table) => table.aside(cost, sentUs))
    const refills = this.tables.map((table, i) => table.refill(leases[i] as KeyLease, keys[i] as string, false))
    const answer = worst(await Promise.all(refills))
    const nowUs = this.ticker.read()
    const decision = this.decided(lookAt(leases, cost, nowUs), leases, keys, cost, nowUs, charges)
    return decision ?? (answer === 'out' ? this.without(key, cost) : this.refused(key, cost))
  }

  /** Denied by what the backend says of each policy. */
  private async refused(key: Key, cost: number): Promise<Decision> {
    const seen = await this.peekThere(key, cost)
    return seen.source === 'outage' ? this.without(key, cost) : refusal(seen)
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
