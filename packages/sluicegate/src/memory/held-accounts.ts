import type { Decision } from '../decision/decision.js'
import { contentionError } from '../errors.js'
import { endOf, slotUs } from '../holds/hold-ends.js'
import { laterReading, type MemoryDecisions } from './memory-decisions.js'
import { closedCore } from './open-core.js'

/** A key of one part. */
export interface HashedKey {
  readonly key: string
  readonly low: number
  readonly high: number
}

/** What work holds of a key of one part. */
class Account implements HashedKey {
  readonly decisions: MemoryDecisions
  readonly key: string
  readonly low: number
  readonly high: number
  /** Tokens, and until when. */
  rest = 0
  endUs = 0
  /** What the core knows its ring by; 0 for whichever the key has. */
  ring = 0

  constructor(decisions: MemoryDecisions, { key, low, high }: HashedKey) {
    this.decisions = decisions
    this.key = key
    this.low = low
    this.high = high
  }
}

/** How a piece is spent: of what there is; all the same; of a blocked key, too. After the last two nothing is held any more. */
export const ASKED = 0
export const FORCED = 1
export const CLOSING = 2
type Spending = typeof ASKED | typeof FORCED | typeof CLOSING

/** Attempts to change all parts at once before a call gives up with CONTENTION. */
const MAX_ATTEMPTS = 100
/** The core's answer where another thread has taken the place for an end that was prepared. */
const UNPREPARED = Number.NEGATIVE_INFINITY

/** What one work holds, of the keys of all parts: each step changes all of them or none. */
export class HeldAccounts {
  private readonly accounts: readonly Account[]
  private readonly ttlUs: number
  private readonly widthUs: number
  /** Until then {@link renew} has nothing to do. */
  private dueUs = 0

  constructor(holders: readonly MemoryDecisions[], keys: readonly HashedKey[], ttlUs: number) {
    this.accounts = keys.map((key, i) => new Account(holders[i] as MemoryDecisions, key))
    this.ttlUs = ttlUs
    this.widthUs = slotUs(ttlUs)
  }

  /** The same where the keys are now, of which a limiter has brought the holds here. */
  movedTo(holders: readonly MemoryDecisions[], keys: readonly HashedKey[]): HeldAccounts {
    const moved = new HeldAccounts(holders, keys, this.ttlUs)
    for (const [i, account] of moved.accounts.entries()) {
      const { rest, endUs } = this.accounts[i] ?? this.first
      account.rest = rest
      account.endUs = endUs
    }
    return moved
  }

  /** A key that goes and comes back between two steps has its holds in another ring. */
  inAnyRing(): void {
    for (const account of this.accounts) account.ring = 0
  }

  get holders(): readonly MemoryDecisions[] {
    return this.accounts.map(({ decisions }) => decisions)
  }

  areOf(holders: readonly MemoryDecisions[]): boolean {
    return this.accounts.every(({ decisions }, i) => decisions === holders[i])
  }

  get isClosed(): boolean {
    return this.first.decisions.opened.core === closedCore
  }

  nowUs(): number {
    return this.first.decisions.nowUs()
  }

  /** What a take of each part would get. */
  peek(cost: number, nowUs: number): readonly Decision[] {
    return this.accounts.map(({ decisions, key, low, high }) => decisions.peek(key, low, high, cost, nowUs))
  }

  /** What is still held: of parts where it has ended, nothing. */
  restAt(us: number): number {
    let least = Number.POSITIVE_INFINITY
    for (const { rest, endUs } of this.accounts) least = Math.min(least, endUs > us ? rest : 0)
    return least
  }

  /** Tokens that nobody holds, of the part with the fewest. */
  free(us: number): number {
    return Math.min(...this.peek(1, us).map(({ remaining }) => remaining))
  }

  /**
   * Holds tokens of all parts. Otherwise the decisions of a take, or of what found no room.
   *
   * @throws {StoreError} `CONTENTION`
   */
  hold(tokens: number, nowUs: number): readonly Decision[] | undefined {
    const { core } = this.first.decisions.opened
    let us = nowUs
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const refused = this.prepared(tokens, us)
      if (refused !== undefined) return refused
      const descriptor = core.openDescriptor()
      const staged = descriptor === 0 ? 'again' : this.staged(descriptor, tokens, us)
      if (staged === 'staged' && core.commit(descriptor)) return this.noteRest(tokens)
      if (descriptor !== 0 && staged !== 'staged') core.closeDescriptor(descriptor)
      if (staged === 'denied') {
        const denied = this.peek(tokens, us)
        if (denied.some(({ allowed }) => !allowed)) return denied
      }
      core.yieldAfter(attempt + 1)
      us = this.first.decisions.ticker.read()
    }
    core.giveUp()
    throw contentionError()
  }

  /** What a look saw, with what has been held since. */
  afterHold(seen: readonly Decision[], tokens: number, nowUs: number): readonly Decision[] {
    return seen.map((decision, i) => {
      const endsMs = Math.ceil(((this.accounts[i] as Account).endUs - nowUs) / 1000)
      const remaining = Math.max(0, decision.remaining - tokens)
      return { ...decision, remaining, resetAfterMs: Math.max(decision.resetAfterMs, endsMs) }
    })
  }

  /**
   * Spends tokens of all parts or of none: of the hold first, then of what is free. False: there are too few, or a key is blocked.
   *
   * @throws {StoreError} `CONTENTION`
   */
  spend(cost: number, nowUs: number, how: Spending): boolean {
    const { accounts } = this
    const isSpent = accounts.length === 1 ? this.spentOf(this.first, 0, cost, nowUs, how) : this.spentTogether(cost, nowUs, how)
    if (!isSpent) return false
    for (let i = 0; i < accounts.length; i++) {
      const account = accounts[i] as Account
      account.rest = how === ASKED && cost <= account.rest ? account.rest - cost : 0
    }
    return true
  }

  /** Holds nothing any more. */
  release(nowUs: number): void {
    for (const account of this.accounts) {
      if (account.rest > 0) this.spentOf(account, 0, 0, nowUs, CLOSING)
      account.rest = 0
    }
  }

  /** Holds what is left for another ttl. */
  renew(us: number): void {
    if (us <= this.dueUs) return
    this.dueUs = Number.POSITIVE_INFINITY
    for (const account of this.accounts) {
      if (account.rest > 0 && us + this.ttlUs > account.endUs) this.renewOf(account, us)
      if (account.rest > 0) this.dueUs = Math.min(this.dueUs, account.endUs - this.ttlUs)
    }
  }

  private renewOf(account: Account, us: number): void {
    const { decisions, low, high, rest, endUs, ring } = account
    const renewedUs = decisions.opened.core.renewHold(low, high, us, rest, endUs, endOf(us, this.ttlUs, this.widthUs), ring)
    if (renewedUs > 0) account.endUs = renewedUs
    else if (renewedUs === 0) account.rest = 0
  }

  private get first(): Account {
    return this.accounts[0] as Account
  }

  private noteRest(tokens: number): undefined {
    for (const account of this.accounts) account.rest = tokens
    this.dueUs = 0
  }

  /** Finds a place for the end of the hold in each part. Otherwise what is answered where key or ring find no room. */
  private prepared(tokens: number, us: number): readonly Decision[] | undefined {
    const endUs = endOf(us, this.ttlUs, this.widthUs)
    for (const [i, account] of this.accounts.entries()) {
      const { decisions, key, low, high } = account
      const { core } = decisions.opened
      const answer = core.prepareHold(low, high, us, endUs)
      if (answer < 0 || Number.isNaN(answer)) {
        const reason = decisions.opened.reason()
        if (reason === 'CONTENDED') throw decisions.contended(key)
        if (reason === 'REFUSED') return this.refused(i, tokens, us)
        decisions.noteEviction(key)
        decisions.events.publish()
      }
      account.endUs = answer >= 0 ? answer : core.detailOfUnanswered()
    }
    return undefined
  }

  private refused(of: number, tokens: number, us: number): readonly Decision[] {
    const { decisions } = this.accounts[of] as Account
    const refusal = decisions.decoder.refused(tokens, Math.ceil(decisions.opened.core.detailOfUnanswered() / 1000))
    return this.peek(tokens, us).map((decision, i) => (i === of ? refusal : decision))
  }

  private staged(descriptor: number, tokens: number, us: number): 'staged' | 'denied' | 'again' {
    for (const account of this.accounts) {
      const { decisions, key, low, high, endUs } = account
      const { opened } = decisions
      const answer = opened.core.stageHold(descriptor, low, high, us, tokens, endUs)
      account.ring = opened.core.ringOpened()
      if (answer >= 0) continue
      if (answer === UNPREPARED) return 'again'
      if (!Number.isNaN(answer)) return 'denied'
      if (opened.reason() === 'CONTENDED') throw decisions.contended(key)
      return 'denied'
    }
    return 'staged'
  }

  private spentTogether(cost: number, nowUs: number, how: Spending): boolean {
    const { accounts } = this
    const { core } = this.first.decisions.opened
    let us = nowUs
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const descriptor = core.openDescriptor()
      if (descriptor !== 0) {
        for (let i = 0; i < accounts.length; i++) {
          if (this.spentOf(accounts[i] as Account, descriptor, cost, us, how)) continue
          core.closeDescriptor(descriptor)
          return false
        }
        if (core.commit(descriptor)) return true
      }
      core.yieldAfter(attempt + 1)
      us = this.first.decisions.ticker.read()
    }
    core.giveUp()
    throw contentionError()
  }

  private spentOf(account: Account, descriptor: number, cost: number, us: number, how: Spending, readings = 0): boolean {
    const { decisions, low, high, rest, endUs, ring } = account
    const answer = decisions.opened.core.spendHold(descriptor, low, high, us, cost, rest, endUs, ring, how)
    return Number.isNaN(answer) ? this.spentOtherwise(account, descriptor, cost, us, how, readings) : answer >= 0
  }

  /** What the core has answered with a reason. */
  private spentOtherwise(account: Account, descriptor: number, cost: number, us: number, how: Spending, readings: number): boolean {
    const { decisions, key } = account
    const { opened } = decisions
    const detail = opened.core.detailOfUnanswered()
    switch (opened.reason()) {
      case 'EVICTED':
        decisions.noteEviction(key)
        decisions.events.publish()
        return detail >= 0
      case 'OVERFLOWED':
        if (descriptor !== 0) opened.core.countOverflow()
        return true
      case 'LATE': {
        const laterUs = laterReading(decisions.ticker, us, readings, decisions.decoder.denied(detail, cost))
        return laterUs !== undefined && this.spentOf(account, descriptor, cost, laterUs, how, readings + 1)
      }
      case 'CONTENDED':
        throw decisions.contended(key)
      default:
        // No room for a new key, or an operator has blocked it.
        return false
    }
  }
}
