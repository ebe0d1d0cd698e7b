import { type Decision, refusal } from '../decision/decision.js'
import { holdsPermits } from '../decision/permit.js'
import { keysUnder } from '../key.js'
import type { Key } from '../limiter.js'
import { HeldKey } from '../memory/held-key.js'
import type { MemoryLimiter } from '../memory/memory-limiter.js'
import type { Policy } from '../policy/policy.js'
import { type Answer, type HoldOperation, passed, withoutHolds } from '../shared/backend.js'
import { holdStep } from '../shared/holds/hold-step.js'
import { type HeldSlot, StoredHolds, storedEnd } from '../shared/holds/stored-holds.js'
import type { Clock } from '../time/clock.js'
import { Alarm, type Alert, alertOf } from '../waiting/alarm.js'

/** The limiter in memory frees what is held so long after its end: what is granted of it is charged before. */
const MARGIN_US = 100_000

/** A key of one policy, and which of what others hold is granted to them. */
class OwnedKey extends HeldKey {
  readonly holds = new StoredHolds()
  /** For the end of the first slot. */
  readonly alert: Alert

  /** The part of its policy. */
  readonly own: MemoryLimiter

  constructor(own: MemoryLimiter, key: string, place: () => MemoryLimiter, onEnd: (own: OwnedKey) => void) {
    super(key, place)
    this.own = own
    this.alert = alertOf(() => onEnd(this))
  }

  get slots(): readonly HeldSlot[] {
    return this.holds.slots.map((slot) => ({ ...slot }))
  }
}

/** What holds of others need of the policy that they are of. */
interface Owned {
  readonly policy: Policy
  readonly limiter: { peek(key: Key, cost?: number): Decision }
  /** The limiter in memory of each policy. */
  readonly parts: readonly object[]
  /** Where a key of one of them is by now. */
  placeOf<Part extends object>(part: Part, key: string): Part
  readonly nowUs: () => number
}

/**
 * What other processes hold of the keys of an owner, by the same steps as in a store (ADR 26). The limiter in memory counts it beside what is spent, for
 * everybody; which of it is granted to others is known here, and is charged when its hold ends.
 */
export class OwnedHolds {
  private readonly owned: Owned
  private readonly byPart = new Map<object, Map<string, OwnedKey>>()
  private readonly alarm: Alarm | undefined

  /** @param clock with timers, by which holds end that nobody asks for; undefined: they end with the next step of their key. */
  constructor(owned: Owned, clock: Clock | undefined) {
    this.owned = owned
    this.alarm = clock && new Alarm(clock, () => this.close())
  }

  /** Moves a hold on the keys of all policies, or of none. @throws {PolicyError} */
  step(operation: HoldOperation): Answer {
    const { owned } = this
    const nowUs = owned.nowUs()
    const held = this.heldKeys(operation.key)
    const foreseen = (cost: number): Answer => ({ done: false, decision: refusal(owned.limiter.peek(operation.key, cost)) })
    const endUs = storedEnd(nowUs, operation.ttlUs) + MARGIN_US
    if (operation.hold !== 0 && !held.every((each) => each.hasRoom(endUs))) {
      for (const each of held) this.watch(each)
      return foreseen(Math.max(1, operation.spent, operation.least))
    }
    const before = held.map((each) => each.slots)
    const keys = held.map((each) => {
      const isBlocked = each.isBlocked()
      const { holds } = each
      return { holds, isBlocked, room: isBlocked ? 0 : each.seen().remaining, charge: (tokens: number) => each.charge(tokens) }
    })
    const { done, lacks, hold } = holdStep(keys, operation, nowUs)
    for (const [i, each] of held.entries()) this.counted(each, before[i] as readonly HeldSlot[])
    if (!done) return foreseen(lacks)
    return { done, decision: passed(owned.limiter.peek(operation.key)), ...(hold && { hold }) }
  }

  /** Charges what was granted of a key, of holds that have ended. Comes before each step of the key. */
  settle(key: unknown): void {
    if (this.byPart.size === 0) return
    for (const [i, own] of (typeof key === 'string' || Array.isArray(key) ? keysUnder(this.owned.policy, key) : []).entries()) {
      const held = this.byPart.get(this.owned.parts[i] as object)?.get(own)
      if (held !== undefined) this.ended(held)
    }
  }

  /** What is held of a key of one policy; undefined for nothing. */
  of(part: object, key: string): StoredHolds | undefined {
    return this.byPart.get(part)?.get(key)?.holds
  }

  /** What was held when the owner was last in memory; its limiter has loaded the key. */
  load(part: MemoryLimiter, key: string, { slots }: StoredHolds): void {
    const held = this.heldKey(part, key)
    for (const { us, held: tokens, granted } of slots) held.holds.move(us, tokens, granted)
    this.watch(held)
  }

  /** Nothing is known of holds any more: what was granted is charged. */
  close(): void {
    for (const held of [...this.byPart.values()].flatMap((keys) => [...keys.values()])) {
      this.alarm?.clear(held.alert)
      for (const { granted } of held.holds.slots) if (granted > 0) held.charge(granted)
    }
    this.byPart.clear()
  }

  private heldKeys(key: Key): readonly OwnedKey[] {
    const { policy, parts } = this.owned
    const keys = keysUnder(policy, key)
    if (holdsPermits(policy) || !parts.every(isInMemory)) throw withoutHolds('the limiter that is served here')
    return parts.map((part, i) => this.heldKey(part as MemoryLimiter, keys[i] as string))
  }

  private heldKey(part: MemoryLimiter, key: string): OwnedKey {
    const keys = this.byPart.get(part) ?? new Map<string, OwnedKey>()
    this.byPart.set(part, keys)
    const known = keys.get(key)
    if (known !== undefined) return known
    const held = new OwnedKey(
      part,
      key,
      () => this.owned.placeOf(part, key),
      (own) => this.ended(own),
    )
    keys.set(key, held)
    return held
  }

  /** Ends what is over at the clock's time. */
  private ended(held: OwnedKey): void {
    const before = held.slots
    for (const { granted } of held.holds.ended(this.owned.nowUs())) held.charge(granted)
    this.counted(held, before)
  }

  /** Has the limiter in memory hold what is held by now. What is spent was charged before, so that nothing is free in between. */
  private counted(held: OwnedKey, before: readonly HeldSlot[]): void {
    const { holds } = held
    const tokensAt = (slots: readonly HeldSlot[], us: number): number => {
      const slot = slots.find((each) => each.us === us)
      return slot === undefined ? 0 : slot.held + slot.granted
    }
    for (const us of new Set([...before, ...holds.slots].map((slot) => slot.us))) {
      const more = tokensAt(holds.slots, us) - tokensAt(before, us)
      if (more !== 0) held.move(more, us + MARGIN_US)
    }
    this.watch(held)
  }

  private watch(held: OwnedKey): void {
    const [first] = held.holds.slots
    if (first !== undefined) {
      this.alarm?.set(held.alert, first.us, 0)
      return
    }
    this.alarm?.clear(held.alert)
    const keys = this.byPart.get(held.own)
    keys?.delete(held.key)
    if (keys?.size === 0) this.byPart.delete(held.own)
  }
}

function isInMemory(part: object): boolean {
  return typeof (part as Partial<MemoryLimiter>).peekAlone === 'function'
}
