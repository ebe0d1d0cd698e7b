import { combined, type Decision } from '../decision/decision.js'
import { holdsPermits } from '../decision/permit.js'
import { isOutage, StoreError } from '../errors.js'
import { keysUnder, nameOf } from '../key.js'
import type { Grant } from '../lease/grant.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import {
  type Answer,
  type Backend,
  type Booked,
  type CancelSignal,
  type GiveBackOperation,
  type Granted,
  isGranted,
  type LeaseRequest,
  type Operation,
  passed,
  type TakeOperation,
} from '../shared/backend.js'
import { KeyFault } from '../shared/calls/call-guard.js'
import type { Draw, Drawn, Lot, RegionPool } from '../shared/region-pool.js'
import { type GrantOfDraw, grantsOfDraws } from './draw-grant.js'
import { DrawnLots } from './drawn-lots.js'
import type { HomeLink } from './home-link.js'
import type { ShareBackend } from './region-share.js'
import type { RegionTerms } from './region-terms.js'
import type { RegionRenewals } from './renewals.js'

/** How long a take is denied that nothing decides: neither the home, nor a share of this region. */
const CLOSED_RETRY_MS = 1000
/** More keys that owe are charged by their renewals alone. */
const MOST_OWING = 10_000

type Charging = TakeOperation | Extract<Operation, { verb: 'reserve' }>

/** What `giveBack` needs of tokens drawn in the region: those of each policy. */
class Receipt {
  readonly lots: readonly (readonly Lot[])[]

  constructor(lots: readonly (readonly Lot[])[]) {
    this.lots = lots
  }
}

/** The same of tokens of the region's share. */
class ShareReceipt {
  readonly receipt: unknown

  constructor(receipt: unknown) {
    this.receipt = receipt
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
  readonly link: HomeLink
  /** Decides with the region's share while the home cannot be reached; undefined without a share. */
  readonly alone: ShareBackend | undefined
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
 * 4. While the home cannot be reached, the region decides with its share, and the pool notes what is owed. No take waits to see whether the
 *    home is back ({@link HomeLink}).
 */
export class RegionBackend implements Backend {
  private readonly parts: RegionParts
  private readonly policies: readonly Policy[]
  private readonly grantOf: readonly GrantOfDraw[]
  private readonly holds: boolean
  private readonly isOfPermits: boolean
  private readonly drawnLots = new DrawnLots()
  /** Keys of which this process admitted something without the home, by their text, and since when the region's store knows them. */
  private readonly owing = new Map<string, readonly number[]>()
  /** What goes back to the region just now. */
  private readonly returning = new Set<Promise<unknown>>()

  constructor(parts: RegionParts) {
    this.parts = parts
    this.policies = parts.policy.policies ?? [parts.policy]
    this.grantOf = this.policies.map((policy) => grantsOfDraws(policy, parts.leaseUs, parts.terms, this.drawnLots))
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
      case 'giveBack':
        return isGranted(operation.charge)
          ? this.returned(operation, operation.charge, signal)
          : this.cancelled(operation, operation.charge, signal)
      case 'redeem':
        return this.isOfHome(operation.charge) ? this.homeAlone(operation, signal) : this.peeked(operation.key, 1, signal)
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
    // Without the home each take is decided by itself, so that its decision says so.
    const none = (): Grant => ({ ...nothing(), isNone: true })
    if (this.isAlone(key, 'take')) return none()
    try {
      const grant = await this.parts.home.lease(request, signal)
      this.settle(key)
      this.learn(part, key, least, grant)
      return grant
    } catch (error) {
      if (!isOutage(error)) throw error
      return none()
    }
  }

  /** Whether the region decides without the home, as it is out, or as a key begins so. */
  private isAlone(key: Key, verb: Operation['verb']): boolean {
    const { home, link, alone, isColdAlone } = this.parts
    if (isColdAlone && this.holds && verb === 'take') return true
    if (!link.isOut(key, alone === undefined)) return false
    link.probe(key, () => home.execute({ verb: 'peek', key, cost: 1 }).then(() => this.settle(key)))
    return true
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
    if (drawn.claim === undefined) return
    this.parts.renewals.claimed(part, key, drawn, drawn.claim)
    if (this.owing.size > 0 && this.policies.length === 1 && this.owing.has(nameOf(key))) this.noteOwed(key, 0).catch(noMatter)
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
    for (const [part, { lots }] of draws.entries()) void this.giveBack(part, keys[part] as string, lots, cost)
    if (operation.verb === 'take' && draws.some(isDenied)) return { done: false, decision: this.decisionOf(draws, cost) }
    return this.atHome(operation, signal)
  }

  /** The home decides, or the region by itself while the home cannot be reached. */
  private async atHome(operation: Charging, signal: CancelSignal | undefined): Promise<Answer> {
    if (this.isAlone(operation.key, operation.verb)) return this.chargedAlone(operation, signal)
    try {
      const answer = await this.parts.home.execute(operation, signal)
      this.settle(operation.key)
      if (!answer.done && this.holds) this.learnDenial(operation, answer)
      return answer
    } catch (error) {
      if (!isOutage(error)) throw error
      return this.chargedAlone(operation, signal)
    }
  }

  /** By the region's share. A reservation is for now, or not at all. */
  private async chargedAlone(operation: Charging, signal: CancelSignal | undefined): Promise<Answer> {
    const { alone } = this.parts
    if (alone === undefined) return { done: false, decision: this.closed() }
    const { verb, key, cost } = operation
    const answer = await alone.execute(verb === 'take' ? operation : { ...operation, maxWaitUs: 0 }, signal)
    if (!answer.done) return inOutage(answer)
    this.owe(key, cost)
    const isHeld = verb === 'reserve' || operation.isHeld === true
    const { decision, receipt } = answer
    const own = isHeld && receipt !== undefined && !this.isOfPermits ? new ShareReceipt(receipt) : undefined
    return inOutage({ ...answer, ...(isHeld && decision && { decision: passed(decision) }), receipt: own })
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
    const without = async (): Promise<Answer> =>
      alone === undefined ? { done: false, decision: this.closed() } : inOutage(await alone.execute({ verb: 'peek', key, cost }, signal))
    if (this.isAlone(key, 'peek')) return without()
    try {
      return await home.execute({ verb: 'peek', key, cost }, signal)
    } catch (error) {
      if (!isOutage(error)) throw error
      return without()
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

  private isOfHome({ receipt }: Booked): boolean {
    return !(receipt instanceof Receipt || receipt instanceof ShareReceipt)
  }

  private async cancelled(operation: GiveBackOperation, booked: Booked, signal: CancelSignal | undefined): Promise<Answer> {
    const { key, tokens } = operation
    const { receipt } = booked
    if (receipt instanceof ShareReceipt) return this.cancelledAlone(key, { ...booked, receipt: receipt.receipt }, tokens, signal)
    if (receipt instanceof Receipt) {
      const lots = keysUnder(this.parts.policy, key).map((own, part) => this.giveBack(part, own, receipt.lots[part] ?? [], tokens))
      await Promise.all(lots)
      return { ...(await this.peeked(key, 1, signal)), done: true }
    }
    const { home, link, alone } = this.parts
    if (!link.isOut(key, alone === undefined)) return this.homeAlone(operation, signal)
    link.later(() => home.execute(operation))
    return { ...(await this.peeked(key, 1, signal)), done: true }
  }

  /** Of the region's share: that much less is owed. */
  private async cancelledAlone(key: Key, booked: Booked, tokens: number, signal: CancelSignal | undefined): Promise<Answer> {
    const answer = await (this.parts.alone as ShareBackend).execute({ verb: 'giveBack', key, charge: booked, tokens }, signal)
    this.owe(key, -tokens)
    return inOutage(answer)
  }

  /** The newest first: they last longest. If the call is lost, the tokens stay charged. */
  private async giveBack(part: number, key: string, lots: readonly Lot[], tokens: number): Promise<void> {
    let left = tokens
    const returns: Promise<unknown>[] = []
    for (const lot of lots.toReversed()) {
      const back = Math.min(left, lot.tokens)
      left -= back
      if (back > 0) returns.push(this.back(part, key, lot, back, lot.tokens))
    }
    await Promise.all(returns)
  }

  /** To the region; tokens that ended before go back to the home, as much of them as has not flowed back there. */
  private back(part: number, key: string, { endUs, grantId }: Lot, tokens: number, cost: number): Promise<unknown> {
    const { pools, home } = this.parts
    const back = (pools[part] as RegionPool)
      .back(key, { tokens, endUs, grantId })
      .then((inTime) =>
        inTime || grantId === 0 ? undefined : home.execute({ verb: 'giveBack', key, charge: { grantId, part, cost }, tokens }),
      )
      .catch(noMatter)
      .finally(() => this.returning.delete(back))
    this.returning.add(back)
    return back
  }

  /** Of a grant that was drawn, or of one of the home, whose ids are above 0. */
  private async returned(operation: GiveBackOperation, charge: Granted, signal: CancelSignal | undefined): Promise<Answer> {
    const { grantId, part, cost } = charge
    if (grantId > 0) return this.homeAlone(operation, signal)
    const lot = this.drawnLots.of(grantId)
    if (lot !== undefined) await this.back(part, operation.key as string, lot, operation.tokens, cost)
    return { done: lot !== undefined }
  }

  /** A permit of the region's share is known here alone. While the home is out, the end of one of its permits is told it later. */
  private async permitHeld(
    operation: Extract<Operation, { verb: 'release' | 'heartbeat' }>,
    signal: CancelSignal | undefined,
  ): Promise<Answer> {
    const { home, link, alone } = this.parts
    const { key, verb } = operation
    let answer: Answer | undefined
    let fault: unknown
    try {
      if (!link.isOut(key, alone === undefined)) answer = await home.execute(operation, signal)
    } catch (error) {
      if (!isOutage(error)) throw error
      fault = error
    }
    if (answer?.done) return answer
    const own = await alone?.execute(operation, signal)
    if (own?.done) return own
    if (answer !== undefined) return answer
    if (verb === 'heartbeat') return unreachable(fault ?? new StoreError('OUTAGE', 'the home does not answer'))
    // Once more does no harm.
    link.later(() => home.execute(operation))
    return { done: true }
  }

  /** What was owed of the key is charged, now that the home answers. */
  private settle(key: Key): void {
    if (this.owing.size === 0 || !this.owing.has(nameOf(key))) return
    const name = nameOf(key)
    const settled = async (): Promise<void> => {
      await this.noteOwed(key, 0)
      this.owing.delete(name)
      const { renewals, policy } = this.parts
      await Promise.all(keysUnder(policy, key).map((own, part) => renewals.settle(part, own)))
    }
    settled().catch(noMatter)
  }

  /** Permits come back by themselves. */
  private owe(key: Key, tokens: number): void {
    if (this.isOfPermits) return
    this.parts.alone?.note(key, tokens)
    this.noteOwed(key, tokens).catch(noMatter)
  }

  /** Where the region's store lost its data meanwhile, it learns again what this process spent of the share. */
  private async noteOwed(key: Key, tokens: number): Promise<void> {
    const { pools, policy, alone } = this.parts
    const keys = keysUnder(policy, key)
    const name = nameOf(key)
    const since = await Promise.all(keys.map((own, part) => (pools[part] as RegionPool).owe(own, tokens)))
    const before = this.owing.get(name)
    if (before !== undefined || this.owing.size < MOST_OWING) this.owing.set(name, since)
    if (before === undefined || before.every((us, part) => us === since[part])) return
    const lost = (await alone?.restore(key, Math.max(0, tokens))) ?? []
    await Promise.all(lost.map((each, part) => (pools[part] as RegionPool).owe(keys[part] as string, each)))
  }

  /** Whether nothing is left to do. */
  get isIdle(): boolean {
    return this.returning.size === 0 && this.parts.renewals.isIdle
  }

  /** What processes hold of the region's tokens is on its way back already. */
  close(): void {
    this.parts.renewals.close(Promise.all(this.returning)).catch(noMatter)
    this.parts.alone?.close()
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
function inOutage({ decision, ...answer }: Answer): Answer {
  return { ...answer, ...(decision && { decision: { ...decision, source: 'outage' } }) }
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
