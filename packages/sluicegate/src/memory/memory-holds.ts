import type { Awaitable } from '../awaitable.js'
import { combined, type Decision } from '../decision/decision.js'
import { PermitDecision } from '../decision/permit.js'
import { PolicyError } from '../errors.js'
import { HeldKeys } from '../holds/held-keys.js'
import { checkedOpenRequest, checkPrice, checkSpent, type Hold, type OpenOptions, type OpenRequest, uncountedHold } from '../holds/hold.js'
import { endOf, type KeyHolds, slotUs } from '../holds/key-holds.js'
import { LearnedCost } from '../holds/learned-cost.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { ChargedAs, MemoryDecisions } from './memory-decisions.js'
import { closedCore } from './open-core.js'

/** What opening holds needs of a limiter. */
export interface HoldingLimiter {
  /** The parts of `allOf`, or the limiter itself. */
  holders(): readonly MemoryDecisions[]
  /** The key of each part, and its hash. */
  hashed(key: Key): readonly HashedKey[]
  /** Whether others wait for the key: neither a take nor a hold overtakes them. */
  isQueued(key: Key): boolean
  refuse(key: Key, cost: number): Decision
  wait(key: Key, options: WaitOptions): Promise<Decision>
  /** Counts and publishes a decision. */
  record(key: Key, cost: number, decision: Decision): Decision
  /** Tokens came free. */
  freed(key: Key): void
}

/** A key of one part. */
export interface HashedKey {
  readonly key: string
  readonly low: number
  readonly high: number
}

/** A part and its key, with what is held there. */
interface Account extends HashedKey {
  readonly decisions: MemoryDecisions
  readonly holds: KeyHolds
}

/** The holds of one limiter in this thread. */
export class MemoryHolds {
  private readonly limiter: HoldingLimiter
  private readonly learned = new LearnedCost()

  constructor(limiter: HoldingLimiter) {
    this.limiter = limiter
    const latest = { us: Number.NEGATIVE_INFINITY }
    for (const { decoder } of limiter.holders()) {
      if (decoder.policy.algorithm === 'concurrency') {
        throw new PolicyError(
          'POLICY_INVALID',
          'policy',
          decoder.policy.name,
          'is concurrency, whose permits are holds already: take() one',
        )
      }
    }
    for (const decisions of limiter.holders()) decisions.held = new HeldKeys(latest)
  }

  open(key: Key, options: OpenOptions): Hold {
    const request = checkedOpenRequest(options)
    const { limiter } = this
    const keys = limiter.hashed(key)
    const expected = this.expected(request, keys)
    if (limiter.isQueued(key)) return uncountedHold(limiter.record(key, expected, limiter.refuse(key, expected)))
    const holders = limiter.holders()
    const nowUs = (holders[0] as MemoryDecisions).nowUs()
    const foreseen = keys.map((own, i) => (holders[i] as MemoryDecisions).peek(own.key, own.low, own.high, expected, nowUs))
    if (!foreseen.every(({ allowed }) => allowed)) return this.refused(key, expected, foreseen)
    const accounts: Account[] = []
    for (const [i, own] of keys.entries()) {
      const decisions = holders[i] as MemoryDecisions
      const holds = decisions.held?.claim(own.key, nowUs)
      if (holds === undefined)
        return this.refused(
          key,
          expected,
          foreseen.map((decision) => withoutRoom(decision, request)),
        )
      accounts.push({ ...own, decisions, holds })
    }
    const decisions = foreseen.map((decision) => ({ ...decision, remaining: Math.max(0, decision.remaining - expected) }))
    const decision = limiter.record(key, expected, wholeOf(decisions))
    return new MemoryHold(decision, new OpenWork(limiter, this.learned, key, accounts, request, expected))
  }

  private refused(key: Key, expected: number, parts: readonly Decision[]): Hold {
    return uncountedHold(this.limiter.record(key, expected, wholeOf(parts)))
  }

  private expected(request: OpenRequest, keys: readonly HashedKey[]): number {
    const burst = Math.min(...this.limiter.holders().map(({ decoder }) => decoder.policy.burst))
    return this.learned.expected(request, learnedBy(keys), burst)
  }
}

/** Of several levels the last is the narrowest, as a rule. */
function learnedBy(keys: readonly HashedKey[]): string {
  return (keys[keys.length - 1] as HashedKey).key
}

function wholeOf(decisions: readonly Decision[]): Decision {
  return decisions.length === 1 ? (decisions[0] as Decision) : combined(decisions)
}

/** As many keys as can be have holds. */
function withoutRoom(decision: Decision, { ttlUs }: OpenRequest): Decision {
  const retryAfterMs = Math.ceil(ttlUs / 1000)
  return { ...decision, allowed: false, retryAfterMs, resetAfterMs: Math.max(decision.resetAfterMs, retryAfterMs) }
}

/** Open work. All parts hold the same: it began with one expectation, and each piece is spent in all of them. */
class OpenWork {
  used = 0
  over = 0
  private readonly limiter: HoldingLimiter
  private readonly learned: LearnedCost
  private readonly key: Key
  private readonly accounts: readonly Account[]
  private readonly request: OpenRequest
  private readonly widthUs: number
  private rest: number
  private endUs: number
  /** What was refused: the work would have cost as much more. */
  private missed = 0
  private isClosed = false
  private waiting: Promise<boolean> | undefined
  /** Ends a wait when the work closes. */
  private closing: AbortController | undefined

  constructor(
    limiter: HoldingLimiter,
    learned: LearnedCost,
    key: Key,
    accounts: readonly Account[],
    request: OpenRequest,
    expected: number,
  ) {
    this.limiter = limiter
    this.learned = learned
    this.key = key
    this.accounts = accounts
    this.request = request
    this.widthUs = slotUs(request.ttlUs)
    this.rest = expected
    this.endUs = endOf(this.time(), request.ttlUs, this.widthUs)
    for (const { holds } of accounts) holds.add(this.endUs, expected)
  }

  /** Whether it, or its limiter, is closed. */
  get isOver(): boolean {
    return this.isClosed || (this.accounts[0] as Account).decisions.opened.core === closedCore
  }

  get held(): number {
    return this.isClosed ? 0 : this.restAt(this.time())
  }

  add(cost: number): Awaitable<boolean> {
    checkSpent(cost)
    if (this.isClosed) return false
    if (this.waiting !== undefined) return this.behind(cost)
    const us = this.time()
    const rest = this.restAt(us)
    if (cost > this.request.most - this.used) return this.refused(cost)
    if (cost <= rest) {
      // Spent before it is freed: nobody else may have it in between.
      if (!this.spend(cost, us, 'held')) return this.refused(cost)
      this.keep(rest - cost, us)
    } else {
      const room = this.free(us)
      if (cost > rest + room) return this.beyond(cost, rest, room, us)
      if (!this.spend(cost, us, 'free')) return this.beyond(cost, rest, 0, us)
      this.keep(0, us)
    }
    this.used += cost
    return true
  }

  /** @param cost undefined: what was added counts. */
  close(cost: number | undefined): Decision {
    if (cost !== undefined) checkSpent(cost)
    const us = this.time()
    if (!this.isClosed) {
      const missing = Math.max(0, (cost ?? this.used) - this.used)
      const rest = this.restAt(us)
      const over = missing > rest ? Math.max(0, missing - rest - this.free(us)) : 0
      this.spend(missing, us, 'used')
      this.isClosed = true
      this.used += missing
      this.over += over
      const whole = cost ?? this.used + this.missed
      // Work that was called off before it began says nothing of what work costs.
      if (cost !== undefined || whole > 0) this.learned.add(learnedBy(this.accounts), whole)
      this.keep(0, us)
      this.closing?.abort()
      this.limiter.freed(this.key)
    }
    return wholeOf(this.accounts.map(({ decisions, key, low, high }) => decisions.peek(key, low, high, 1, us)))
  }

  /** Tokens that it may still spend at once. */
  affordable(): number {
    if (this.isClosed) return 0
    const us = this.time()
    const rest = this.restAt(us)
    return Math.min(this.request.most - this.used, rest + this.free(us))
  }

  private time(): number {
    const { decisions } = this.accounts[0] as Account
    return (decisions.held as HeldKeys).time(decisions.nowUs())
  }

  /** What is still held: nothing once its slot has ended. */
  private restAt(us: number): number {
    return this.endUs > us ? this.rest : 0
  }

  /** Holds `rest`, which never grows, for another ttl. */
  private keep(rest: number, us: number): void {
    const before = this.restAt(us)
    const { ttlUs } = this.request
    const endUs = us + ttlUs <= this.endUs ? this.endUs : endOf(us, ttlUs, this.widthUs)
    const { accounts } = this
    for (let i = 0; i < accounts.length; i++) {
      const { holds } = accounts[i] as Account
      if (endUs === this.endUs) {
        holds.remove(endUs, before - rest)
        continue
      }
      holds.remove(this.endUs, before)
      holds.add(endUs, rest)
    }
    this.rest = rest
    this.endUs = endUs
  }

  /** Tokens that nobody holds, of the part with the fewest. */
  private free(us: number): number {
    let least = Number.POSITIVE_INFINITY
    for (const { decisions, key, low, high } of this.accounts) {
      const held = decisions.held?.of(key, us)?.total ?? 0
      least = Math.min(least, decisions.peekAlone(key, low, high, 1, us).remaining - held)
    }
    return Math.max(0, least)
  }

  /** Charges all parts or none. */
  private spend(cost: number, us: number, as: ChargedAs): boolean {
    if (cost === 0) return true
    const { accounts } = this
    for (let i = 0; i < accounts.length; i++) {
      const { decisions, key, low, high } = accounts[i] as Account
      if (decisions.charge(key, low, high, us, cost, as)) continue
      for (const before of accounts.slice(0, i)) before.decisions.uncharge(before.low, before.high, us, cost)
      return false
    }
    return true
  }

  /** Neither held nor free. */
  private beyond(cost: number, rest: number, room: number, us: number): Awaitable<boolean> {
    const { over } = this.request
    if (over === 'wait') return this.later(cost, us)
    if (over === 'cut' || !this.spend(cost, us, 'debt')) return this.refused(cost)
    this.keep(0, us)
    this.used += cost
    this.over += cost - rest - room
    return true
  }

  private refused(cost: number): false {
    this.missed = Math.max(this.missed, cost)
    return false
  }

  /** What is still held is free meanwhile: it waits for the whole piece. */
  private later(cost: number, us: number): Promise<boolean> {
    this.closing ??= new AbortController()
    const wasHeld = this.restAt(us) > 0
    const options = { cost, maxWait: this.request.ttlUs / 1000, signal: this.closing.signal }
    this.keep(0, us)
    // Those that wait already come first.
    if (wasHeld) this.limiter.freed(this.key)
    const waiting = this.limiter.wait(this.key, options).then(
      ({ allowed }) => {
        this.waiting = undefined
        if (!allowed) return this.refused(cost)
        this.used += cost
        return true
      },
      (error: unknown) => {
        this.waiting = undefined
        if (this.isClosed) return false
        throw error
      },
    )
    this.waiting = waiting
    return waiting
  }

  /** After the piece that waits. */
  private async behind(cost: number): Promise<boolean> {
    await this.waiting?.catch(() => undefined)
    return this.add(cost)
  }
}

/** Open work, which is logged as its decision. */
class MemoryHold extends PermitDecision implements Hold {
  readonly #work: OpenWork

  constructor(decision: Decision, work: OpenWork) {
    super(decision)
    this.#work = work
  }

  get held(): number {
    return this.#work.held
  }

  get used(): number {
    return this.#work.used
  }

  get over(): number {
    return this.#work.over
  }

  // Only with `over: 'wait'`, whose type says so, a promise.
  add(cost: number): boolean {
    return this.#work.add(cost) as boolean
  }

  close(cost?: number): Decision {
    return this.#work.close(cost)
  }

  affordable(price: number): number {
    checkPrice(price)
    return Math.floor(this.#work.affordable() / price)
  }

  /** A `using` block may end after its limiter is closed. That is no error: nobody counts any more. */
  [Symbol.dispose](): void {
    if (!this.#work.isOver) this.close()
  }
}
