import { combined, type Decision, refusal } from '../decision/decision.js'
import { holdsPermits, type Permit } from '../decision/permit.js'
import { high, low } from '../memory/fingerprint.js'
import type { MemoryBooking } from '../memory/memory-bookings.js'
import type { MemoryLimiter } from '../memory/memory-limiter.js'
import { newMemoryLimiter } from '../memory/memory-limiters.js'
import { keepRoomForLeases, leasedFrom, type MemoryLease, policyUnderLease, tokensForLease, windowEndUs } from '../owner/memory-lease.js'
import { limitersOf, type OwnedLimiter } from '../owner/owned-policy.js'
import { isRate, type Policy, policiesOf } from '../policy/policy.js'
import { emissionOf, scaledUp } from '../policy/policy-numbers.js'
import { MAX_WINDOW_MS } from '../policy/policy-options.js'
import { type Answer, type HoldOperation, type LeaseRequest, type Operation, passed } from '../shared/backend.js'
import { type HoldingKey, holdStep } from '../shared/holds/hold-step.js'
import { holdsIn, type KeptHold, StoredHolds, withHolds } from '../shared/holds/stored-holds.js'
import type { Clock } from '../time/clock.js'
import type { Booking } from '../waiting/reserving.js'
import type { CasStepState } from './cas-store.js'
import { KeyMemory, ONE_KEY } from './key-memory.js'
import type { SteppedState, StoredValue } from './stored-value.js'

/** A permit in the value of a key: which one it is, and when it ends. */
export interface StoredPermit {
  readonly given: number
  readonly untilUs: number
}

/** What a charge leaves with its caller, who may give it back: the bookings of each policy, and their permits. */
export class SwappedCharge {
  readonly booking: Booking
  readonly parts: readonly (MemoryBooking | undefined)[]
  readonly permits: readonly (StoredPermit | undefined)[]

  constructor(booking: Booking, parts: SwappedCharge['parts'], permits: SwappedCharge['permits']) {
    this.booking = booking
    this.parts = parts
    this.permits = permits
  }
}

/** What the verbs of {@link KeySession} answer. */
export interface SessionResult {
  readonly answer: Answer
  /** What was charged. */
  readonly charge?: SwappedCharge
  /** Of a heartbeat: the permits as they are now. */
  readonly permits?: readonly (StoredPermit | undefined)[]
  readonly lease?: MemoryLease
  /** Of a piece of work that the store knows by an id: the number of its step. */
  readonly call?: number | undefined
}

/** Stands at the time by which the store decides. */
class StoppedClock implements Clock {
  us = 0

  nowMs(): number {
    return this.us / 1000
  }
}

const NOTHING = new Uint8Array(0)
/** At most what the core reads as a cost. */
const MOST_COST = Number.MAX_SAFE_INTEGER
const ROOM = { denyWhenFull: true, maxKeys: 1, growTo: 1, newcomers: false } as const

/**
 * A limiter in memory that holds one key: loaded from values of a store, changed by verbs at a given time, and saved. The same verbs at the
 * same time on the same values give the same answers, so that a swap that was lost is decided again.
 */
export class KeySession {
  readonly policy: Policy
  private readonly memories: readonly KeyMemory[]
  private readonly limiter: OwnedLimiter
  private readonly parts: readonly MemoryLimiter[]
  private readonly policies: readonly Policy[]
  private readonly leaseUsOf: (policy: Policy) => number
  private readonly clock = new StoppedClock()
  /** What is held of each key. */
  private holds: readonly StoredHolds[] = []

  /** @param leaseUs the length of a lease of each policy, 0 where it is not leased. */
  constructor(policy: Policy, leaseUs: (policy: Policy) => number) {
    this.policy = policy
    this.policies = policiesOf(policy)
    this.leaseUsOf = leaseUs
    const most = Math.max(...this.policies.map(leaseUs))
    const kept = most > 0 ? policyUnderLease(policy, most) : policy
    this.limiter = newMemoryLimiter(kept, { clock: this.clock, hotKeys: 0, maxWaiting: 0, room: ROOM }) as OwnedLimiter
    this.parts = limitersOf(this.limiter) as unknown as readonly MemoryLimiter[]
    this.memories = this.parts.map((part) => new KeyMemory(part))
    for (const [i, part] of this.parts.entries()) {
      const own = this.policies[i] as Policy
      if (leaseUs(own) > 0) keepRoomForLeases(part, () => ({ policy: own, leaseUs: leaseUs(own) }))
    }
  }

  /**
   * @param writtenUs the time of the last change of each.
   * @throws {RangeError} when no limiter could have left a state.
   */
  load(states: readonly (Uint8Array | SteppedState)[], nowUs: number, writtenUs: readonly number[] = []): void {
    this.clock.us = nowUs
    this.holds = this.memories.map((memory, i) => {
      const state = states[i] as Uint8Array | SteppedState
      const [own, holds] = state instanceof Uint8Array ? holdsIn(state) : [NOTHING, new StoredHolds()]
      memory.load(own, nowUs, writtenUs[i] ?? nowUs)
      if (!(state instanceof Uint8Array)) this.loadStepped(i, state, nowUs)
      return holds
    })
    for (const [i, holds] of this.holds.entries()) this.chargeEnded(i, holds, nowUs)
  }

  /** Whether something is held of a loaded key. */
  get isHeld(): boolean {
    return this.holds.some(({ slots, records }) => slots.length > 0 || records.size > 0)
  }

  /** Charges what was granted and not reported in time, as of the time at which its hold ended. */
  private chargeEnded(i: number, holds: StoredHolds, nowUs: number): void {
    for (const { us, granted } of holds.ended(nowUs)) {
      this.clock.us = Math.min(us, nowUs)
      this.parts[i]?.penalize(ONE_KEY, granted)
      this.clock.us = nowUs
    }
  }

  /** What a store that computes has left, as whole tokens that were charged earlier: up to a microsecond more. */
  private loadStepped(i: number, { at, rest, unit, pace, cap, ahead, blocked, seen }: SteppedState, nowUs: number): void {
    const part = this.parts[i] as MemoryLimiter
    const policy = this.policies[i] as Policy
    if (blocked > nowUs) part.block(ONE_KEY, (blocked - nowUs) / 1000)
    if (pace === 0) {
      const isOther = policy.calendar !== undefined || unit !== Math.round(policy.windowMs * 1000)
      // Other windows are carried over as of the last step, see restoredText().
      const fromUs = isOther ? Math.min(seen, nowUs) : nowUs
      const spent = isOther && at > fromUs ? Math.max(rest, cap) : rest
      if (at + unit <= nowUs || spent === 0) return
      this.clock.us = isOther ? fromUs : Math.max(nowUs, at)
      part.penalize(ONE_KEY, ahead && !isOther ? spent : Math.min(spent, policy.limit, cap))
      this.clock.us = nowUs
      return
    }
    const debt = Math.max(0, (at - nowUs) * pace + rest)
    if (debt === 0) return
    const { unitsPerToken, unitsPerUs, capacity } = emissionOf(policy)
    const own = Math.min(scaledUp(debt, unitsPerToken, unit), ahead ? Number.POSITIVE_INFINITY : capacity)
    const units = unitsPerToken === unit ? debt : own
    const tokens = Math.ceil(units / unitsPerToken)
    this.clock.us = nowUs - Math.floor((tokens * unitsPerToken - units) / unitsPerUs)
    part.penalize(ONE_KEY, tokens)
    this.clock.us = nowUs
  }

  /** A swapped state as that of a store that computes, in the numbers of this policy. */
  stepStateOf({ state, decidedUs }: StoredValue, nowUs: number): Pick<CasStepState, 'at' | 'rest' | 'ahead' | 'blocked'> {
    this.load([state], nowUs, [decidedUs])
    const [part] = this.parts as readonly [MemoryLimiter]
    const { low, high } = hashed(part)
    const leftUs = part.core.banLeft(low, high, nowUs)
    const blocked = leftUs > 0 ? nowUs + leftUs : 0
    const debt = part.core.peek(low, high, nowUs, 1)
    if (!(debt >= 0)) throw new RangeError('has a debt that cannot be read')
    if (isRate(this.policy)) {
      const { unitsPerUs, capacity } = emissionOf(this.policy)
      return { at: nowUs + Math.floor(debt / unitsPerUs), rest: debt % unitsPerUs, ahead: debt > capacity, blocked }
    }
    const windowUs = Math.round(this.policy.windowMs * 1000)
    const untilNewUs = Math.ceil(part.core.untilNew())
    // Of a window later than now nothing passes before its end.
    const at = Math.max(0, Math.ceil((nowUs + untilNewUs) / windowUs) - 1) * windowUs
    return { at: debt === 0 ? nowUs - (nowUs % windowUs) : at, rest: debt, ahead: at > nowUs, blocked }
  }

  save(): readonly Uint8Array[] {
    return this.memories.map((memory, i) => withHolds(memory.save(this.clock.us), this.holds[i] as StoredHolds))
  }

  /** Microseconds until each key is full, its ban and its leases included. */
  untilNewUs(): readonly number[] {
    return this.parts.map((part, i) => {
      const { resetAfterMs } = part.peek(ONE_KEY)
      const { low, high } = hashed(part)
      const bannedUs = Math.max(0, part.core.banLeft(low, high, this.clock.us))
      // Other numbers may be written again as they are, and count for as long as their window.
      const otherUs = this.memories[i]?.isOther ? MAX_WINDOW_MS * 1000 : 0
      const ownUs = Math.max(resetAfterMs * 1000, bannedUs, otherUs) + this.leaseUsOf(this.policies[i] as Policy)
      const { lastUs, slots } = this.holds[i] as StoredHolds
      if (lastUs === 0) return ownUs
      // What was granted is charged when its hold ends, and counts from then on.
      const chargedUs = slots.some(({ granted }) => granted > 0) ? 2 * Math.round((this.policies[i] as Policy).windowMs * 1000) : 0
      return Math.max(ownUs, lastUs - this.clock.us + chargedUs)
    })
  }

  /** @param charge what the operation is about: what is to come back, or holds a permit. */
  run(operation: Operation, charge: SwappedCharge | undefined): SessionResult {
    if (this.isHeld || operation.verb === 'hold') return this.runBeside(operation, charge)
    const { limiter } = this
    const decided = (decision: Decision): SessionResult => {
      const own = storeDecision(decision)
      return { answer: { done: own.allowed, decision: own } }
    }
    switch (operation.verb) {
      case 'take':
        return this.charged(operation.cost, 0, operation.canSettle === true)
      case 'reserve':
        return this.charged(operation.cost, operation.maxWaitUs, true)
      case 'peek':
        return decided(limiter.peek(ONE_KEY, operation.cost))
      case 'refund':
      case 'penalize':
        return decided(limiter[operation.verb](ONE_KEY, operation.tokens))
      case 'charge':
        for (const [i, part] of this.parts.entries())
          if ((operation.tokens[i] ?? 0) > 0) part.penalize(ONE_KEY, operation.tokens[i] as number)
        return decided(limiter.peek(ONE_KEY))
      case 'block':
        return decided(limiter.block(ONE_KEY, operation.us / 1000))
      case 'reset':
        return decided(this.reset())
      case 'redeem':
        return { answer: { ...decided(limiter.peek(ONE_KEY)).answer, done: !this.isBanned() } }
      case 'giveBack':
        if (charge !== undefined) this.giveBack(charge, operation.tokens)
        return { answer: { ...decided(limiter.peek(ONE_KEY)).answer, done: charge !== undefined } }
      case 'release':
      case 'heartbeat':
        return this.changedPermits(operation.verb === 'heartbeat', operation.cost, charge)
    }
  }

  /** What an earlier run charged too early is given back first. */
  runAgain(operation: Operation, charge: SwappedCharge | undefined, undo: SessionResult): SessionResult {
    if (operation.verb === 'hold') return this.movedAgain(operation, undo)
    if (undo.charge !== undefined) this.giveBack(undo.charge, undo.charge.booking.cost)
    return this.run(operation, charge)
  }

  /** Beside what is held: nothing is booked ahead of it. */
  private runBeside(operation: Operation, charge: SwappedCharge | undefined): SessionResult {
    switch (operation.verb) {
      case 'hold':
        return this.moved(operation)
      case 'peek': {
        const decision = this.beside(operation.cost)
        return { answer: { done: decision.allowed, decision } }
      }
      case 'take':
      case 'reserve': {
        const foreseen = this.beside(operation.cost)
        if (!foreseen.allowed) return { answer: { done: false, decision: foreseen } }
        const canSettle = operation.verb === 'reserve' || operation.canSettle === true
        const result = this.charged(operation.cost, 0, canSettle)
        const decision = this.beside(1)
        const taken = canSettle || !result.answer.done ? decision : passed(decision)
        return { ...result, answer: { ...result.answer, decision: result.answer.done ? taken : refusal(decision) } }
      }
      default: {
        const { holds } = this
        this.holds = holds.map(() => new StoredHolds())
        const result = this.run(operation, charge)
        this.holds = holds
        const { decision } = result.answer
        if (decision === undefined) return result
        const own = this.beside(1)
        return { ...result, answer: { done: result.answer.done === decision.allowed ? own.allowed : result.answer.done, decision: own } }
      }
    }
  }

  /** What a take would get beside what is held. */
  private beside(cost: number): Decision {
    const parts = this.parts.map((part, i) => storeDecision(this.partBeside(part, this.holds[i] as StoredHolds, cost)))
    return this.policy.policies === undefined ? (parts[0] as Decision) : combined(parts)
  }

  private partBeside(part: MemoryLimiter, holds: StoredHolds, cost: number): Decision {
    const { total, slots } = holds
    const nowUs = this.clock.us
    const atOnce = part.peek(ONE_KEY, Math.min(total + cost, MOST_COST))
    if (total === 0) return atOnce
    const last = slots[slots.length - 1] as (typeof slots)[number]
    const resetAfterMs = Math.max(atOnce.resetAfterMs, Math.ceil((last.us - nowUs) / 1000))
    const decision = { ...atOnce, remaining: Math.max(0, atOnce.remaining - total), resetAfterMs }
    if (decision.allowed) return decision
    // The soonest time at which so many holds have ended by themselves, and the rest and the cost fit.
    let soonestMs = decision.retryAfterMs
    for (const [fromUs, held] of holds.falls(nowUs)) {
      const fromMs = Math.ceil((fromUs - nowUs) / 1000)
      if (fromMs >= soonestMs) break
      soonestMs = Math.min(soonestMs, Math.max(fromMs, part.peek(ONE_KEY, Math.min(held + cost, MOST_COST)).retryAfterMs))
    }
    // What is granted is charged by the end of the last one, if not before.
    if (soonestMs === Number.POSITIVE_INFINITY && part.peek(ONE_KEY, cost).retryAfterMs < soonestMs) soonestMs = (last.us - nowUs) / 1000
    return { ...decision, retryAfterMs: Math.ceil(soonestMs) }
  }

  private moved(operation: HoldOperation): SessionResult {
    const charges: (MemoryBooking | undefined)[] = []
    const { done, lacks, hold } = holdStep(this.holdingKeys(charges), operation, this.clock.us)
    const decision = done ? passed(this.beside(1)) : refusal(this.beside(lacks))
    const answer = { done, decision, ...(hold && { hold }) }
    const { record } = operation
    const booking = charges.find((each) => each !== undefined)
    // What a process has spent of its grant, and what work has cost in all, was spent before.
    if (record === undefined || record.total !== undefined || booking === undefined) return { answer }
    return { answer, charge: new SwappedCharge(booking, charges, []), call: this.recordOf(record.id)?.call }
  }

  /**
   * The piece was decided for a window that is over: it counts in this one. What it took of its hold is held again as far as nobody else has that by now, and
   * the step is made anew, unless a later one of the same work came after it.
   */
  private movedAgain(operation: HoldOperation, { answer, charge, call }: SessionResult): SessionResult {
    const { record, spent } = operation
    const known = record && this.recordOf(record.id)
    if (known === undefined || charge === undefined || known.call !== call) return { answer }
    this.giveBack(charge, charge.booking.cost)
    if (known.us > this.clock.us) {
      const free = Math.min(...this.holdingKeys([]).map(({ holds, room }) => room - holds.total))
      const again = Math.max(0, Math.min(spent, free))
      for (const holds of this.holds) holds.move(known.us, again, 0)
      known.rest += again
    }
    known.call--
    known.used -= spent
    known.over -= answer.hold?.debt ?? 0
    return this.moved(operation)
  }

  private recordOf(id: string): KeptHold | undefined {
    return this.holds[0]?.records.get(id)
  }

  /** @param charges gets what is charged of each key, where it can be given back. */
  private holdingKeys(charges: (MemoryBooking | undefined)[]): readonly HoldingKey[] {
    return this.parts.map((part, i): HoldingKey => {
      const { allowed, remaining, retryAfterMs } = part.peek(ONE_KEY)
      const { low, high } = hashed(part)
      const isBlocked = part.core.banLeft(low, high, this.clock.us) > 0
      const room = allowed || retryAfterMs === 0 ? remaining : 0
      const charge = (tokens: number): void => {
        charges[i] = chargedAnyhow(part, tokens)
      }
      return { holds: this.holds[i] as StoredHolds, room: isBlocked ? 0 : room, isBlocked, charge }
    })
  }

  /** Of the session of one policy, as are the next two. */
  lease({ want, least }: Pick<LeaseRequest, 'want' | 'least'>): MemoryLease {
    const policy = this.policy
    const leaseUs = this.leaseUsOf(policy)
    const held = (this.holds[0] as StoredHolds).total
    const leased = (most: number): MemoryLease =>
      leasedFrom(this.limiter, policy, { key: ONE_KEY, want: most, least }, leaseUs, this.clock.us)
    if (held === 0) return leased(Math.max(want, least))
    // Of what nobody holds.
    const seen = this.limiter.peek(ONE_KEY)
    const left = Math.max(0, seen.remaining - held - tokensForLease(policy, leaseUs, seen))
    if (left >= least) {
      const lease = leased(Math.min(Math.max(want, least), left))
      return { ...lease, remaining: Math.max(0, lease.remaining - held) }
    }
    const { retryAfterMs, resetAfterMs, remaining } = this.beside(least)
    return { tokens: 0, endUs: 0, untilFreeUs: retryAfterMs * 1000, blockedUs: 0, remaining, untilNewUs: resetAfterMs * 1000 }
  }

  giveBackLeased(booking: Booking, tokens: number): void {
    this.limiter.giveBack(booking, tokens)
  }

  /** Of what any process charged at a time: `tokens` of `cost` of each policy. */
  giveBackOf(atUs: number, cost: number, tokens: number): void {
    for (const part of this.parts) {
      const decision = part.peek(ONE_KEY)
      const { generation } = part.decisions
      const charged = { key: ONE_KEY, cost, bookedUs: atUs, atUs, allowed: true, maybeSooner: false, debt: 0, decision, generation }
      part.giveBack({ ...charged, ...hashed(part) }, tokens)
    }
  }

  /** The same with an answer. What is for a later time stays: others may have booked behind it. */
  givenBackOf(atUs: number, cost: number, tokens: number): SessionResult {
    const isDue = atUs <= this.clock.us
    if (isDue) this.giveBackOf(atUs, cost, tokens)
    return { answer: { done: isDue, decision: this.beside(1) } }
  }

  /** Whether what was charged for `us` would be spent in a later window when the store's clock reads `atUs`. */
  isOver(us: number, atUs: number): boolean {
    const isWindow = ({ algorithm }: Policy): boolean => algorithm === 'fixed-window' || algorithm === 'sliding-window'
    return this.policies.some((policy) => isWindow(policy) && windowEndUs(policy, us) <= atUs)
  }

  /** Gives all of a charge, or some of it, back as far as that is safe. */
  giveBack({ parts, permits }: SwappedCharge, tokens: number): void {
    for (const [i, part] of this.parts.entries()) {
      const booking = parts[i]
      if (booking === undefined) continue
      const permit = permits[i]
      if (permit === undefined) part.giveBack(booking, Math.min(tokens, booking.cost))
      else this.changePermit(part, permit, false, Math.min(tokens, booking.cost))
    }
  }

  /** Permits that a reset has ended differ from those that follow at the same microsecond: their keys stay, and go on from there. */
  private reset(): Decision {
    const decision = this.limiter.reset(ONE_KEY)
    for (const [i, part] of this.parts.entries()) {
      const holdsOne = holdsPermits(this.policies[i] as Policy) && !(this.memories[i] as KeyMemory).isNew
      if (holdsOne) (part.take(ONE_KEY, 1) as Permit).release()
    }
    return decision
  }

  private charged(cost: number, maxWaitUs: number, canSettle: boolean): SessionResult {
    const { limiter } = this
    const most = this.policy.policies === undefined ? Math.min(maxWaitUs, Number.MAX_SAFE_INTEGER) : 0
    const booking = limiter.book(ONE_KEY, cost, most / 1000)
    const { allowed, atUs, bookedUs } = booking
    const parts = (booking as Booking & { parts?: readonly MemoryBooking[] }).parts ?? [booking as MemoryBooking]
    const permits = this.parts.map((part, i): StoredPermit | undefined => {
      if (!allowed || !holdsPermits(this.policies[i] as Policy)) return undefined
      return { given: part.core.givenPermit(), untilUs: part.core.givenUntilUs() }
    })
    const decision = storeDecision(allowed && canSettle ? limiter.peek(ONE_KEY) : booking.decision)
    const answer: Answer = { done: allowed, decision, waitUs: allowed ? atUs - bookedUs : 0 }
    return allowed ? { answer, charge: new SwappedCharge(booking, parts, permits) } : { answer }
  }

  private changedPermits(renew: boolean, cost: number, charge: SwappedCharge | undefined): SessionResult {
    if (charge === undefined) return { answer: { done: false } }
    let done = true
    const permits = this.parts.map((part, i): StoredPermit | undefined => {
      const permit = charge.permits[i]
      if (permit === undefined) return undefined
      const changed = this.changePermit(part, permit, renew, renew ? 0 : cost)
      if (changed === undefined) done = false
      return changed
    })
    return { answer: { done }, permits }
  }

  private changePermit(part: MemoryLimiter, { given, untilUs }: StoredPermit, renew: boolean, tokens: number): StoredPermit | undefined {
    const { low, high } = hashed(part)
    const done = part.core.changePermit(low, high, this.clock.us, renew, given, untilUs, tokens)
    return done > 0 ? { given, untilUs: part.core.givenUntilUs() } : undefined
  }

  private isBanned(): boolean {
    return this.parts.some((part) => {
      const { low, high } = hashed(part)
      return part.core.banLeft(low, high, this.clock.us) > 0
    })
  }
}

/** As a take where it passes, so that no log merges it with another. Beyond the policy nothing of it can be given back. */
function chargedAnyhow(part: MemoryLimiter, tokens: number): MemoryBooking | undefined {
  const charged = Math.min(tokens, MOST_COST)
  const booking = part.book(ONE_KEY, charged, 0)
  if (booking.allowed) return booking
  part.penalize(ONE_KEY, charged)
  return undefined
}

function hashed(part: MemoryLimiter): { readonly low: number; readonly high: number } {
  part.hash(ONE_KEY)
  return { low, high }
}

/** A decision of the limiter that holds one key, as one of the store. */
function storeDecision(decision: Decision): Decision {
  if (decision.parts !== undefined) return combined(decision.parts.map(storeDecision))
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, spent } = decision
  return { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source: 'store', ...(spent !== undefined && { spent }) }
}
