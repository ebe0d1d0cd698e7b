import { keysFor } from '../all-of-keys.js'
import { checkedCost } from '../arguments.js'
import type { Decision } from '../decision.js'
import type { LeasedTakes } from '../shared/leased-takes.js'
import type { Key } from '../limiter.js'
import type { ApartStore } from './apart-store.js'
import type { StorePolicies } from './store-form.js'
import { type StoreBooked, StoreVerbs } from './store-verbs.js'

/**
 * The verbs of several policies that are leased, also on keys in different slots: what means something to each policy by itself is asked
 * for one by one, what is to be charged together is taken from leases.
 */
export class ApartVerbs extends StoreVerbs {
  private readonly leases: LeasedTakes
  private readonly apart: ApartStore

  constructor(apart: ApartStore, policies: StorePolicies, newPermit: () => string, leases: LeasedTakes) {
    super(apart, policies, newPermit)
    this.apart = apart
    this.leases = leases
  }

  override async book(key: Key, cost: number, mostUs: number): Promise<StoreBooked> {
    if (this.apart.isTogether(keysFor(this.partCount, key))) return super.book(key, cost, mostUs)
    const tokens = checkedCost(cost)
    const decision = await this.leases.take(key, tokens)
    const { policies } = this
    const answer = { standings: [] }
    return { key, cost: tokens, allowed: decision.allowed, waitUs: 0, decision, answer, policies, permit: undefined, order: 0 }
  }

  override giveBack(booked: StoreBooked, tokens: number): Promise<Decision> {
    if (booked.answer.standings.length > 0) return super.giveBack(booked, tokens)
    // Of what was leased before an update nobody knows what still counts.
    return booked.policies === this.policies ? this.refund(booked.key, tokens) : this.peek(booked.key, 1)
  }
}
