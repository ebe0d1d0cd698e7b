import { createLimiter } from '../create-limiter.js'
import type { Decision } from '../decision/decision.js'
import { holdsPermits } from '../decision/permit.js'
import { keysUnder, nameOf } from '../key.js'
import type { Key, Limiter } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import {
  type Answer,
  type Backend,
  type CancelSignal,
  type ChargingOperation,
  type Operation,
  passed,
  type Reserved,
} from '../shared/backend.js'
import type { LocalShare } from '../shared/outage/local-share.js'
import { shareOfPolicy } from '../shared/outage/share-of-policy.js'
import type { RegionPool } from '../shared/region-pool.js'
import type { Clock } from '../time/clock.js'

/** Counts since the limiter was created, under all its policies. */
export class RegionCounts {
  /** Renewals that the home answered. */
  renewals = 0
  /** Tokens that they brought to the region. */
  tokens = 0
  /** Renewals that the home did not answer. */
  failed = 0
  /** Tokens admitted without the home that were charged there since. */
  charged = 0
}

/** How long a take is denied that nothing decides: neither the home, nor a share of this region. */
const CLOSED_RETRY_MS = 1000
/** More keys that owe are charged by their renewals alone. */
const MOST_OWING = 10_000

/** The region's share of a policy, kept in the region's store. */
export class StoredShare {
  private readonly policy: Policy
  private readonly share: LocalShare
  private readonly connect: (policy: Policy) => Backend
  private readonly clock: Clock
  private inForce = 0
  private part: Policy
  private backend: Backend | undefined
  /** What is known to be spent of it: a store that loses its data learns it again. */
  private seen: Limiter | undefined

  constructor(policy: Policy, share: LocalShare, connect: (policy: Policy) => Backend, clock: Clock) {
    this.policy = policy
    this.part = policy
    this.share = share
    this.connect = connect
    this.clock = clock
  }

  execute(operation: Operation, signal?: CancelSignal): Promise<Answer> {
    return this.current().execute(operation, signal)
  }

  /** What is spent of a key in the region and has not refilled, of each policy. */
  async spentOf(key: Key): Promise<readonly number[]> {
    const { decision } = await this.execute({ verb: 'peek', key, cost: 1 })
    return decision === undefined ? [] : spentBy(decision, this.part)
  }

  /** This process admitted tokens; fewer than none came back. @param decision the store's answer to that. */
  note(key: Key, tokens: number, decision: Decision | undefined): void {
    this.seen ??= createLimiter(this.part, { clock: this.clock })
    if (tokens > 0) this.seen.penalize(key, tokens)
    else if (tokens < 0) this.seen.refund(key, -tokens)
    // What other processes spent.
    const more = Math.min(...this.unknownTo(decision, key).map((spent) => -spent))
    if (more > 0) this.seen.penalize(key, more)
  }

  /**
   * The store lost its data: what was spent before and has not refilled counts there again.
   *
   * @param decision its answer since.
   * @returns tokens, of each policy.
   */
  async restore(key: Key, decision: Decision | undefined): Promise<readonly number[]> {
    const tokens = this.unknownTo(decision, key).map((spent) => Math.max(0, spent))
    if (tokens.some((each) => each > 0)) await this.execute({ verb: 'charge', key, tokens })
    return tokens
  }

  close(): void {
    this.seen?.close()
    this.seen = undefined
  }

  /** Tokens known to be spent beyond those that the store knew of when it answered. */
  private unknownTo(decision: Decision | undefined, key: Key): readonly number[] {
    if (decision === undefined || this.seen === undefined) return [0]
    const stored = spentBy(decision, this.part)
    return spentBy(this.seen.peek(key), this.part).map((spent, i) => spent - (stored[i] as number))
  }

  /** What was spent of another share stays spent: the name is the same. */
  private current(): Backend {
    const share = this.share.forOutage()
    if (this.backend === undefined || share !== this.inForce) {
      this.inForce = share
      this.part = shareOfPolicy(this.policy, share)
      this.backend = this.connect(this.part)
      this.seen?.update(this.part)
    }
    return this.backend
  }
}

/** One policy of those that a region shares with others. */
export interface RegionPart {
  readonly policy: Policy
  /** What the region holds of its keys. */
  readonly pool: RegionPool
  /** This policy alone, at the home and in the region; undefined where the share is 0. */
  readonly home: Backend
  readonly share: StoredShare | undefined
  /** Where the home counts the demand of all regions for it: {@link demandPolicy}. */
  readonly demand: Backend
}

/** What the share gave back needs. */
class ShareReceipt {
  readonly receipt: unknown

  constructor(receipt: unknown) {
    this.receipt = receipt
  }
}

/** Decides without the home, by the region's share of the policy, and has what it admitted charged there once the home answers. */
export class RegionShare {
  private readonly policy: Policy
  private readonly whole: StoredShare | undefined
  private readonly parts: readonly RegionPart[]
  private readonly counts: Pick<RegionCounts, 'charged' | 'failed'>
  private readonly isOfPermits: boolean
  /** Keys of which this process admitted something, by their text, and since when the region's store knows them. */
  private readonly owing = new Map<string, readonly number[]>()

  /** @param whole of all policies together; undefined where the share is 0. */
  constructor(
    policy: Policy,
    whole: StoredShare | undefined,
    parts: readonly RegionPart[],
    counts: Pick<RegionCounts, 'charged' | 'failed'>,
  ) {
    this.policy = policy
    this.whole = whole
    this.parts = parts
    this.counts = counts
    this.isOfPermits = holdsPermits(policy)
  }

  /** Whether it ever admits anything. */
  get isOpen(): boolean {
    return this.whole !== undefined
  }

  /** A reservation is for now, or not at all. */
  async charge(operation: ChargingOperation, signal?: CancelSignal): Promise<Answer> {
    if (this.whole === undefined) return this.closed()
    const { verb, key, cost } = operation
    const answer = await this.whole.execute(verb === 'take' ? operation : { ...operation, maxWaitUs: 0 }, signal)
    if (!answer.done) return inOutage(answer)
    this.admitted(key, cost, answer.decision)
    const canSettle = verb === 'reserve' || operation.canSettle === true
    const { decision, receipt } = answer
    const own = canSettle && receipt !== undefined && !this.isOfPermits ? new ShareReceipt(receipt) : undefined
    return inOutage({ ...answer, ...(canSettle && decision && { decision: passed(decision) }), receipt: own })
  }

  /**
   * To be called with what the region's store says of a key before the share decides. Where it lost its data meanwhile, it learns again what was
   * spent of the share: else a restart would bring a new one.
   *
   * @param decision its last answer about the share, if that came since.
   */
  bornAt(key: Key, born: readonly number[], decision?: Decision): Promise<unknown> | undefined {
    if (this.owing.size === 0) return undefined
    const name = nameOf(key)
    const before = this.owing.get(name)
    if (before === undefined || before.every((us, part) => us === born[part])) return undefined
    this.owing.set(name, born)
    return this.restored(key, decision)
  }

  private async restored(key: Key, known: Decision | undefined): Promise<void> {
    const decision = known ?? (await this.whole?.execute({ verb: 'peek', key, cost: 1 }))?.decision
    const tokens = (await this.whole?.restore(key, decision)) ?? []
    await this.addDebt(key, (part) => tokens[part] ?? 0)
  }

  async peek(key: Key, cost: number, signal?: CancelSignal): Promise<Answer> {
    if (this.whole === undefined) return this.closed()
    return inOutage(await this.whole.execute({ verb: 'peek', key, cost }, signal))
  }

  /** Whether the share made this charge. */
  hasMade({ receipt }: Reserved): boolean {
    return receipt instanceof ShareReceipt
  }

  /** Of such a charge: that much less is owed. */
  async giveBack(key: Key, reserved: Reserved, tokens: number): Promise<Answer> {
    const { receipt } = reserved.receipt as ShareReceipt
    const answer = await (this.whole as StoredShare).execute({ verb: 'giveBack', key, charge: { ...reserved, receipt }, tokens })
    this.admitted(key, -tokens, undefined)
    return inOutage(answer)
  }

  /** Of a permit that it may have given. */
  async permit(operation: Extract<Operation, { verb: 'release' | 'heartbeat' }>, signal?: CancelSignal): Promise<Answer> {
    return (await this.whole?.execute(operation, signal)) ?? { done: false }
  }

  /** What this process admitted of the key is charged, now that the home answers. */
  homeAnswered(key: Key): void {
    if (this.owing.size === 0 || !this.owing.delete(nameOf(key))) return
    for (const [part, own] of keysUnder(this.policy, key).entries()) {
      this.takeDebt(part, own)
        .then((debt) => this.payDebt(part, own, debt))
        .catch(noMatter)
    }
  }

  /** Takes the debt of a key, which the caller charges at the home: what the region admitted without it and has not refilled since. */
  async takeDebt(part: number, key: string): Promise<number> {
    const { pool, share } = this.parts[part] as RegionPart
    const debt = await pool.takeDebt(key)
    if (debt === 0) return 0
    const [spent = debt] = (await share?.spentOf(key).catch(() => undefined)) ?? []
    return Math.max(0, Math.min(debt, spent))
  }

  /** A charge that is lost may have been made, and is not repeated. */
  async payDebt(part: number, key: string, tokens: number): Promise<void> {
    if (tokens === 0) return
    try {
      await (this.parts[part] as RegionPart).home.execute({ verb: 'penalize', key, tokens })
      this.counts.charged += tokens
    } catch {
      this.counts.failed++
    }
  }

  /** The key begins anew: nothing of it is charged. */
  async reset(key: Key): Promise<void> {
    await Promise.all(keysUnder(this.policy, key).map((own, part) => this.parts[part]?.pool.takeDebt(own)))
  }

  close(): void {
    this.whole?.close()
    for (const { share } of this.parts) share?.close()
  }

  /** Permits come back by themselves. */
  private admitted(key: Key, tokens: number, decision: Decision | undefined): void {
    if (this.isOfPermits) return
    this.whole?.note(key, tokens, decision)
    this.owe(key, tokens, decision).catch(noMatter)
  }

  private async owe(key: Key, tokens: number, decision: Decision | undefined): Promise<void> {
    const born = await this.addDebt(key, () => tokens)
    await this.bornAt(key, born, decision)
    const name = nameOf(key)
    if (this.owing.has(name) || this.owing.size < MOST_OWING) this.owing.set(name, born)
  }

  private addDebt(key: Key, tokensOf: (part: number) => number): Promise<number[]> {
    return Promise.all(keysUnder(this.policy, key).map((own, part) => (this.parts[part] as RegionPart).pool.addDebt(own, tokensOf(part))))
  }

  private closed(): Answer {
    const { limit, name } = this.policy
    const times = { retryAfterMs: CLOSED_RETRY_MS, resetAfterMs: CLOSED_RETRY_MS }
    return { done: false, decision: { allowed: false, limit, remaining: 0, ...times, policy: name, source: 'outage' } }
  }
}

function spentBy({ remaining, parts }: Pick<Decision, 'remaining' | 'parts'>, { burst, policies }: Policy): readonly number[] {
  if (parts === undefined || policies === undefined) return [burst - remaining]
  return parts.map((each, i) => (policies[i] as Policy).burst - each.remaining)
}

function inOutage({ decision, ...answer }: Answer): Answer {
  return { ...answer, ...(decision && { decision: { ...decision, source: 'outage' } }) }
}

/** What could not be noted or charged is not: that admits more, by the share at most. */
function noMatter(): void {}

/** The share of a process that lost the region's store as well: its part of the region's. */
export function shareOfRegion(own: LocalShare, region: LocalShare): LocalShare {
  return {
    get nodes() {
      return own.nodes
    },
    get inForce() {
      return own.inForce * region.inForce
    },
    forOutage: () => own.forOutage() * region.forOutage(),
    answered: () => own.answered(),
  }
}
