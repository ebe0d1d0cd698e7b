import { blockUs, checkedCost, checkedTokens } from '../arguments.js'
import { type Clock, type Ticker, tickerOf } from '../clock.js'
import type { Decision } from '../decision.js'
import { holdsPermits } from '../empty-permit.js'
import { isOutage, StoreError } from '../errors.js'
import type { CallGuard } from '../shared/call-guard.js'
import type { Booked, FleetVerbs } from '../shared/fleet-verbs.js'
import { StorePermit } from '../shared/store-permit.js'
import { goodForUs } from '../lease/leasing.js'
import type { Key } from '../limiter.js'
import type { Duration } from '../policy/duration.js'
import type { Policy } from '../policy/policy.js'
import { refusal } from '../refusal.js'
import { decisionIn } from './decision-numbers.js'
import { numbersIn } from './message.js'
import type { PrimaryLink } from './primary-link.js'

/** A booking in the primary, which knows it by an id. */
interface ClusterBooked extends Booked {
  readonly id: number
}

/** What the verbs of a policy need. */
export interface ClusterVerbsParts {
  readonly guard: CallGuard
  readonly link: PrimaryLink
  readonly policy: Policy
  readonly clock: Clock
  /** Whether tokens of it are leased here. */
  readonly isLeased: boolean
  /** The length of a lease as the primary said it last. */
  readonly leaseUs: () => number
}

type Asking = readonly [verb: string, ...args: unknown[]]

/**
 * Each verb as one question to the primary. A permit or a booking that is given after the caller was told that there is no answer goes
 * back; other tokens stay spent.
 */
export class ClusterVerbs implements FleetVerbs<ClusterBooked> {
  readonly partCount: number
  private readonly parts: ClusterVerbsParts
  private readonly holdsPermits: boolean
  private readonly ticker: Ticker

  constructor(parts: ClusterVerbsParts) {
    this.parts = parts
    const { policy, clock } = parts
    this.partCount = policy.policies?.length ?? 1
    this.holdsPermits = holdsPermits(policy)
    this.ticker = tickerOf(clock)
  }

  async take(key: Key, cost: number): Promise<Decision> {
    const { link, guard } = this.parts
    const id = link.newId()
    const tokens = checkedCost(cost)
    const sentUs = this.ticker.read()
    const answer = await this.ask(key, id, ['take', key, tokens], (late) => {
      if (this.holdsPermits && this.decided(late).allowed) link.tell('release', key, id)
    })
    const decision = this.decided(answer)
    if (decision.allowed) guard.counts.charged += tokens
    const isLate = decision.allowed && this.ticker.read() - sentUs > this.goodForUs(decision)
    if (isLate) throw new StoreError('OUTAGE', 'the primary answered too late for the token to be spent')
    return this.held(decision, key, id)
  }

  async peek(key: Key, cost: number): Promise<Decision> {
    return this.decided(await this.verb(key, ['peek', key, checkedCost(cost)]))
  }

  async refund(key: Key, tokens: number): Promise<Decision> {
    return this.decided(await this.verb(key, ['refund', key, checkedTokens(tokens)]))
  }

  async penalize(key: Key, tokens: number): Promise<Decision> {
    return this.decided(await this.verb(key, ['penalize', key, checkedTokens(tokens)]))
  }

  charge(key: Key, tokens: readonly number[]): Promise<unknown> {
    return this.verb(key, ['charge', key, tokens])
  }

  async block(key: Key, duration: Duration): Promise<Decision> {
    return this.decided(await this.verb(key, ['block', key, blockUs(duration) / 1000]))
  }

  async reset(key: Key): Promise<Decision> {
    return this.decided(await this.verb(key, ['reset', key]))
  }

  async book(key: Key, cost: number, mostUs: number): Promise<ClusterBooked> {
    const { link, guard } = this.parts
    const id = link.newId()
    const tokens = checkedCost(cost)
    const request = ['book', key, tokens, Math.min(Math.floor(mostUs), Number.MAX_SAFE_INTEGER)] as const
    const answer = await this.ask(key, id, request, (late) => {
      if (late[0] === 1) guard.unwanted.collect(key, id, async () => link.tell('cancel', key, id, tokens))
    })
    const [charged, waitUs = 0, ...numbers] = numbersIn(answer, 2)
    const permit = this.holdsPermits ? String(id) : undefined
    if (charged === 1) guard.counts.charged += tokens
    return { key, cost: tokens, allowed: charged === 1, waitUs, decision: this.decided(numbers), permit, id, order: id }
  }

  async answer({ key, waitUs, decision, permit, id }: ClusterBooked): Promise<Decision> {
    const passed = { ...decision, allowed: true, retryAfterMs: 0 }
    if (waitUs === 0) return permit === undefined ? passed : this.held(passed, key, id)
    try {
      return this.decided(await this.verb(key, ['answer', key, id]))
    } catch (error) {
      // Booked and paid for: who took these tokens elsewhere as well would spend them twice.
      if (isOutage(error)) return passed
      throw error
    }
  }

  async giveBack({ key, id }: ClusterBooked, tokens: number): Promise<Decision> {
    return this.decided(await this.verb(key, ['cancel', key, id, tokens]))
  }

  /** Told, not asked: it arrives in its place among all that is said, also of a limiter that was closed and hears no answers. */
  async discard({ key, id, cost }: ClusterBooked): Promise<void> {
    this.parts.link.tell('cancel', key, id, cost)
  }

  refuse(decision: Decision): Decision {
    const denied = refusal(decision)
    return this.holdsPermits ? new StorePermit(denied) : denied
  }

  /** A decision with what it holds, which goes by the id of the request for it. */
  private held(decision: Decision, key: Key, id: number): Decision {
    if (!this.holdsPermits) return decision
    return new StorePermit(decision, async (verb) => {
      const [done] = numbersIn(await this.verb(key, [verb, key, id]), 1)
      return done === 1
    })
  }

  private decided(answer: readonly unknown[]): Decision {
    return decisionIn(answer, this.parts.policy)
  }

  /** What a leased policy's state let pass is to be spent within a lease, also by who asked before he heard that it is leased. */
  private goodForUs(decision: Decision): number {
    const leaseUs = this.parts.leaseUs()
    return this.parts.isLeased || leaseUs === 0 ? Number.POSITIVE_INFINITY : goodForUs(this.parts.policy, decision, leaseUs)
  }

  private verb(key: Key, request: Asking): Promise<readonly unknown[]> {
    return this.ask(key, this.parts.link.newId(), request)
  }

  private ask(key: Key, id: number, [verb, ...args]: Asking, late?: (answer: readonly unknown[]) => void): Promise<readonly unknown[]> {
    const { guard, link } = this.parts
    const call = (): Promise<readonly unknown[]> => {
      const answer = link.ask(id, verb, ...args)
      if (verb === 'book') guard.unwanted.sent(key, answer)
      return answer
    }
    return guard.guarded(typeof key === 'string' ? key : (key[0] as string), call, late)
  }
}
