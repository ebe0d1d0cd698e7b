import { blockUs, checkedCost, checkedTokens } from '../../arguments.js'
import type { Awaitable } from '../../awaitable.js'
import type { Decision } from '../../decision.js'
import { publishDenial } from '../../diagnostics.js'
import { culpritIn, type KeyLists, verdictOn } from '../../layers/key-list.js'
import { listedDecision } from '../../layers/listed-limiter.js'
import { atOnce } from '../../layers/wrapped-limiter.js'
import type { Key, WaitOptions } from '../../limiter.js'
import { holdsPermits } from '../../permit.js'
import type { Duration } from '../../policy/duration.js'
import type { FleetBoundKey, FleetLimiter, FleetReservation } from '../fleet-limiter.js'
import { SharedPermit } from '../shared-permit.js'
import { emptyFleetReservation } from '../waiting/reservations.js'
import { policyIn, WrappedSharedLimiter } from './wrapped-shared-limiter.js'

/** `ListedLimiter` for a shared limiter: keys that always pass and keys that never do, without a call to the backend. */
export class ListedSharedLimiter<Answer extends Decision> extends WrappedSharedLimiter<Answer> implements FleetLimiter<Answer> {
  private readonly lists: KeyLists

  constructor(inner: FleetLimiter<Answer>, lists: KeyLists) {
    super(inner)
    this.lists = lists
  }

  take(key: Key, cost = 1): Awaitable<Answer> {
    return this.taken(key, cost) ?? this.inner.take(key, cost)
  }

  peek(key: Key, cost = 1): Awaitable<Decision> {
    return this.foreseen(key, cost) ?? this.inner.peek(key, cost)
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Answer> {
    if (verdictOn(key, this.lists) === undefined) return this.inner.wait(key, options)
    return atOnce(key, options, (cost) => this.take(key, cost))
  }

  async reserve(key: Key, cost: number): Promise<FleetReservation> {
    const decision = this.foreseen(key, cost)
    return decision === undefined ? this.inner.reserve(key, cost) : emptyFleetReservation(decision, async () => decision)
  }

  async refund(key: Key, tokens: number): Promise<Decision> {
    const listed = this.foreseen(key)
    if (listed === undefined) return this.inner.refund(key, tokens)
    checkedTokens(tokens)
    return listed
  }

  async penalize(key: Key, tokens: number): Promise<Decision> {
    const listed = this.foreseen(key)
    if (listed === undefined) return this.inner.penalize(key, tokens)
    checkedTokens(tokens)
    return listed
  }

  async block(key: Key, duration: Duration): Promise<Decision> {
    const listed = this.foreseen(key)
    if (listed === undefined) return this.inner.block(key, duration)
    blockUs(duration)
    return listed
  }

  async reset(key: Key): Promise<Decision> {
    return this.foreseen(key) ?? this.inner.reset(key)
  }

  /** A function decides about the key at each call, not only here. */
  key(key: Key): FleetBoundKey<Answer> {
    const bound = this.inner.key(key)
    return this.bound({
      key: bound.key,
      take: (cost = 1) => this.taken(bound.key, cost) ?? bound.take(cost),
      peek: (cost = 1) => this.foreseen(bound.key, cost) ?? bound.peek(cost),
    })
  }

  private taken(key: Key, cost: number): Answer | undefined {
    const decision = this.foreseen(key, cost)
    if (decision === undefined) return undefined
    if (!decision.allowed) publishDenial(culpritIn(key, this.lists), cost, decision)
    return (holdsPermits(policyIn(this.inner, key)) ? SharedPermit.empty(decision) : decision) as Decision as Answer
  }

  /** The decision for a listed key. */
  private foreseen(key: Key, cost = 1): Decision | undefined {
    const verdict = verdictOn(key, this.lists)
    if (verdict === undefined) return undefined
    checkedCost(cost)
    return listedDecision(policyIn(this.inner, key), verdict === 'allow')
  }
}
