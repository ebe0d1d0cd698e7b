import { keysFor } from '../all-of-keys.js'
import { blockUs, checkedCost, checkedTokens, checkKey } from '../arguments.js'
import type { Decision } from '../decision.js'
import { holdsPermits } from '../empty-permit.js'
import { isOutage } from '../errors.js'
import type { Booked, FleetVerbs } from '../shared/fleet-verbs.js'
import { StorePermit } from '../shared/store-permit.js'
import type { Key } from '../limiter.js'
import type { Duration } from '../policy/duration.js'
import { refusal } from '../refusal.js'
import type { Store, StoreAnswer, StoreRequest, StoreVerb } from './store.js'
import { storeDecision, waitUsIn } from './store-decision.js'
import type { StoreForm, StorePolicies } from './store-form.js'

/** The longest wait that is ever asked for: as long as it takes. */
const ANY_US = Number.MAX_SAFE_INTEGER

/** A booking in a store, and what giving it back needs to know. */
export interface StoreBooked extends Booked {
  readonly answer: StoreAnswer
  /** Under which it was booked: in their numbers the store knows of it, and under those of an update nothing of it would be safe to give back. */
  readonly policies: StorePolicies
}

/** Each verb as one call to the store. Rejects when the store could not be asked. */
export class StoreVerbs implements FleetVerbs<StoreBooked> {
  readonly policies: StorePolicies
  private readonly store: Store
  private readonly newPermit: () => string
  private readonly holdsPermits: boolean

  constructor(store: Store, policies: StorePolicies, newPermit: () => string) {
    this.store = store
    this.policies = policies
    this.newPermit = newPermit
    this.holdsPermits = policies.forms.some(({ policy }) => holdsPermits(policy))
  }

  get partCount(): number {
    return this.policies.forms.length
  }

  take(key: Key, cost: number): Promise<Decision> {
    const tokens = checkedCost(cost)
    const permit = this.permit()
    return this.store.ask('take', this.requests(key, tokens, permit)).then(({ standings }) => {
      const decision = storeDecision('take', this.policies, standings, tokens)
      return permit === undefined ? decision : this.held(decision, key, tokens, permit)
    })
  }

  peek(key: Key, cost: number): Promise<Decision> {
    return this.answered('peek', key, checkedCost(cost))
  }

  refund(key: Key, tokens: number): Promise<Decision> {
    return this.answered('refund', key, checkedTokens(tokens))
  }

  penalize(key: Key, tokens: number): Promise<Decision> {
    return this.answered('penalize', key, checkedTokens(tokens))
  }

  charge(key: Key, tokens: readonly number[]): Promise<unknown> {
    const requests = this.requests(key, 0, this.permit())
    return this.store.ask(
      'penalize',
      requests.map((request, i) => ({ ...request, tokens: tokens[i] ?? 0 })),
    )
  }

  block(key: Key, duration: Duration): Promise<Decision> {
    return this.answered('block', key, blockUs(duration))
  }

  reset(key: Key): Promise<Decision> {
    return this.answered('reset', key, 1)
  }

  /** Charges `cost` at the earliest time at which it conforms, within `mostUs`; of permits and several policies only what passes now. */
  async book(key: Key, cost: number, mostUs: number): Promise<StoreBooked> {
    const tokens = checkedCost(cost)
    const permit = this.permit()
    // The parts of several would come due at different times.
    const bookedUs = this.policies.isAllOf ? 0 : Math.min(mostUs, ANY_US)
    const answer = await this.store.ask('reserve', this.requests(key, tokens, permit, bookedUs))
    const { standings } = answer
    const decision = storeDecision('reserve', this.policies, standings, tokens)
    const allowed = standings.every(({ done }) => done)
    const waitUs = allowed && standings.length === 1 ? waitUsIn(this.policies.forms[0] as StoreForm, standings[0] as never) : 0
    return { key, cost: tokens, allowed, waitUs, decision, answer, policies: this.policies, permit, order: answer.nowUs ?? 0 }
  }

  /** What the taker of a booking is told: a take that passed, unless the key was blocked while he slept; then it goes back. */
  async answer(booked: StoreBooked): Promise<Decision> {
    const { key, cost, waitUs, decision, permit } = booked
    const passed = (standing: Decision): Decision => ({ ...standing, allowed: true, retryAfterMs: 0 })
    if (waitUs === 0) return permit === undefined ? passed(decision) : this.held(passed(decision), key, cost, permit)
    const standing = await this.standingUnlessOut(key, permit)
    // Booked and paid for: who took these tokens elsewhere as well would spend them twice.
    if (standing === undefined) return passed(decision)
    const isBlocked = standing.standings.some(({ blockedUs }) => blockedUs > 0)
    if (isBlocked) await this.giveBack(booked, cost)
    const now = storeDecision('peek', this.policies, standing.standings, 1)
    return isBlocked ? now : passed(now)
  }

  private async standingUnlessOut(key: Key, permit: string | undefined): Promise<StoreAnswer | undefined> {
    try {
      return await this.store.ask('peek', this.requests(key, 1, permit))
    } catch (error) {
      if (isOutage(error)) return undefined
      throw error
    }
  }

  /** A denial of those who may not overtake, or whose time is over. */
  refuse(decision: Decision): Decision {
    const denied = refusal(decision)
    return this.holdsPermits ? new StorePermit(denied) : denied
  }

  /** Gives `tokens` of what was booked back, as much as is safe. */
  async giveBack({ key, cost, waitUs, answer, policies, permit }: StoreBooked, tokens: number): Promise<Decision> {
    const { nowUs = 0, standings: booked } = answer
    const requests = this.requests(key, tokens, permit).map((request, i) => ({
      ...request,
      form: policies.forms[i] as StoreForm,
      booking: { cost, bookedUs: nowUs, atUs: nowUs + waitUs, debt: booked[i]?.debt ?? 0 },
    }))
    const { standings } = await this.store.ask('cancel', requests)
    return storeDecision('cancel', policies, standings, 1)
  }

  discard(booked: StoreBooked): Promise<unknown> {
    return this.giveBack(booked, booked.cost)
  }

  /** A decision, with what it holds. */
  held(decision: Decision, key: Key, cost: number, permit: string): StorePermit {
    return new StorePermit(decision, async (verb) => {
      const requests = this.requests(key, cost, permit).filter(({ form }) => holdsPermits(form.policy))
      const { standings } = await this.store.ask(verb, requests)
      return standings.every(({ done }) => done)
    })
  }

  private async answered(verb: StoreVerb, key: Key, tokens: number): Promise<Decision> {
    const { standings } = await this.store.ask(verb, this.requests(key, tokens, this.permit()))
    return storeDecision(verb, this.policies, standings, tokens)
  }

  private permit(): string | undefined {
    return this.holdsPermits ? this.newPermit() : undefined
  }

  private requests(key: Key, tokens: number, permit: string | undefined, mostUs?: number): StoreRequest[] {
    const { forms, isAllOf } = this.policies
    const [form] = forms
    if (!isAllOf) {
      checkKey(key)
      return [{ form: form as StoreForm, key, tokens, permit, mostUs }]
    }
    return keysFor(forms.length, key).map((own, i) => ({ form: forms[i] as StoreForm, key: own, tokens, permit, mostUs }))
  }
}
