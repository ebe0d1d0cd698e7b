import { checkedCost, type WaitRequest } from '../../arguments.js'
import { chained } from '../../awaitable.js'
import { BoundedMap } from '../../bounded-map.js'
import { makeLimiter } from '../../create-limiter.js'
import { combined, type Decision } from '../../decision/decision.js'
import { emptyPermit, holdsPermits, isPermit } from '../../decision/permit.js'
import { StoreError } from '../../errors.js'
import { heldAs } from '../../holds/held-as.js'
import type { OpenOptions } from '../../holds/hold.js'
import { keysFor, nameOf } from '../../key.js'
import type { Key, Limiter } from '../../limiter.js'
import { leftAlone } from '../../memory/carried-key.js'
import { type Policy, policiesOf } from '../../policy/policy.js'
import type { Clock } from '../../time/clock.js'
import { SharedPermit } from '../shared-permit.js'
import type { LocalShare, OutageMode } from './local-share.js'
import { shareOfPolicy } from './share-of-policy.js'

/** What was spent of a key during an outage and is not charged yet: tokens of each policy. */
export interface Owed {
  readonly key: Key
  readonly tokens: readonly number[]
}

/** Keys that are remembered for accounting; beyond that the oldest is forgotten. */
const MOST_USED = 100_000
/** Keys checked before the event loop gets a turn. */
const LOOKED_AT = 64

/** Decides in an outage as the option `outage` says: by a share of the budget, by allowing everything, or nothing. */
export class Outage {
  /** Decisions made here. */
  decisions = 0
  readonly mode: OutageMode
  readonly shares: LocalShare
  /** The share that the counts below have. */
  private share: number
  private readonly clock: Clock
  private policy: Policy
  /** The share of this process. It lives on between outages, or each of many short outages would bring a fresh burst. */
  private made: Limiter | undefined
  /** With `open`: what passed of each policy, up to the whole of it. */
  private passed: readonly (Limiter | undefined)[] | undefined
  /** What was charged at the backend of each policy; it flows back in the same way. */
  private charged: readonly (Limiter | undefined)[] | undefined
  /** Keys with uncharged tokens. */
  private readonly used = new UsedKeys(MOST_USED)
  /** Calls may still be under way: they are decided without a share, and nothing counts them. */
  private isClosed = false

  /**
   * @param shares with `open` 1: at most the whole of the policy is charged later.
   * @param isMadeLate where a limiter in memory can be made only while a request is handled.
   */
  constructor(mode: OutageMode, policy: Policy, shares: LocalShare, clock: Clock, isMadeLate = false) {
    this.mode = mode
    this.shares = shares
    this.share = shares.inForce
    this.clock = clock
    this.policy = policy
    if (!isMadeLate) void this.local
  }

  /** Undefined also with a share of nothing: no share is below a token else. */
  private get local(): Limiter | undefined {
    if (this.share === 0) return undefined
    if (this.mode === 'local') this.made ??= makeLimiter(shareOfPolicy(this.policy, this.share), { clock: this.clock })
    return this.made
  }

  /** Whether anything is left to charge. */
  get isOwing(): boolean {
    return this.used.size > 0
  }

  /** @param pausedMs until the backend is called again. */
  take(key: Key, cost: number, pausedMs: number): Decision {
    if (this.isClosed) return this.asPermit(this.flat(cost, pausedMs))
    this.begin()
    const { local } = this
    if (local === undefined) {
      const flat = this.flat(cost, pausedMs)
      if (flat.allowed) this.pass(key, cost)
      return this.asPermit(flat)
    }
    const seen = local.peek(key, cost)
    // A denied take would be published as a denial of the limiter in memory.
    const decision = seen.allowed ? local.take(key, cost) : seen
    if (decision.allowed) this.used.add(key)
    return this.asPermit(this.asOutage(decision, cost, pausedMs), decision)
  }

  /** Whether work may begin: a hold of the share, or a decision alone where nothing counts (`open`) or passes (`closed`). */
  open(key: Key, options: OpenOptions & { readonly expect: number }, pausedMs: number): Decision {
    const { expect } = options
    const seen = this.peek(key, expect, pausedMs)
    const { local } = this
    if (local === undefined || this.isClosed || !seen.allowed) return seen
    const hold = local.open(key, options)
    const add = (cost: number) =>
      chained(this.isClosed ? this.flat(cost, pausedMs).allowed : hold.add(cost), (passes) => {
        if (passes) this.used.add(key)
        return passes
      })
    return heldAs(hold, this.asOutage(hold, expect, pausedMs), { add })
  }

  peek(key: Key, cost: number, pausedMs: number): Decision {
    if (this.isClosed) return this.flat(cost, pausedMs)
    this.begin()
    return this.local === undefined ? this.flat(cost, pausedMs) : this.asOutage(this.local.peek(key, cost), cost, pausedMs)
  }

  /** Counts what was spent without being asked for, to be charged later. */
  owe(key: Key, tokens: number): void {
    if (this.isClosed) return
    this.begin()
    const { local } = this
    if (local === undefined) this.pass(key, tokens)
    else {
      remember(local, key, tokens)
      this.used.add(key)
    }
  }

  /** Waits for the share of the budget. Answers at once where there is no share, or the cost can never pass. */
  async wait({ key, cost, maxWaitMs, signal }: WaitRequest, pausedMs: number): Promise<Decision> {
    signal?.throwIfAborted()
    const { local } = this
    if (local === undefined) return this.take(key, cost, pausedMs)
    this.begin()
    const seen = local.peek(key, cost)
    const { retryAfterMs } = seen
    const isTooLate = retryAfterMs === Number.POSITIVE_INFINITY || (retryAfterMs > maxWaitMs && !holdsPermits(this.policy))
    const decision = isTooLate ? seen : await local.wait(key, { cost, maxWait: maxWaitMs, ...(signal && { signal }) })
    if (decision.allowed) this.used.add(key)
    return this.asPermit(this.asOutage(decision, cost, pausedMs), decision)
  }

  /**
   * What was spent of keys whose server is back, and has not flowed back since; it counts as charged from then on. Yields undefined now and
   * then where many keys have nothing to charge. Permits stay with their holders.
   */
  *settle(isBack: (key: Key) => boolean): Generator<Owed | undefined> {
    let looked = 0
    for (const key of this.used) {
      if (++looked % LOOKED_AT === 0) yield undefined
      if (!isBack(key)) continue
      this.used.delete(key)
      const tokens = this.toCharge(key)
      if (tokens.some((each) => each > 0)) yield { key, tokens }
    }
  }

  /** The backend has charged a take that had timed out: that much less is to be charged. */
  covered(keys: readonly string[], tokens: number): readonly number[] {
    return this.toCharge(this.policy.policies === undefined ? (keys[0] as string) : keys, tokens)
  }

  /** Changes the policy; what was spent here stays spent. */
  update(policy: Policy): void {
    this.made?.update(shareOfPolicy(policy, this.share))
    for (const counts of [this.charged ?? [], this.passed ?? []]) {
      for (const [i, count] of counts.entries()) count?.update(shareOfPolicy(policiesOf(policy)[i] as Policy, this.share))
    }
    this.policy = policy
  }

  /** A decision begins, with the share of this outage. */
  private begin(): void {
    this.decisions++
    const share = this.shares.forOutage()
    if (share === this.share) return
    this.share = share
    this.update(this.policy)
  }

  /** Waits reject with `CLOSED`. */
  close(): void {
    this.isClosed = true
    this.used.clear()
    this.made?.close()
    for (const count of [...(this.charged ?? []), ...(this.passed ?? [])]) count?.close()
  }

  /** What is to be charged of a key; up to `most` tokens count as charged from now on. */
  private toCharge(key: Key, most = Number.POSITIVE_INFINITY): number[] {
    if (this.local === undefined && this.passed === undefined) return []
    this.charged ??= this.counts()
    const keys = keysFor(this.charged.length, key)
    const left = this.left(key, keys)
    return this.charged.map((charged, i) => {
      if (charged === undefined) return 0
      const own = keys[i] as string
      const tokens = Math.min(most, charged.peek(own).remaining - (left[i] as number))
      if (tokens > 0) remember(charged, own, tokens)
      return Math.max(0, tokens)
    })
  }

  /** What is left of each policy here. */
  private left(key: Key, keys: readonly string[]): readonly number[] {
    // What is held is not spent.
    return this.local === undefined ? keys.map((own, i) => this.passed?.[i]?.peek(own).remaining ?? 0) : leftAlone(this.local, key)
  }

  /** Notes what passes with `open`. A key of which more passes than its budget counts as empty. */
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

  /** A count of spent tokens for each policy. Permits stay with their holders. */
  private counts(): readonly (Limiter | undefined)[] {
    return policiesOf(this.policy).map((part) =>
      part.algorithm === 'concurrency' ? undefined : makeLimiter(shareOfPolicy(part, this.share), { clock: this.clock }),
    )
  }

  private flat(cost: number, pausedMs: number): Decision {
    const { policy } = this
    const parts = policiesOf(policy).map((part) => this.flatPart(part, checkedCost(cost), pausedMs))
    return policy.policies === undefined ? (parts[0] as Decision) : combined(parts)
  }

  private flatPart({ limit, burst, name }: Policy, cost: number, pausedMs: number): Decision {
    const isPossible = cost <= burst
    const allowed = this.mode === 'open' && isPossible
    const retryAfterMs = allowed ? 0 : isPossible ? untilNextCall(pausedMs) : Number.POSITIVE_INFINITY
    return { allowed, limit, remaining: 0, retryAfterMs, resetAfterMs: 0, policy: name, source: 'outage', spent: 0 }
  }

  /** With a policy of permits one with asynchronous answers, as the backend's have. */
  private asPermit(decision: Decision, own: Decision = emptyPermit(decision)): Decision {
    if (!holdsPermits(this.policy)) return decision
    return new SharedPermit(decision, async (verb) => isPermit(own) && own[verb]())
  }

  /** The decision of the share as one of the whole policy. */
  private asOutage(decision: Decision, cost: number, pausedMs: number): Decision {
    const { policy } = this
    const { parts = [decision] } = decision
    const shares = policiesOf((this.local as Limiter).policy)
    const decisions = parts.map((part, i) => partAsOutage(part, policiesOf(policy)[i] as Policy, shares[i] as Policy, cost, pausedMs))
    return decision.parts === undefined ? (decisions[0] as Decision) : combined(decisions)
  }
}

/** A cost above the share but within the policy is not impossible: the backend may allow it later. */
function partAsOutage(decision: Decision, { limit, burst }: Policy, share: Policy, cost: number, pausedMs: number): Decision {
  const isOnlyShare = decision.retryAfterMs === Number.POSITIVE_INFINITY && cost <= burst
  const { spent = share.burst - decision.remaining } = decision
  return { ...decision, source: 'outage', limit, spent, ...(isOnlyShare && { retryAfterMs: untilNextCall(pausedMs) }) }
}

function untilNextCall(pausedMs: number): number {
  return Math.max(1, Math.ceil(pausedMs))
}

function remember(counts: Limiter, key: Key, tokens: number): void {
  try {
    counts.penalize(key, tokens)
  } catch (error) {
    // If the table is full it may be charged a second time, which grants nothing.
    if (!(error instanceof StoreError)) throw error
  }
}

/** A set of keys in insertion order that drops the oldest beyond a maximum. */
export class UsedKeys {
  private readonly keys: BoundedMap<string, Key>

  /** @param most at least 1. */
  constructor(most: number) {
    this.keys = new BoundedMap(most)
  }

  get size(): number {
    return this.keys.size
  }

  add(key: Key): void {
    const name = nameOf(key)
    if (!this.keys.has(name)) this.keys.set(name, key)
  }

  delete(key: Key): void {
    this.keys.delete(nameOf(key))
  }

  clear(): void {
    this.keys.clear()
  }

  [Symbol.iterator](): Iterator<Key> {
    return this.keys.values()
  }
}
