import { combined, type Decision } from '../decision/decision.js'
import { keysUnder } from '../key.js'
import type { Grant } from '../lease/grant.js'
import type { Key } from '../limiter.js'
import { type Policy, policiesOf } from '../policy/policy.js'
import {
  type Answer,
  type Backend,
  type CancelSignal,
  type ChargingOperation,
  type GiveBackOperation,
  isGranted,
  type LeaseRequest,
  type Operation,
} from '../shared/backend.js'
import { KeptById } from '../shared/kept-by-id.js'
import type { Drawn, PoolBatch, RegionPool } from '../shared/region-pool.js'
import type { HomeBackend } from './home-backend.js'
import { grantOfPool } from './pool-grant.js'
import type { RegionTerms } from './region-terms.js'
import type { RegionRenewals } from './renewals.js'

/** Leases of a process that are remembered: tokens of others stay charged. */
const MOST_LEASES = 100_000

/** What cancelling a charge of the region's tokens needs: those of each policy. */
class PoolReceipt {
  readonly batches: readonly (readonly PoolBatch[])[]

  constructor(batches: readonly (readonly PoolBatch[])[]) {
    this.batches = batches
  }
}

/** What the pool says to a request of one policy. */
interface PoolAnswer {
  readonly drawn: Drawn
  /** How long it is denied; 0 where it is admitted, or where only the home knows. */
  readonly deniedUs: number
}

/** What a region is made of, under one policy. */
export interface PoolParts {
  readonly policy: Policy
  readonly terms: RegionTerms
  /** How long a process holds tokens that it drew, in microseconds; the region holds them for the lease of its terms. */
  readonly processLeaseUs: number
  /** Of each policy. */
  readonly pools: readonly RegionPool[]
  readonly renewals: RegionRenewals
  /** Decides what the pools cannot: the home, and while that is out the region's share. */
  readonly homeOrShare: HomeBackend
  /** Whether a key of which the region knows nothing begins with the share, instead of waiting for the home. */
  readonly isColdAlone: boolean
}

/**
 * One policy of which the region holds tokens that the home charged ahead. A take goes this way:
 *
 * 1. It draws from the {@link RegionPool}. A draw that finds few tokens left sets off their renewal, which goes on by itself
 *    ({@link RegionRenewals}).
 * 2. Where the pool has too few, and the home is known to deny, the answer is no.
 * 3. Where the home is not known to deny, it decides this take, and while it is out the region's share ({@link HomeBackend}).
 */
export class PoolBackend implements Backend {
  private readonly parts: PoolParts
  private readonly policies: readonly Policy[]
  /** To which batch the tokens go back that this process drew for its leases. */
  private readonly leases = new KeptById<PoolBatch>(MOST_LEASES)
  /** What goes back to the region just now. */
  private readonly returning = new Set<Promise<unknown>>()

  constructor(parts: PoolParts) {
    this.parts = parts
    this.policies = policiesOf(parts.policy)
  }

  execute(operation: Operation, signal?: CancelSignal): Promise<Answer> {
    const { homeOrShare } = this.parts
    switch (operation.verb) {
      case 'take':
      case 'reserve':
        return this.taken(operation, signal)
      case 'peek':
        return operation.isAtHome ? homeOrShare.execute(operation, signal) : this.peeked(operation.key, operation.cost, signal)
      case 'block':
      case 'reset':
        return this.everywhere(operation, signal)
      case 'giveBack':
        return this.gaveBack(operation, signal)
      case 'redeem':
        return operation.charge.receipt instanceof PoolReceipt
          ? this.peeked(operation.key, 1, signal)
          : homeOrShare.execute(operation, signal)
      case 'refund':
        return this.madeRoom(operation, signal)
      case 'hold':
        return operation.hold === 0 ? this.madeRoom(operation, signal) : homeOrShare.execute(operation, signal)
      default:
        return homeOrShare.execute(operation, signal)
    }
  }

  /** The home may have room again: the region believes no denial from before. */
  private async madeRoom(operation: Operation, signal: CancelSignal | undefined): Promise<Answer> {
    const { pools, policy, homeOrShare } = this.parts
    const answer = await homeOrShare.execute(operation, signal)
    const asked = keysUnder(policy, operation.key).map((own, part) => (pools[part] as RegionPool).addDebt(own, 0))
    await Promise.all(asked).catch(noMatter)
    return answer
  }

  async lease(request: LeaseRequest, signal?: CancelSignal): Promise<Grant> {
    const { key, part, want, least, demand = want } = request
    const { isColdAlone, homeOrShare, renewals } = this.parts
    const { drawn, deniedUs } = await this.draw(part, key, want, least, demand, signal)
    if (drawn.tokens === 0 && deniedUs === 0 && drawn.blockedUs === 0) {
      const grant = isColdAlone ? undefined : await homeOrShare.leaseOrNone(request, signal)
      if (grant !== undefined) {
        if (grant.tokens < least || grant.blockedUs > 0) renewals.denied(part, key, least, drawn.nowUs, grant)
        return grant
      }
      return { ...this.grantOf(part, drawn, 0), isNone: true }
    }
    return this.grantOf(part, drawn, deniedUs)
  }

  private grantOf(part: number, drawn: Drawn, deniedUs: number): Grant {
    const { terms, processLeaseUs } = this.parts
    return grantOfPool(drawn, deniedUs, this.policies[part] as Policy, terms, processLeaseUs, this.leases)
  }

  /** Of several policies all or none: what was drawn of some goes back. */
  private async taken(operation: ChargingOperation, signal: CancelSignal | undefined): Promise<Answer> {
    const { key, cost } = operation
    const { homeOrShare, isColdAlone } = this.parts
    const { share } = homeOrShare
    const demand = (operation.verb === 'take' ? operation.demand : undefined) ?? cost
    const answers = await this.drawAll(key, cost, demand, signal)
    const batches = answers.map(({ drawn }) => drawn.batches)
    if (answers.every(({ drawn }) => drawn.tokens >= cost)) {
      const order = (answers[0] as PoolAnswer).drawn.nowUs
      return { done: true, decision: this.decisionOf(answers, cost), waitUs: 0, order, receipt: new PoolReceipt(batches) }
    }
    void this.giveBackAll(key, batches, cost)
    if (operation.verb === 'take' && answers.some(isDenied)) return { done: false, decision: this.decisionOf(answers, cost) }
    const isRestored = share.bornAt(
      key,
      answers.map(({ drawn }) => drawn.bornUs),
    )
    if (isRestored !== undefined) await isRestored.catch(noMatter)
    if (operation.verb === 'take' && isColdAlone) return share.charge(operation, signal)
    const answer = await homeOrShare.execute(operation, signal)
    if (!answer.done && answer.decision?.source !== 'outage') this.learnDenial(operation, answers, answer)
    return answer
  }

  private async peeked(key: Key, cost: number, signal: CancelSignal | undefined): Promise<Answer> {
    const answers = await this.drawAll(key, cost, undefined, signal)
    if (!answers.every(({ drawn }) => drawn.tokens >= cost) && !answers.some(isDenied)) {
      return this.parts.homeOrShare.execute({ verb: 'peek', key, cost }, signal)
    }
    const decision = this.decisionOf(answers, cost)
    return { done: decision.allowed, decision }
  }

  private drawAll(key: Key, cost: number, demand: number | undefined, signal: CancelSignal | undefined): Promise<PoolAnswer[]> {
    return Promise.all(keysUnder(this.parts.policy, key).map((own, part) => this.draw(part, own, cost, cost, demand, signal)))
  }

  private async draw(
    part: number,
    key: string,
    want: number,
    least: number,
    demand: number | undefined,
    signal: CancelSignal | undefined,
  ): Promise<PoolAnswer> {
    const { pools, renewals } = this.parts
    const drawn = await (pools[part] as RegionPool).draw(key, { want, least, demand, ...renewals.foreseen }, signal)
    const isDue = renewals.drew(part, key, drawn, demand !== undefined)
    return { drawn, deniedUs: renewals.deniedUsOf(drawn, least, isDue) }
  }

  /** A ban is in force here at once, and for other regions with their next message. */
  private async everywhere(operation: Extract<Operation, { verb: 'block' | 'reset' }>, signal: CancelSignal | undefined): Promise<Answer> {
    const { pools, policy, homeOrShare } = this.parts
    const us = operation.verb === 'block' ? operation.us : 0
    const here = keysUnder(policy, operation.key).map((own, part) => (pools[part] as RegionPool).block(own, us))
    const [answer] = await Promise.all([homeOrShare.execute(operation, signal), ...here])
    return answer
  }

  /** Of a charge or a lease of the pool. Ids of the home's leases are above 0. */
  private async gaveBack(operation: GiveBackOperation, signal: CancelSignal | undefined): Promise<Answer> {
    const { key, charge, tokens } = operation
    if (isGranted(charge)) {
      const { grantId, part, cost } = charge
      if (grantId > 0) return this.parts.homeOrShare.execute(operation, signal)
      const batch = this.leases.get(grantId)
      if (batch !== undefined) await this.giveBack(part, key as string, batch, tokens, cost)
      return { done: batch !== undefined }
    }
    if (!(charge.receipt instanceof PoolReceipt)) return this.parts.homeOrShare.execute(operation, signal)
    await this.giveBackAll(key, charge.receipt.batches, tokens)
    return { ...(await this.peeked(key, 1, signal)), done: true }
  }

  /** Of each policy the newest first: they last longest. If the call is lost, the tokens stay charged. */
  private giveBackAll(key: Key, batches: readonly (readonly PoolBatch[])[], tokens: number): Promise<unknown> {
    const returns: Promise<unknown>[] = []
    for (const [part, own] of keysUnder(this.parts.policy, key).entries()) {
      let left = tokens
      for (const batch of (batches[part] ?? []).toReversed()) {
        const back = Math.min(left, batch.tokens)
        left -= back
        if (back > 0) returns.push(this.giveBack(part, own, batch, back, batch.tokens))
      }
    }
    return Promise.all(returns)
  }

  /** To the region; tokens that ended before go back to the home, as much of them as has not flowed back there. */
  private giveBack(part: number, key: string, { endUs, grantId }: PoolBatch, tokens: number, cost: number): Promise<unknown> {
    const { pools, homeOrShare } = this.parts
    const { home } = homeOrShare
    const back = (pools[part] as RegionPool)
      .giveBack(key, { tokens, endUs, grantId })
      .then((inTime) =>
        inTime || grantId === 0 ? undefined : home.execute({ verb: 'giveBack', key, charge: { grantId, part, cost }, tokens }),
      )
      .catch(noMatter)
      .finally(() => this.returning.delete(back))
    this.returning.add(back)
    return back
  }

  /** Whether nothing is left to do. */
  get isIdle(): boolean {
    return this.returning.size === 0 && this.parts.renewals.isIdle
  }

  /** What processes hold of the region's tokens is on its way back already. */
  close(): void {
    this.parts.renewals.close(Promise.all(this.returning)).catch(noMatter)
  }

  private learnDenial({ key, cost }: ChargingOperation, drawn: readonly PoolAnswer[], { decision }: Answer): void {
    if (decision === undefined) return
    const denials = decision.parts ?? [decision]
    for (const [part, own] of keysUnder(this.parts.policy, key).entries()) {
      const each = denials[part]
      if (each === undefined || each.allowed) continue
      const untilFreeUs = Math.min(each.retryAfterMs, Number.MAX_SAFE_INTEGER / 1000) * 1000
      const { remaining, resetAfterMs } = each
      const askedUs = (drawn[part] as PoolAnswer).drawn.nowUs
      this.parts.renewals.denied(part, own, cost, askedUs, { untilFreeUs, blockedUs: 0, remaining, untilNewUs: resetAfterMs * 1000 })
    }
  }

  private decisionOf(answers: readonly PoolAnswer[], cost: number): Decision {
    const parts = answers.map((answer, i) => decisionOfPool(answer, this.policies[i] as Policy, cost))
    return this.parts.policy.policies === undefined ? (parts[0] as Decision) : combined(parts)
  }
}

function isDenied({ drawn, deniedUs }: PoolAnswer): boolean {
  return drawn.tokens === 0 && (deniedUs > 0 || drawn.blockedUs > 0)
}

/** As far as the region knows: it holds `left`, and the home had `rest` when it last answered. */
function decisionOfPool({ drawn, deniedUs }: PoolAnswer, { limit, name }: Policy, cost: number): Decision {
  const { tokens, left, rest, fullUs, blockedUs } = drawn
  const allowed = tokens >= cost
  return {
    allowed,
    limit,
    remaining: allowed ? left + rest : left,
    retryAfterMs: allowed ? 0 : Math.max(1, Math.ceil(Math.max(deniedUs, blockedUs) / 1000)),
    resetAfterMs: Math.ceil(Math.max(fullUs, blockedUs) / 1000),
    policy: name,
    source: 'store',
  }
}

/** Lost tokens stay charged. */
function noMatter(): void {}
