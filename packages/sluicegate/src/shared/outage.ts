import { keysFor } from '../all-of-keys.js'
import { checkedCost } from '../arguments.js'
import type { Clock } from '../clock.js'
import { combined } from '../combined-decision.js'
import { createLimiter } from '../create-limiter.js'
import type { Decision } from '../decision.js'
import { emptyPermit, holdsPermits, isPermit } from '../empty-permit.js'
import { StoreError } from '../errors.js'
import type { Key, Limiter } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { WaitRequest } from '../wait-request.js'
import { shareOfPolicy } from './share-of-policy.js'
import { SharedPermit } from './shared-permit.js'
import { UsedKeys } from './used-keys.js'

/** What decides while the store cannot be reached. */
export type OutageMode = 'local' | 'open' | 'closed'

/** What was used of a key without the store, and not told yet: tokens of each policy. */
export interface Owed {
  readonly key: Key
  readonly tokens: readonly number[]
}

/** Keys that are remembered to be accounted for; beyond them the oldest is forgotten. */
const MOST_USED = 100_000
/** Keys that are looked at in one go. */
const LOOKED_AT = 64

/** Decides without the store, by the caller's choice: with a share of the budget, by letting all pass, or none. */
export class Outage {
  /** Decisions made here. */
  decisions = 0
  private readonly mode: OutageMode
  private readonly share: number
  private readonly clock: Clock
  private policy: Policy
  /** What this process spends by itself. It is never forgotten, or each of many short outages would bring a fresh burst. */
  private readonly local: Limiter | undefined
  /** Of `open`, for each policy what passed, up to all that it has. */
  private passed: readonly (Limiter | undefined)[] | undefined
  /** For each policy what the store was told of it, which wears off in the same way. */
  private told: readonly (Limiter | undefined)[] | undefined
  /** Keys of which something was spent that the store was not told. */
  private readonly used = new UsedKeys(MOST_USED)

  constructor(mode: OutageMode, policy: Policy, share: number, clock: Clock) {
    this.mode = mode
    // What passes openly is told up to the whole of the policy.
    this.share = mode === 'open' ? 1 : share
    this.clock = clock
    this.policy = policy
    if (mode === 'local') this.local = createLimiter(shareOfPolicy(policy, share), { clock })
  }

  /** Whether anything is to be told to the store. */
  get isOwing(): boolean {
    return this.used.size > 0
  }

  /** @param pausedMs until the store is asked again. */
  take(key: Key, cost: number, pausedMs: number): Decision {
    this.decisions++
    const { local } = this
    if (local === undefined) {
      const flat = this.flat(cost, pausedMs)
      if (flat.allowed) this.pass(key, cost)
      return this.held(flat)
    }
    const seen = local.peek(key, cost)
    // A take that is denied would tell of it as one of the memory's.
    const decision = seen.allowed ? local.take(key, cost) : seen
    if (decision.allowed) this.used.add(key)
    return this.held(this.asOutage(decision, cost, pausedMs), decision)
  }

  peek(key: Key, cost: number, pausedMs: number): Decision {
    this.decisions++
    return this.local === undefined ? this.flat(cost, pausedMs) : this.asOutage(this.local.peek(key, cost), cost, pausedMs)
  }

  /** Waits for a share of the budget; where none is handed out, or that much never, answers at once. */
  async wait({ key, cost, maxWaitMs, signal }: WaitRequest, pausedMs: number): Promise<Decision> {
    signal?.throwIfAborted()
    const { local } = this
    if (local === undefined) return this.take(key, cost, pausedMs)
    this.decisions++
    const seen = local.peek(key, cost)
    const { retryAfterMs } = seen
    const isTooLate = retryAfterMs === Number.POSITIVE_INFINITY || (retryAfterMs > maxWaitMs && !holdsPermits(this.policy))
    const decision = isTooLate ? seen : await local.wait(key, { cost, maxWaitMs, ...(signal && { signal }) })
    if (decision.allowed) this.used.add(key)
    return this.held(this.asOutage(decision, cost, pausedMs), decision)
  }

  /**
   * What was used of the keys whose store is back, and has not come back by itself; it counts as told from then on. Now and then, where
   * many keys have nothing to tell, undefined. Permits are left to whoever holds them.
   */
  *settle(isBack: (key: Key) => boolean): Generator<Owed | undefined> {
    let looked = 0
    for (const key of this.used) {
      if (++looked % LOOKED_AT === 0) yield undefined
      if (!isBack(key)) continue
      this.used.delete(key)
      const tokens = this.tell(key)
      if (tokens.some((each) => each > 0)) yield { key, tokens }
    }
  }

  /** The store has charged a take after all, whose caller had been told that there is no store: as much less is to be told. */
  covered(keys: readonly string[], tokens: number): readonly number[] {
    return this.tell(this.policy.policies === undefined ? (keys[0] as string) : keys, tokens)
  }

  /** A change of the policy: what was spent here stays spent. */
  update(policy: Policy): void {
    this.local?.update(shareOfPolicy(policy, this.share))
    for (const counts of [this.told ?? [], this.passed ?? []]) {
      for (const [i, count] of counts.entries()) count?.update(shareOfPolicy(partsOf(policy)[i] as Policy, this.share))
    }
    this.policy = policy
  }

  /** Those who wait here reject with `CLOSED`. */
  close(): void {
    this.used.clear()
    this.local?.close()
    for (const count of [...(this.told ?? []), ...(this.passed ?? [])]) count?.close()
  }

  /** What is to be told of a key; up to `most` tokens it counts as told from now on. */
  private tell(key: Key, most = Number.POSITIVE_INFINITY): number[] {
    if (this.local === undefined && this.passed === undefined) return []
    this.told ??= this.counts()
    const keys = keysFor(this.told.length, key)
    const left = this.left(key, keys)
    return this.told.map((told, i) => {
      if (told === undefined) return 0
      const own = keys[i] as string
      const tokens = Math.min(most, told.peek(own).remaining - (left[i] as number))
      if (tokens > 0) remember(told, own, tokens)
      return Math.max(0, tokens)
    })
  }

  /** What is left of each policy here. */
  private left(key: Key, keys: readonly string[]): readonly number[] {
    const here = this.local?.peek(key)
    return keys.map((own, i) => (here === undefined ? this.passed?.[i]?.peek(own) : (here.parts?.[i] ?? here))?.remaining ?? 0)
  }

  /** Notes what passes openly. A key of which more passes than there is stands as one that has spent all. */
  private pass(key: Key, cost: number): void {
    this.passed ??= this.counts()
    const keys = keysFor(this.passed.length, key)
    for (const [i, count] of this.passed.entries()) {
      const own = keys[i] as string
      const tokens = count === undefined ? 0 : Math.min(cost, count.peek(own).remaining)
      if (count !== undefined && tokens > 0) remember(count, own, tokens)
    }
    this.used.add(key)
  }

  /** Of each policy a count of what is spent; permits are left to whoever holds them. */
  private counts(): readonly (Limiter | undefined)[] {
    return partsOf(this.policy).map((part) =>
      part.algorithm === 'concurrency' ? undefined : createLimiter(shareOfPolicy(part, this.share), { clock: this.clock }),
    )
  }

  private flat(cost: number, pausedMs: number): Decision {
    const { policy } = this
    const parts = partsOf(policy).map((part) => this.flatPart(part, checkedCost(cost), pausedMs))
    return policy.policies === undefined ? (parts[0] as Decision) : combined(parts)
  }

  private flatPart({ limit, burst, name }: Policy, cost: number, pausedMs: number): Decision {
    const isPossible = cost <= burst
    const allowed = this.mode === 'open' && isPossible
    const retryAfterMs = allowed ? 0 : isPossible ? untilAsked(pausedMs) : Number.POSITIVE_INFINITY
    return { allowed, limit, remaining: 0, retryAfterMs, resetAfterMs: 0, policy: name, source: 'outage', spent: 0 }
  }

  /** Of permits one that is asked like the store's. */
  private held(decision: Decision, own: Decision = emptyPermit(decision)): Decision {
    if (!holdsPermits(this.policy)) return decision
    return new SharedPermit(decision, async (verb) => isPermit(own) && own[verb]())
  }

  /** As of the policy that was asked for, whatever share of it is at hand. */
  private asOutage(decision: Decision, cost: number, pausedMs: number): Decision {
    const { policy } = this
    const { parts = [decision] } = decision
    const shares = partsOf((this.local as Limiter).policy)
    const told = parts.map((part, i) => partAsOutage(part, partsOf(policy)[i] as Policy, shares[i] as Policy, cost, pausedMs))
    return decision.parts === undefined ? (told[0] as Decision) : combined(told)
  }
}

/** What is more than the share, and not more than the policy, is not impossible: the store may let it pass. */
function partAsOutage(decision: Decision, { limit, burst }: Policy, share: Policy, cost: number, pausedMs: number): Decision {
  const isOnlyShare = decision.retryAfterMs === Number.POSITIVE_INFINITY && cost <= burst
  const { spent = share.burst - decision.remaining } = decision
  return { ...decision, source: 'outage', limit, spent, ...(isOnlyShare && { retryAfterMs: untilAsked(pausedMs) }) }
}

function untilAsked(pausedMs: number): number {
  return Math.max(1, Math.ceil(pausedMs))
}

function partsOf(policy: Policy): readonly Policy[] {
  return policy.policies ?? [policy]
}

function remember(told: Limiter, key: string, tokens: number): void {
  try {
    told.penalize(key, tokens)
  } catch (error) {
    // Without room for another key it may be told a second time, which grants nothing.
    if (!(error instanceof StoreError)) throw error
  }
}
