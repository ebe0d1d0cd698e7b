import { combined, type Decision } from '../decision/decision.js'
import { holdsPermits } from '../decision/permit.js'
import { isOutage } from '../errors.js'
import { keysUnder, nameOf } from '../key.js'
import type { Grant } from '../lease/grant.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { Answer, Backend, Booked, CancelSignal, LeaseRequest, Operation, ReturnOperation, TakeOperation } from '../shared/backend.js'
import { KeyFault } from '../shared/calls/call-guard.js'
import { type GrantOfDraw, grantsOfDraws } from './draw-grant.js'
import type { Draw, Drawn, Lot, RegionPool } from './region-pool.js'
import type { RegionTerms } from './region-terms.js'
import type { RegionRenewals } from './renewals.js'

/** How long a take is denied that nothing decides: neither the home, nor a share of this region. */
const CLOSED_RETRY_MS = 1000
/** More keys that owe are charged by their renewals alone. */
const MOST_OWING = 10_000

type Charging = TakeOperation | Extract<Operation, { verb: 'reserve' }>

/** What `cancel` needs of tokens drawn in the region: those of each policy. */
class Receipt {
  readonly lots: readonly (readonly Lot[])[]

  constructor(lots: readonly (readonly Lot[])[]) {
    this.lots = lots
  }
}

/** What a region is made of, under one policy. */
export interface RegionParts {
  readonly policy: Policy
  readonly terms: RegionTerms
  /** How long a process holds tokens that it drew, in microseconds. */
  readonly leaseUs: number
  /** Of each policy. */
  readonly pools: readonly RegionPool[]
  /** All policies at the home. */
  readonly home: Backend
  /** Decides with the region's share while the home cannot be reached; undefined without a share. */
  readonly alone: Backend | undefined
  /** Whether a key of which the region knows nothing begins with that share, instead of waiting for the home. */
  readonly isColdAlone: boolean
  readonly renewals: RegionRenewals
}

/**
 * One policy whose budget has a home elsewhere. The region's store holds tokens that the home charged ahead; what these cannot decide, and
 * every verb that is not a take, the home does.
 *
 * 1. A take or lease draws from the {@link RegionPool}. A draw that finds few tokens left may claim the renewal, which goes on by itself
 *    ({@link RegionRenewals}).
 * 2. Where the pool has too few, and the home is known to deny, the answer is no.
 * 3. Where the home is not known to deny, it decides this take: one call to it.
 * 4. While the home cannot be reached, the region decides with its share, and the pool notes what is owed.
 */
export class RegionBackend implements Backend {
  private readonly parts: RegionParts
  private readonly policies: readonly Policy[]
  private readonly grantOf: readonly GrantOfDraw[]
  private readonly holds: boolean
  private readonly isOfPermits: boolean
  /** Keys of which this process admitted something without the home, by their text. */
  private readonly owing = new Set<string>()

  constructor(parts: RegionParts) {
    this.parts = parts
    this.policies = parts.policy.policies ?? [parts.policy]
    this.grantOf = this.policies.map((policy) => grantsOfDraws(policy, parts.leaseUs, parts.terms))
    this.holds = parts.terms.mode === 'tokens'
    this.isOfPermits = holdsPermits(parts.policy)
  }

  execute(operation: Operation, signal?: CancelSignal): Promise<Answer> {
    switch (operation.verb) {
      case 'take':
      case 'reserve':
        return this.holds ? this.taken(operation, signal) : this.atHome(operation, signal)
      case 'peek':
        return this.peeked(operation.key, operation.cost, signal)
      case 'block':
      case 'reset':
        return this.everywhere(operation, signal)
      case 'cancel':
        return this.cancelled(operation, operation.tokens, signal)
      case 'discard':
        return this.cancelled(operation, operation.booked.cost, signal)
      case 'return':
        return operation.grantId < 0 ? this.returned(operation) : this.homeAlone(operation, signal)
      case 'redeem':
        return operation.booked.receipt instanceof Receipt ? this.peeked(operation.key, 1, signal) : this.homeAlone(operation, signal)
      case 'release':
      case 'heartbeat':
        return this.permitHeld(operation, signal)
      default:
        return this.homeAlone(operation, signal)
    }
  }

  lease(request: LeaseRequest, signal?: CancelSignal): Promise<Grant> {
    const { key, part, want, least, demand = want } = request
    if (!this.holds) return this.parts.home.lease(request, signal)
    return this.drawn(part, key, { want, least, demand }, signal).then((drawn) => {
      this.noteClaim(part, key, drawn)
      const grantOf = this.grantOf[part] as GrantOfDraw
      return drawn.tokens > 0 || isDenied(drawn) ? grantOf(drawn) : this.leaseAtHome(request, signal, () => grantOf(drawn))
    })
  }

  private async leaseAtHome(request: LeaseRequest, signal: CancelSignal | undefined, nothing: () => Grant): Promise<Grant> {
    const { key, part, least } = request
    try {
      const grant = await this.parts.home.lease(request, signal)
      this.settle(key)
      this.learn(part, key, least, grant)
      return grant
    } catch (error) {
      if (!isOutage(error)) throw error
      // Without the home each take is decided by itself, so that its decision says so.
      return { ...nothing(), isNone: true }
    }
  }

  private async draw(part: number, key: string, draw: Draw, signal: CancelSignal | undefined): Promise<Drawn> {
    const drawn = await this.drawn(part, key, draw, signal)
    this.noteClaim(part, key, drawn)
    return drawn
  }

  private drawn(part: number, key: string, draw: Draw, signal: CancelSignal | undefined): Promise<Drawn> {
    const { pools, renewals } = this.parts
    return (pools[part] as RegionPool).draw(key, draw, renewals.drawTerms, signal)
  }

  private noteClaim(part: number, key: string, drawn: Drawn): void {
    this.parts.renewals.heard(drawn.nowUs)
    if (drawn.claim !== undefined) this.parts.renewals.claimed(part, key, drawn, drawn.claim)
  }

  /** Of several policies all or none: what was drawn of some goes back. */
  private async taken(operation: Charging, signal: CancelSignal | undefined): Promise<Answer> {
    const { key, cost } = operation
    const keys = keysUnder(this.parts.policy, key)
    const demand = (operation.verb === 'take' ? operation.demand : undefined) ?? cost
    const draws = await Promise.all(keys.map((own, part) => this.draw(part, own, { want: cost, least: cost, demand }, signal)))
    if (draws.every(({ tokens }) => tokens >= cost)) {
      const decision = this.decisionOf(draws, cost)
      const [first] = draws as [Drawn]
      return { done: true, decision, waitUs: 0, order: first.nowUs, receipt: new Receipt(draws.map(({ lots }) => lots)) }
    }
    for (const [part, { lots }] of draws.entries()) this.giveBack(part, keys[part] as string, lots, cost)
    if (operation.verb === 'take' && draws.some(isDenied)) return { done: false, decision: this.decisionOf(draws, cost) }
    return this.atHome(operation, signal)
  }

  /** The home decides, or the region by itself while the home cannot be reached. */
  private async atHome(operation: Charging, signal: CancelSignal | undefined): Promise<Answer> {
    const { home, alone, isColdAlone } = this.parts
    if (isColdAlone && this.holds && alone !== undefined && operation.verb === 'take') return this.takeAlone(operation, signal)
    try {
      const answer = await home.execute(operation, signal)
      this.settle(operation.key)
      if (!answer.done && this.holds) this.learnDenial(operation, answer)
      return answer
    } catch (error) {
      if (!isOutage(error)) throw error
      return this.takeAlone({ verb: 'take', key: operation.key, cost: operation.cost, id: operation.id }, signal)
    }
  }

  private async takeAlone(operation: TakeOperation, signal: CancelSignal | undefined): Promise<Answer> {
    const { alone } = this.parts
    if (alone === undefined) return { done: false, decision: this.closed() }
    const answer = await alone.execute(operation, signal)
    if (answer.done) this.owe(operation.key, operation.cost)
    return inOutage(answer)
  }

  /** What the pool does not know, the home does; while that cannot be reached, the share does. */
  private async peeked(key: Key, cost: number, signal: CancelSignal | undefined): Promise<Answer> {
    if (this.holds) {
      const keys = keysUnder(this.parts.policy, key)
      const draws = await Promise.all(keys.map((own, part) => this.draw(part, own, { want: cost, least: cost, demand: undefined }, signal)))
      if (draws.every(({ tokens }) => tokens >= cost) || draws.some(isDenied)) {
        const decision = this.decisionOf(draws, cost)
        return { done: decision.allowed, decision }
      }
    }
    const { home, alone } = this.parts
    try {
      return await home.execute({ verb: 'peek', key, cost }, signal)
    } catch (error) {
      if (!isOutage(error)) throw error
      return alone === undefined
        ? { done: false, decision: this.closed() }
        : inOutage(await alone.execute({ verb: 'peek', key, cost }, signal))
    }
  }

  /** A ban is in force here at once, and for other regions with their next message. */
  private async everywhere(operation: Extract<Operation, { verb: 'block' | 'reset' }>, signal: CancelSignal | undefined): Promise<Answer> {
    const { pools, policy } = this.parts
    const keys = keysUnder(policy, operation.key)
    const here = keys.map((own, part) => {
      const pool = pools[part] as RegionPool
      return operation.verb === 'block' ? pool.block(own, operation.us) : pool.reset(own)
    })
    const [answer] = await Promise.all([this.homeAlone(operation, signal), ...here])
    return answer
  }

  private async cancelled(
    operation: Operation & { readonly booked: Booked },
    tokens: number,
    signal: CancelSignal | undefined,
  ): Promise<Answer> {
    const { key, booked } = operation
    const { receipt } = booked
    if (!(receipt instanceof Receipt)) return this.homeAlone(operation, signal)
    for (const [part, own] of keysUnder(this.parts.policy, key).entries()) this.giveBack(part, own, receipt.lots[part] ?? [], tokens)
    return { ...(await this.peeked(key, 1, signal)), done: true }
  }

  /** The newest first: they last longest. If the call is lost, the tokens stay charged. */
  private giveBack(part: number, key: string, lots: readonly Lot[], tokens: number): void {
    const pool = this.parts.pools[part] as RegionPool
    let left = tokens
    for (const lot of lots.toReversed()) {
      const back = Math.min(left, lot.tokens)
      left -= back
      if (back > 0) pool.back(key, { tokens: back, endUs: lot.endUs }).catch(noMatter)
    }
  }

  /** Of a grant that was drawn: its id is the first end of its tokens, negative. */
  private async returned({ key, part, tokens, grantId }: ReturnOperation): Promise<Answer> {
    await (this.parts.pools[part] as RegionPool).back(key, { tokens, endUs: -grantId })
    return { done: true }
  }

  /** A permit of the region's share is known here alone. */
  private async permitHeld(
    operation: Extract<Operation, { verb: 'release' | 'heartbeat' }>,
    signal: CancelSignal | undefined,
  ): Promise<Answer> {
    const { home, alone } = this.parts
    let answer: Answer | undefined
    let fault: unknown
    try {
      answer = await home.execute(operation, signal)
    } catch (error) {
      if (!isOutage(error)) throw error
      fault = error
    }
    if (answer?.done || alone === undefined) return answer ?? unreachable(fault)
    const own = await alone.execute(operation, signal)
    return own.done ? own : (answer ?? unreachable(fault))
  }

  /** What was owed of the key is charged, now that the home answers. */
  private settle(key: Key): void {
    if (this.owing.size === 0 || !this.owing.delete(nameOf(key))) return
    for (const [part, own] of keysUnder(this.parts.policy, key).entries()) this.parts.renewals.settle(part, own)
  }

  /** Permits come back by themselves. */
  private owe(key: Key, tokens: number): void {
    if (this.isOfPermits) return
    if (this.owing.size < MOST_OWING) this.owing.add(nameOf(key))
    for (const [part, own] of keysUnder(this.parts.policy, key).entries()) {
      const pool = this.parts.pools[part] as RegionPool
      pool.owe(own, tokens).catch(noMatter)
    }
  }

  private learn(part: number, key: string, least: number, grant: Grant): void {
    const tokens = grant.availableNow + grant.availableLater
    if (tokens < least || grant.blockedUs > 0) this.parts.renewals.learned(part, key, least, grant)
  }

  private learnDenial({ key, cost }: Charging, { decision }: Answer): void {
    if (decision === undefined) return
    const denials = decision.parts ?? [decision]
    for (const [part, own] of keysUnder(this.parts.policy, key).entries()) {
      const each = denials[part]
      if (each === undefined || each.allowed) continue
      const untilFreeUs = Math.min(each.retryAfterMs, Number.MAX_SAFE_INTEGER / 1000) * 1000
      const { remaining, resetAfterMs } = each
      this.parts.renewals.learned(part, own, cost, { untilFreeUs, blockedUs: 0, remaining, untilNewUs: resetAfterMs * 1000 })
    }
  }

  /** Verbs of the home alone. The region's store is well when they fail: that opens no circuit of it. */
  private homeAlone(operation: Operation, signal: CancelSignal | undefined): Promise<Answer> {
    return this.parts.home.execute(operation, signal).catch(unreachable)
  }

  private decisionOf(draws: readonly Drawn[], cost: number): Decision {
    const parts = draws.map((drawn, i) => decisionOfDraw(drawn, this.policies[i] as Policy, cost))
    return this.parts.policy.policies === undefined ? (parts[0] as Decision) : combined(parts)
  }

  private closed(): Decision {
    const { limit, name } = this.parts.policy
    return {
      allowed: false,
      limit,
      remaining: 0,
      retryAfterMs: CLOSED_RETRY_MS,
      resetAfterMs: CLOSED_RETRY_MS,
      policy: name,
      source: 'outage',
    }
  }
}

/** Of the share. */
function inOutage({ done, decision }: Answer): Answer {
  return { done, ...(decision && { decision: { ...decision, source: 'outage' } }) }
}

/** The region's store is well when the home does not answer: that opens no circuit of it. */
function unreachable(error: unknown): never {
  throw isOutage(error) ? new KeyFault('the home of the budget does not answer', { cause: error }) : error
}

function isDenied({ tokens, deniedUs, blockedUs }: Drawn): boolean {
  return tokens === 0 && (deniedUs > 0 || blockedUs > 0)
}

/** As far as the region knows: it holds `left`, and the home had `rest` when it last answered. */
function decisionOfDraw({ tokens, left, rest, fullUs, deniedUs, blockedUs }: Drawn, { limit, name }: Policy, cost: number): Decision {
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
