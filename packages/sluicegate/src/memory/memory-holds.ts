import type { Awaitable } from '../awaitable.js'
import { combined, type Decision } from '../decision/decision.js'
import { holdsPermits } from '../decision/permit.js'
import {
  checkedOpenRequest,
  checkSpent,
  type Hold,
  learnedBy,
  type OpenOptions,
  type OpenRequest,
  requireNoPermits,
} from '../holds/hold.js'
import { LearnedCost } from '../holds/learned-cost.js'
import { OpenedHold, type Work } from '../holds/opened-hold.js'
import { uncountedHold } from '../holds/uncounted-hold.js'
import type { Key, WaitOptions } from '../limiter.js'
import { onceInProcess } from '../once-in-process.js'
import type { Policy } from '../policy/policy.js'
import { ASKED, CLOSING, FORCED, type HashedKey, HeldAccounts } from './held-accounts.js'
import type { MemoryDecisions } from './memory-decisions.js'

/** What opening holds needs of a limiter. */
export interface HoldingLimiter {
  /** The parts of `allOf`, or the limiter itself. @param before those of work that goes on: then a plan that cannot be known changes nothing. */
  holders(key: Key, before?: readonly MemoryDecisions[]): readonly MemoryDecisions[]
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

/** Opens work of one limiter in this thread. */
export class MemoryHolds {
  private readonly limiter: HoldingLimiter
  private readonly learned = new LearnedCost()

  constructor(limiter: HoldingLimiter) {
    this.limiter = limiter
  }

  open(key: Key, options: OpenOptions): Hold {
    const request = checkedOpenRequest(options)
    const { limiter } = this
    const holders = limiter.holders(key)
    const policies = policiesOf(holders)
    requireNoPermits(policies)
    const keys = limiter.hashed(key)
    const by = learnedBy(keys.map((own) => own.key))
    const burst = Math.min(...policies.map((policy) => policy.burst))
    const expected = this.learned.expected(request, by, burst)
    if (limiter.isQueued(key)) return this.refused(key, expected, [limiter.refuse(key, expected)])
    const accounts = new HeldAccounts(holders, keys, request.ttlUs)
    const nowUs = accounts.nowUs()
    // A look first: what is denied needs no ring.
    const foreseen = accounts.peek(expected, nowUs)
    const denied = foreseen.every(({ allowed }) => allowed) ? accounts.hold(expected, nowUs) : foreseen
    if (denied !== undefined) return this.refused(key, expected, denied)
    const decision = limiter.record(key, expected, wholeOf(accounts.afterHold(foreseen, expected, nowUs)))
    const work = new OpenWork(limiter, this.learned, key, by, accounts, request)
    const hold = new OpenedHold<boolean, 'now'>(decision, work)
    works.set(hold, work)
    return hold
  }

  private refused(key: Key, expected: number, parts: readonly Decision[]): Hold {
    return uncountedHold(this.limiter.record(key, expected, wholeOf(parts)))
  }
}

function policiesOf(holders: readonly MemoryDecisions[]): readonly Policy[] {
  return holders.map(({ decoder }) => decoder.policy)
}

function wholeOf(decisions: readonly Decision[]): Decision {
  return decisions.length === 1 ? (decisions[0] as Decision) : combined(decisions)
}

/** Open work. All parts hold the same: it began with one expectation, and each piece is spent in all of them. */
class OpenWork implements Work<'now'> {
  used = 0
  over = 0
  private limiter: HoldingLimiter
  private readonly learned: LearnedCost
  private readonly key: Key
  private readonly learnedBy: string
  private accounts: HeldAccounts
  private readonly request: OpenRequest
  /** What was refused: the work would have cost as much more. */
  private missed = 0
  private isClosed = false
  /** The limiter that has its key, if that may change. */
  private limiterNow: (() => object) | undefined
  private waiting: Promise<boolean> | undefined
  /** Ends a wait when the work closes. */
  private closing: AbortController | undefined

  constructor(limiter: HoldingLimiter, learned: LearnedCost, key: Key, learnedBy: string, accounts: HeldAccounts, request: OpenRequest) {
    this.limiter = limiter
    this.learned = learned
    this.key = key
    this.learnedBy = learnedBy
    this.accounts = accounts
    this.request = request
  }

  /** From now on it goes on in the limiter to which its key has been carried. */
  follow(limiterNow: () => object): void {
    this.limiterNow ??= limiterNow
    this.accounts.inAnyRing()
  }

  get isOver(): boolean {
    return this.isClosed || this.accounts.isClosed
  }

  get held(): number {
    this.goOn()
    return this.isClosed ? 0 : this.accounts.restAt(this.accounts.nowUs())
  }

  add(cost: number): Awaitable<boolean> {
    checkSpent(cost)
    this.goOn()
    if (this.isClosed) return false
    if (this.waiting !== undefined) return this.behind(cost)
    if (cost > this.request.most - this.used) return this.refused(cost)
    const { accounts } = this
    const us = accounts.nowUs()
    if (cost > 0 && !accounts.spend(cost, us, ASKED)) return this.beyond(cost, us)
    this.used += cost
    accounts.renew(us)
    return true
  }

  /** @param cost undefined: what was added counts. */
  close(cost: number | undefined): Decision {
    if (cost !== undefined) checkSpent(cost)
    this.goOn()
    const { accounts } = this
    const us = accounts.nowUs()
    if (!this.isClosed) {
      const missing = Math.max(0, (cost ?? this.used) - this.used)
      const over = this.overBy(missing, us)
      if (missing === 0 || !accounts.spend(missing, us, CLOSING)) accounts.release(us)
      this.isClosed = true
      this.used += missing
      this.over += over
      const whole = cost ?? this.used + this.missed
      // Work that was called off before it began says nothing of what work costs.
      if (cost !== undefined || whole > 0) this.learned.add(this.learnedBy, whole)
      this.closing?.abort()
      this.limiter.freed(this.key)
    }
    return wholeOf(accounts.peek(1, us))
  }

  affordable(): number {
    this.goOn()
    if (this.isClosed) return 0
    const { accounts } = this
    const us = accounts.nowUs()
    return Math.min(this.request.most - this.used, accounts.restAt(us) + accounts.free(us))
  }

  /** Where its key is now. */
  private goOn(): void {
    if (this.limiterNow === undefined || this.isClosed) return
    const { holding } = this.limiterNow() as Partial<Holder>
    if (holding === undefined) return
    const holders = holding.holders(this.key, this.accounts.holders)
    if (this.accounts.areOf(holders) || policiesOf(holders).some(holdsPermits)) return
    this.limiter = holding
    this.accounts = this.accounts.movedTo(holders, holding.hashed(this.key))
  }

  /** How much of a piece neither its hold nor free room covers. */
  private overBy(cost: number, us: number): number {
    const beyond = cost - this.accounts.restAt(us)
    return beyond > 0 ? Math.max(0, beyond - this.accounts.free(us)) : 0
  }

  /** Neither held nor free. */
  private beyond(cost: number, us: number): Awaitable<boolean> {
    const { accounts } = this
    const { over } = this.request
    if (over === 'wait') return this.later(cost, us)
    if (over === 'cut') return this.refused(cost)
    const overBy = this.overBy(cost, us)
    if (!accounts.spend(cost, us, FORCED)) return this.refused(cost)
    this.used += cost
    this.over += overBy
    return true
  }

  private refused(cost: number): false {
    this.missed = Math.max(this.missed, cost)
    return false
  }

  /** What is still held is free meanwhile: it waits for the whole piece. */
  private later(cost: number, us: number): Promise<boolean> {
    this.closing ??= new AbortController()
    const wasHeld = this.accounts.restAt(us) > 0
    const options = { cost, maxWait: this.request.ttlUs / 1000, signal: this.closing.signal }
    this.accounts.release(us)
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

/** A limiter that opens work in memory. */
interface Holder {
  readonly holding: HoldingLimiter
}

/** The work of holds in memory. */
const works = /* @__PURE__ */ onceInProcess('works of holds', () => new WeakMap<object, OpenWork>())

/**
 * Work that goes on where its key is: before each step it asks for the limiter, to which {@link carryKey} has brought the key with what is held. Work of
 * another kind, and work that follows already, stays as it is.
 *
 * @param limiterNow the limiter that has the key by now, in memory.
 * @example
 * let limiter = createLimiter(tokenBucket({ limit: 100, window: '1m' }))
 * const work = followKey(limiter.open('ada', { expect: 60 }), () => limiter)
 * const larger = createLimiter(tokenBucket({ limit: 300, window: '1m' }))
 * carryKey([limiter], larger, 'ada')
 * limiter = larger
 * work.add(30)
 */
export function followKey(hold: Hold, limiterNow: () => object): Hold {
  works.get(hold)?.follow(limiterNow)
  return hold
}
